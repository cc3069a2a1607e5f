"""Learners of quality per item: similarity is given, but for its strength."""
