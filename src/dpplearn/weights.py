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
    return float(weights.sum() if are_counts(weights) else weights.sum() ** 2 / (weights**2).sum())
