"""What the report calls the models that it compares."""

LEARNERS = {"em": "EM", "ka": "K-Ascent"}  # by the prefix of their columns
MODELS = {**LEARNERS, "independent": "independent items"}
