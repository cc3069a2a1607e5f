"""Probability distributions over sets of items. Items are integers here; `dpplearn.models` adds names."""
