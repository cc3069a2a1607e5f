"""What the weights of baskets mean: counts if they are whole numbers, importances otherwise."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints

NUMPYS_MOST = 10**9  # baskets that numpy draws from without replacement; it takes no more


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


def in_variance(weights: Floats) -> Floats:
    """What a squared deviation counts in the variance of Σ w x: w where there were w baskets, else w²."""
    return weights if are_counts(weights) else weights**2


def can_be_divided(weights: Floats) -> bool:
    """Whether some weight stands for several baskets, which may then fall into different parts."""
    return are_counts(weights) and bool(np.any(weights > 1))


def without_replacement(counts: Ints, n: int, rng: np.random.Generator) -> Ints:
    """How many of each kind are among n baskets drawn at random: multivariate hypergeometric, of any total.

    Binomials of any one probability, given that they add up to m, are such a draw of m; to be n in all, a draw of what
    is too much is taken back, or one of what is missing is added.
    """
    if not n:
        return np.zeros_like(counts)
    total = int(counts.sum())
    if total < NUMPYS_MOST:
        return np.asarray(rng.multivariate_hypergeometric(counts, n, method="marginals"))
    about = rng.binomial(counts, n / total)
    missing = n - int(about.sum())
    if missing < 0:
        return about - without_replacement(about, -missing, rng)
    return about + without_replacement(counts - about, missing, rng)


def fold_weights(weights: Floats, n: int, rng: np.random.Generator) -> Floats:
    """The weight of every basket in each of n random folds of (nearly) equal size. (n, len(weights))"""
    if not can_be_divided(weights):
        fold_of = rng.permutation(len(weights)) % n
        return np.where(fold_of == np.arange(n)[:, None], weights, 0)
    left, found = weights.astype(np.int64), np.empty((n, len(weights)))
    for fold in range(n):
        found[fold] = without_replacement(left, -(-int(left.sum()) // (n - fold)), rng)
        left -= found[fold].astype(np.int64)
    return found
