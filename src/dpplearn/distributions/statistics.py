"""Sufficient statistics of baskets: they add over baskets, threads, files and machines.

Under a symmetric DPP they are weight, log det and Delta. Under a mixture with a shared interaction they are sums over
minors and over responsibilities, and the normalising constants of its segments.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Self

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.determinants import zero_pivot
from dpplearn.distributions.minors import (
    NO_DELTA,
    Share,
    check_items,
    minors_of,
    over_threads,
    symmetric_sums,
    weighted_sum,
    whole,
)
from dpplearn.utils.threads import thread_count

if TYPE_CHECKING:
    from dpplearn.distributions.spectral import SpectralDPP

SEGMENT = 12  # nanoseconds per basket and segment
INVERSE = 0.1  # nanoseconds per segment and cube of the number of items


@dataclass(frozen=True)
class Additive:
    """Sums over baskets; those of two sets of baskets add, field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True)
class Statistics(Additive):
    """Sums over baskets Y_i with weights w_i, under one kernel.

    `logdet` is Σ w_i log det L_{Y_i} and `delta` is Σ w_i B_i (L_{Y_i})⁻¹ B_iᵀ. For a kernel with eigenvalues near 1
    both are of the bordered matrix (`SpectralDPP.bordered`), and the rows and columns of the border are last.
    A basket of probability zero makes `logdet` −inf and adds nothing to delta.

    Examples
    --------
    >>> from dpplearn.distributions.spectral import SpectralDPP
    >>> kernel = SpectralDPP.from_L([[1.0, 0.0], [0.0, 0.5]])
    >>> parts = [statistics(kernel, Baskets.from_lists([Y], n_items=2)) for Y in ([0], [0, 1])]
    >>> (parts[0] + parts[1]).delta.round(6).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    weight: float
    logdet: float
    delta: Floats  # (n_items + n_border, n_items + n_border)


def statistics(
    kernel: SpectralDPP, baskets: AnyBaskets, threads: int | None = None, *, want_delta: bool = True
) -> Statistics:
    """Return weight, log det and Delta, in O(n k³).

    Parameters
    ----------
    kernel
        A kernel over the items of the baskets.
    baskets
        The data, with their weights; `Baskets` or `Parts`.
    threads
        Maximum number of threads, by default one per core. The result is reproducible for the same number.
    want_delta
        Whether to compute Delta. Without it, a pass takes about half the time.

    Returns
    -------
    Statistics

    Examples
    --------
    >>> from dpplearn.distributions.spectral import SpectralDPP
    >>> stats = statistics(SpectralDPP.from_L([[1.0, 0.5], [0.5, 1.0]]), Baskets.from_lists([[0], [0, 1]]))
    >>> round(stats.logdet, 4)
    -0.2877
    """
    _ = kernel.bordered  # computed once for all parts
    return summed(_statistics, kernel, want_delta, baskets=baskets, threads=threads)


def _statistics(kernel: SpectralDPP, want_delta: bool, baskets: Baskets, threads: int | None) -> Statistics:
    minors = kernel.bordered
    sums = symmetric_sums(minors, kernel.size_range, baskets, threads, want_delta=want_delta)
    logdet, delta = sums.logdet(), sums.delta
    # In line searches, many kernels make the sizes of some baskets impossible.
    if logdet == -np.inf and (want_delta or np.isin(baskets.sizes[baskets.weights > 0], kernel.size_range).all()):
        by_minors = sums.each()  # sets in doubt are computed from the factor of the kernel
        values = kernel.log_prob_by_minors(by_minors, baskets) - minors.log_constant
        logdet = weighted_sum(baskets.weights, values)
        if want_delta:
            _add_inverses(kernel, baskets, np.flatnonzero(np.isneginf(by_minors) & np.isfinite(values)), delta)
    return Statistics(baskets.total_weight, logdet, delta)


def _add_inverses(kernel: SpectralDPP, baskets: Baskets, rows: Ints, delta: Floats) -> None:
    """Add the inverses of these baskets' minors, computed from the factor of L, because the minors lack digits."""
    border = np.arange(kernel.n_items, len(delta))
    for row in rows:
        members = np.concatenate([baskets.positions(row), border])
        if len(border):
            inverse = _inverse(kernel.bordered.matrix[np.ix_(members, members)])
        else:
            half = np.linalg.pinv(kernel.eigenvectors[members] * np.sqrt(kernel.odds), rtol=0)
            inverse = half.T @ half
        delta[np.ix_(members, members)] += baskets.weights[row] * inverse


