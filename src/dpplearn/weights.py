"""What the weights of baskets mean: counts if they are whole numbers, importances otherwise."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats


def are_counts(weights: Floats) -> bool:
    """Whether the weights say how many baskets there were of each kind."""
    return bool(np.all(weights == np.round(weights)) and weights.sum() < 2**53)


def effective_number(weights: Floats) -> float:
    """How many baskets weights stand for: their sum if they are counts, else (Σw)²/Σw². [Kish65]"""
    weights = weights[weights > 0]
    if are_counts(weights):
        return float(weights.sum())
    weights = weights / weights.max()  # their squares may be too small for numbers, or too large
    return float(weights.sum() ** 2 / (weights**2).sum())
