"""Weight, log det and Delta of baskets under a kernel: all a learner needs to know of its data. Sums, so they add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from dpplearn.arrays import Floats, Items
from dpplearn.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.kernel import Bordered, Kernel
from dpplearn.threads import one_blas_thread, pool, thread_count

LARGE = 32  # sets of more items go through LAPACK
WORK_WORTH_A_THREAD = 500_000  # in floating-point operations; below, handing over costs more than it saves

Loop = Callable[[Floats, Floats, Items, Floats, Floats, Floats, bool], None]


@dataclass(frozen=True)
class Statistics:
    """Sums over baskets Y_i with weights w_i, under one kernel.

    `logdet` is Σ w_i log det L_{Y_i} and `delta` is Σ w_i B_i (L_{Y_i})⁻¹ B_iᵀ. For a kernel with eigenvalues near 1
    both are of the bordered matrix (`Kernel.bordered`), and `bordered_delta` has its rows and columns last.
    A basket of probability zero makes `logdet` −inf, adds nothing to delta, and counts in `impossible`.
    """

    weight: float
    logdet: float
    bordered_delta: Floats  # (n_items + n_border, n_items + n_border)
    n_items: int
    impossible: float

    @property
    def delta(self) -> Floats:
        return self.bordered_delta[: self.n_items, : self.n_items]

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.weight + other.weight,
            self.logdet + other.logdet,
            self.bordered_delta + other.bordered_delta,
            self.n_items,
            self.impossible + other.impossible,
        )


def sum_statistics(parts: Iterable[Statistics]) -> Statistics:
    """The statistics of all the parts together."""
    return reduce(add, parts)


def statistics(kernel: Kernel, baskets: Baskets, threads: int | None = None) -> Statistics:
    """Weight, log det and Delta, in O(n k³).

    The result is the same to the last bit for a given number of threads (by default, all cores).
    """
    scaled = _Scaled.of(kernel.bordered)
    logdet, parts = _over_threads(scaled, baskets, thread_count(threads), want_delta=True)
    upper = parts[0]
    for part in parts[1:]:
        upper += part
    delta = upper + upper.T
    np.fill_diagonal(delta, upper.diagonal())
    delta *= scaled.inverse_scale[:, None]
    delta *= scaled.inverse_scale
    return Statistics(
        weight=baskets.total_weight,
        logdet=_weighted_sum(baskets.weights, logdet),
        bordered_delta=delta,
        n_items=kernel.n_items,
        impossible=float(baskets.weights[np.isneginf(logdet)].sum()),
    )


def log_determinants(kernel: Kernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log det L_Y of every basket (of the bordered matrix, where eigenvalues are near 1)."""
    return _over_threads(_Scaled.of(kernel.bordered), baskets, thread_count(threads), want_delta=False)[0]