def _inverse(minor: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(minor), dtype=np.float64)
    except np.linalg.LinAlgError:  # rounding may leave a pivot of exactly zero
        return np.asarray(np.linalg.pinv(minor, rtol=0, hermitian=True))


def log_likelihood(kernel: SpectralDPP, stats: Statistics) -> float:
    """Return the weighted mean of log P(Y): logdet/weight + Σ_j log(1 − λ_j)."""
    return stats.logdet / stats.weight + kernel.bordered.log_constant


def mean_log_likelihood(kernel: SpectralDPP, baskets: AnyBaskets, threads: int | None = None) -> float:
    """Return the weighted mean of log P(Y); one pass without Delta."""
    return log_likelihood(kernel, statistics(kernel, baskets, threads, want_delta=False))


def sums_under_L(
    L: Floats, baskets: AnyBaskets, threads: int | None = None, *, want_delta: bool = True
) -> tuple[float, Floats]:
    """Return Σ w log det L_Y and Delta = Σ w B (L_Y)⁻¹ Bᵀ under L itself (C-contiguous float64).

    A set of positive weight with a pivot of rounding size makes the first −inf; Delta is without such sets. Without
    Delta, the first takes half the time.
    """
    return summed(_sums_under_L, L, want_delta, baskets=baskets, threads=threads)


def _sums_under_L(L: Floats, want_delta: bool, baskets: Baskets, threads: int | None) -> tuple[float, Floats]:
    n_items, blocks, diagonal = len(L), baskets.blocks, L.diagonal()
    check_items(n_items, baskets)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale, log_diagonal = 1 / np.sqrt(diagonal), np.log(diagonal)
        impossible = ~((scale > 0) & (scale < np.inf))
        scale[impossible], log_diagonal[impossible] = 0.0, -np.inf
        C = L * scale[:, None]
        C *= scale  # pivots of 0 or NaN leave out the sets of items that cannot occur
    smallest = zero_pivot(n_items, np.arange(blocks.largest + 1))
    log_dets, upper = minors_of(C, blocks, threads, n_symmetric=n_items, smallest=smallest, want_delta=want_delta)
    logdet = weighted_sum(blocks.weights, log_dets) + weighted_sum(baskets.item_weights, log_diagonal)
    return logdet, whole(upper, scale) if want_delta else upper


@dataclass(frozen=True)
class SegmentSums(Additive):
    """Σ w log Σ_c exp(bias_c + log_odds_c·x_Y); and with the responsibilities r_c, Σ w r_c and Σ w r_c x_Y."""

    log_sum: float
    shares: Floats  # (n_segments,)
    counts: Floats  # (n_segments, n_items)


@dataclass(frozen=True)
class Normalisers:
    """log det(I + L_c) and K_c,ii of segments with L_c = D_c C D_c, and H_c = (I + L_c)⁻¹ unless C is I."""

    log_Z: Floats  # (n_segments,)
    marginals: Floats  # (n_segments, n_items)
    H: Floats  # (n_segments, n_items or a few more, the same)
    d: Floats  # (n_segments, n_items), the D_c

    def weighted_sum(self, weights: Floats) -> Floats:
        """Return Σ_c w_c D_c H_c D_c."""
        n = self.d.shape[1]
        return np.asarray(np.einsum("ci,cij,cj->ij", weights[:, None] * self.d, self.H[:, :n, :n], self.d))


