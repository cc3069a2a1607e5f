"""The log-probabilities of baskets under a factored kernel."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.factored.kernel import FactoredKernel, Singles
from dpplearn.kernels.nonsymmetric.statistics import log_segments
from dpplearn.kernels.passes import Share, check_items, over_threads

GRAM = 1  # nanoseconds per pair of a basket and column


def mean_log_likelihood(kernel: FactoredKernel, baskets: AnyBaskets, threads: int | None = None) -> float:
    """The weighted mean of log P(Y)."""
    _ = kernel.log_normalisers  # found once, the same for all parts to the last bit
    return summed(_log_likelihood, kernel, baskets=baskets, threads=threads) / baskets.total_weight


def _log_likelihood(kernel: FactoredKernel, baskets: Baskets, threads: int | None) -> float:
    return float(log_probabilities(kernel, baskets, threads) @ baskets.weights)


def log_probabilities(kernel: FactoredKernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log P(Y) of every basket."""
    check_items(kernel.n_items, baskets)
    bias, log_odds = kernel.log_weights - kernel.log_normalisers, kernel.log_odds.astype(float)
    if len(kernel.coupling) == 1:
        shared = log_minors(kernel, 0, baskets, threads)
        return shared + log_segments(log_odds, bias, baskets, threads)
    each = [
        log_minors(kernel, c, baskets, threads) + log_segments(log_odds[c : c + 1], bias[c : c + 1], baskets, threads)
        for c in range(kernel.n_segments)
    ]
    return np.asarray(np.logaddexp.reduce(each, axis=0))


def log_minors(kernel: FactoredKernel, segment: int, baskets: Baskets, threads: int | None = None) -> Floats:
    """log det C_Y of every basket."""
    each = np.zeros(len(baskets))
    if not kernel.n_columns:
        return each
    Z = kernel.factors
    left = Z @ kernel.coupling_of(segment)
    work = GRAM * kernel.n_columns * int((baskets.sizes**2).sum())
    over_threads(partial(_minors, left, Z, baskets, each), work, threads, with_blas=False)
    return each


def _minors(left: Floats, Z: Singles, baskets: Baskets, each: Floats, share: Share) -> None:
    rows = share.among(len(baskets))
    loops("factored", "log_minors").log_minors(left, Z, baskets.indices, baskets.offsets, rows.start, rows.stop, each)