def log_probabilities(kernel: Kernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log P(Y) of every basket; −inf where it is zero."""
    return log_determinants(kernel, baskets, threads) + kernel.bordered.log_normaliser


def mean_log_likelihood(kernel: Kernel, baskets: Baskets, threads: int | None = None) -> float:
    """The weighted mean of log P(Y); one pass without Delta."""
    logdet = _weighted_sum(baskets.weights, log_determinants(kernel, baskets, threads))
    return logdet / baskets.total_weight + kernel.bordered.log_normaliser


def log_likelihood(kernel: Kernel, stats: Statistics) -> float:
    """The weighted mean of log P(Y): logdet/weight + Σ_j log(1 − λ_j)."""
    return stats.logdet / stats.weight + kernel.bordered.log_normaliser


@dataclass(frozen=True)
class _Scaled:
    """E scaled to a unit diagonal, so that a pivot is compared with 1."""

    matrix: Floats
    log_scale: Floats  # (n_items,) what scaling took from log det, an item
    inverse_scale: Floats  # (n_items + n_border,)
    log_empty: float  # log det of the border alone
    possible_sizes: range

    @classmethod
    def of(cls, bordered: Bordered) -> _Scaled:
        E, scale = bordered.matrix, bordered.scale
        n_items = len(scale)
        inverse = np.ones(len(E))
        with np.errstate(divide="ignore"):
            inverse[:n_items] = np.where(scale > 0, 1 / scale, 0)
            log_scale = 2 * np.log(scale)
            log_empty = float(np.log(-E.diagonal()[n_items:]).sum())
        matrix = E * inverse[:, None]
        matrix *= inverse
        return cls(matrix, log_scale, inverse, log_empty, bordered.possible_sizes)


def _over_threads(scaled: _Scaled, baskets: Baskets, threads: int, *, want_delta: bool) -> tuple[Floats, list[Floats]]:
    """log det of every basket, and one upper triangle of the sum of inverses a thread.

    Each thread takes the same share of every group of equal-size sets.
    """
    if baskets.n_items != len(scaled.log_scale):
        raise InputError(
            f"the kernel has {len(scaled.log_scale)} items, but the baskets have {baskets.n_items}; "
            "a DPP matches them by label (DPP.log_prob), a kernel cannot"
        )
    work = sum(len(group.rows) * group.sets.shape[1] ** 3 for group in baskets.by_size)
    threads = min(threads, 1 + work // WORK_WORTH_A_THREAD)
    logdet = np.empty(len(baskets))
    loop = _loop(scaled)
    shape = scaled.matrix.shape if want_delta else (0, 0)

    def share(thread: int) -> Floats:
        delta = np.zeros(shape)
        for group in baskets.by_size:
            n = len(group.rows)
            part = slice(n * thread // threads, n * (thread + 1) // threads)
            weights = baskets.weights[group.rows[part]]
            logdet[group.rows[part]] = _one_size(scaled, group.sets[part], weights, delta, loop)
        return delta

    largest = max((group.sets.shape[1] for group in baskets.by_size), default=0)
    with one_blas_thread() if largest > LARGE else nullcontext():
        return logdet, [share(0)] if threads == 1 else list(pool(threads).map(share, range(threads)))


def _loop(scaled: _Scaled) -> Loop:
    """The compiled loop, imported before threads start: importing in several at once may make them wait for ever."""
    if len(scaled.matrix) == len(scaled.log_scale):
        from dpplearn.statistics_loops import definite as loop
    else:
        from dpplearn.bordered_loops import bordered as loop
    chosen: Loop = loop
    return chosen


def _one_size(scaled: _Scaled, sets: Items, weights: Floats, delta: Floats, loop: Loop) -> Floats:
    """log det of sets of one size, whose weighted inverses are added into delta unless it is empty."""
    n, k = sets.shape
    if k not in scaled.possible_sizes:
        return np.full(n, -np.inf)
    if k == 0:
        _add_empty(scaled, float(weights.sum()), delta)
        return np.full(n, scaled.log_empty)
    logdet = np.empty(n)
    if k > LARGE:
        _large_sets(scaled, sets, weights, logdet, delta)
        return logdet
    loop(scaled.matrix, scaled.log_scale, sets, weights, logdet, delta, delta.size > 0)
    return logdet


def _add_empty(scaled: _Scaled, weight: float, delta: Floats) -> None:
    """The inverse of the border alone, −D⁻¹."""
    n_items = len(scaled.log_scale)
    if delta.size:
        border = np.arange(n_items, len(delta))
        delta[border, border] += weight / scaled.matrix[border, border]


def _large_sets(scaled: _Scaled, sets: Items, weights: Floats, logdet: Floats, delta: Floats) -> None:
    from scipy.linalg import lapack

    n_items = len(scaled.log_scale)
    border = np.arange(n_items, len(scaled.matrix))
    for row, basket in enumerate(sets):
        members = np.concatenate([basket, border])
        minor = scaled.matrix[np.ix_(members, members)]
        if len(border):
            factor, swaps, info = lapack.dgetrf(minor)
            pivots = np.abs(np.diag(factor))
        else:
            factor, info = lapack.dpotrf(minor, lower=1)
            pivots = np.diag(factor) ** 2
        if info != 0 or not pivots.min() >= len(members) * np.finfo(float).eps:
            logdet[row] = -np.inf
            continue
        logdet[row] = np.log(pivots).sum() + scaled.log_scale[basket].sum()
        if delta.size:
            inverse = lapack.dgetri(factor, swaps)[0] if len(border) else lapack.dpotri(factor, lower=1)[0].T
            delta[np.ix_(members, members)] += weights[row] * np.triu(inverse)


def _weighted_sum(weights: Floats, values: Floats) -> float:
    """Σ w x where a weight of zero silences even −inf."""
    counted = weights > 0
    return float(weights[counted] @ values[counted])