def normalisers(C: Floats, log_odds: Floats, threads: int | None = None) -> Normalisers:
    """Return the normalisers of segments that share the interaction C."""
    compiled, (m, n) = loops("inverses"), log_odds.shape
    padded = -(-n // compiled.BLOCK) * compiled.BLOCK
    log_Z, H, d = np.empty(m), np.empty((m, padded, padded)), np.exp(log_odds / 2)

    def part(share: Share) -> None:
        mine = share.among(m)
        compiled.inverses_of(C, d, mine.start, mine.stop, H, log_Z)

    over_threads(part, int(INVERSE * m * n**3), min(thread_count(threads), m), with_blas=False)
    return Normalisers(log_Z, 1 - np.diagonal(H, axis1=1, axis2=2)[:, :n], H, d)


def of_items(log_odds: Floats) -> Normalisers:
    """Return the normalisers of segments in which items are independent, without H."""
    log_sum = np.logaddexp(0, log_odds)
    return Normalisers(log_sum.sum(axis=1), np.exp(log_odds - log_sum), np.empty((0, 0, 0)), np.empty((0, 0)))


def minor_sums(C: Floats, baskets: AnyBaskets, threads: int | None = None) -> tuple[float, Floats]:
    """Return Σ w log det C_Y, and Δ = Σ w C_Y⁻ᵀ, scattered to (n_items, n_items)."""
    return summed(_minor_sums, C, baskets=baskets, threads=threads)


def _minor_sums(C: Floats, baskets: Baskets, threads: int | None) -> tuple[float, Floats]:
    log_dets, delta = _general_minors(C, baskets, threads, want_delta=True)
    return float(baskets.blocks.weights @ log_dets), delta


def log_minors(C: Floats, baskets: Baskets, threads: int | None = None) -> Floats:
    """Return log det C_Y of every basket."""
    return _general_minors(C, baskets, threads, want_delta=False)[0][baskets.blocks.places]


def _general_minors(C: Floats, baskets: Baskets, threads: int | None, *, want_delta: bool) -> tuple[Floats, Floats]:
    smallest = np.zeros(baskets.blocks.largest + 1)
    return minors_of(C, baskets.blocks, threads, n_symmetric=0, smallest=smallest, want_delta=want_delta)


def segment_sums(log_odds: Floats, bias: Floats, baskets: AnyBaskets, threads: int | None = None) -> SegmentSums:
    """Return the sums over the responsibilities of the segments."""
    return summed(_segment_sums, log_odds, bias, baskets=baskets, threads=threads)


def _segment_sums(log_odds: Floats, bias: Floats, baskets: Baskets, threads: int | None) -> SegmentSums:
    m, n = log_odds.shape

    def part(share: Share) -> SegmentSums:
        counts, shares = np.zeros((n, m)), np.zeros(m)
        log_sum = _segments(log_odds, bias, baskets, counts, shares, np.empty(0), share)
        return SegmentSums(log_sum, shares, counts.T)

    return reduce(add, over_threads(part, SEGMENT * len(baskets) * m, threads, with_blas=False))


def log_segments(log_odds: Floats, bias: Floats, baskets: Baskets, threads: int | None = None) -> Floats:
    """Return log Σ_c exp(bias_c + log_odds_c·x_Y) of every basket."""
    each = np.empty(len(baskets))
    part = partial(_segments, log_odds, bias, baskets, NO_DELTA, np.empty(0), each)
    over_threads(part, SEGMENT * len(baskets) * len(bias), threads, with_blas=False)
    return each


def _segments(
    log_odds: Floats, bias: Floats, baskets: Baskets, counts: Floats, shares: Floats, each: Floats, share: Share
) -> float:
    rows, table = share.among(len(baskets)), np.ascontiguousarray(log_odds.T)
    given = (baskets.indices, baskets.offsets, baskets.weights, table, bias, rows.start, rows.stop)
    return float(loops("segments").responsibilities(*given, counts, shares, each))
