"""From a model to a better one: the learners, what they are given, and the loop that follows them."""
