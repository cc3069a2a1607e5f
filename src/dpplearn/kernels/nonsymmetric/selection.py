"""Greedy sets of high probability under a mixture."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel


def greedy_map(kernel: MixtureKernel, k: int | None, include: Ints) -> tuple[Ints, Floats]:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y) = Σ_c ρ_c exp(log_odds_ci) C'_c,ii with C' the
    Schur complement of what is taken, and ρ_c how likely segment c is given that Y is what is taken.
    """
    left = np.array(kernel.interaction)  # the Schur complements
    log_share = kernel.log_weights - kernel.log_normalisers
    free = np.ones(kernel.n_items, dtype=bool)
    taken: list[int] = []
    gains: list[float] = []
    while len(taken) < (kernel.n_items if k is None else min(k, kernel.n_items)):
        share = np.exp(log_share - log_share.max())
        gain = (share / share.sum()) @ (np.exp(kernel.log_odds) * np.diagonal(left, axis1=1, axis2=2))
        forced = len(taken) < len(include)
        best = int(include[len(taken)]) if forced else int(np.argmax(np.where(free, gain, -np.inf)))
        if not forced and k is None and gain[best] <= 1:
            break
        pivot = left[:, best, best]
        log_share = log_share + kernel.log_odds[:, best] + np.log(pivot)
        left -= left[:, :, best, None] * left[:, best, None, :] / pivot[:, None, None]
        free[best] = False
        taken.append(best)
        gains.append(float(gain[best]))
    return np.array(taken, dtype=np.int64), np.array(gains)
