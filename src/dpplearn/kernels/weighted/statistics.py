"""Log-probabilities of baskets under a mixture by weights."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.kernels.weighted.kernel import WeightedKernel


def log_probabilities(kernel: WeightedKernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log P(Y) of every basket."""
    total = np.full(len(baskets), -np.inf)
    for log_weight, law in zip(kernel.log_weights, kernel.laws, strict=True):
        if log_weight > -np.inf:
            total = np.logaddexp(total, log_weight + law.log_probabilities(baskets, threads))
    return total


def mean_log_likelihood(kernel: WeightedKernel, baskets: AnyBaskets, threads: int | None = None) -> float:
    """The weighted mean of log P(Y)."""
    return summed(_log_likelihood, kernel, baskets=baskets, threads=threads) / baskets.total_weight


def _log_likelihood(kernel: WeightedKernel, baskets: Baskets, threads: int | None) -> float:
    counted = baskets.weights > 0
    return float(log_probabilities(kernel, baskets, threads)[counted] @ baskets.weights[counted])
