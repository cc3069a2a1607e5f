"""Sufficient statistics of baskets: they add over baskets, threads, files and machines.

Under a symmetric DPP they are weight, log det and Delta. Under a mixture with a shared interaction they are sums over
minors and over responsibilities, and the normalising constants of its segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import iadd
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.blocks import LANES
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Sets
from dpplearn.distributions.determinants import doubtful_pivot, zero_pivot
from dpplearn.distributions.minors import (
    NO_DELTA,
    NO_NUMBERS,
    BorderedMinors,
    DefiniteMinors,
    Share,
    UnitDiagonal,
    over_threads,
)
from dpplearn.utils.threads import thread_count

if TYPE_CHECKING:
    from dpplearn.distributions.spectral import SpectralDPP

MINOR, SEGMENT = 8, 12  # costs of a pass: multiple of `Blocks.work`, and nanoseconds per basket and segment
INVERSE = 0.1  # nanoseconds per segment and cube of the number of items


@dataclass(frozen=True)
class Statistics:
    """Sums over baskets Y_i with weights w_i, under one kernel.

    `logdet` is Σ w_i log det L_{Y_i} and `delta` is Σ w_i B_i (L_{Y_i})⁻¹ B_iᵀ. For a kernel with eigenvalues near 1
    both are of the bordered matrix (`SpectralDPP.bordered`), and `bordered_delta` has its rows and columns last.
    A basket of probability zero makes `logdet` −inf, adds nothing to delta, and counts in `impossible`.

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
    bordered_delta: Floats  # (n_items + n_border, n_items + n_border)
    n_items: int
    impossible: float

    @property
    def delta(self) -> Floats:
        """Σ w_i B_i (L_{Y_i})⁻¹ B_iᵀ, one row and one column per item."""
        return self.bordered_delta[: self.n_items, : self.n_items]

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.weight + other.weight,
            self.logdet + other.logdet,
            self.bordered_delta + other.bordered_delta,
            self.n_items,
            self.impossible + other.impossible,
        )


def statistics(kernel: SpectralDPP, baskets: AnyBaskets, threads: int | None = None) -> Statistics:
    """Return weight, log det and Delta, in O(n k³).

    Parameters
    ----------
    kernel
        A kernel over the items of the baskets.
    baskets
        The data, with their weights; `Baskets` or `Parts`.
    threads
        Maximum number of threads, by default one per core. The result is reproducible for the same number.

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
    return summed(_statistics, _laid_out(kernel), baskets=baskets, threads=threads)


def _laid_out(kernel: SpectralDPP) -> SpectralDPP:
    """Compute the matrix of the minors once, so that all parts use the same one."""
    _ = kernel.bordered
    return kernel


def _statistics(kernel: SpectralDPP, baskets: Baskets, threads: int | None) -> Statistics:
    minors = set_minors(kernel, baskets, threads)
    logdet, left_out, delta = minors.sums()
    impossible = 0.0
    if left_out > 0:
        each = minors.each()
        values = _log_determinants(kernel, baskets, each)
        logdet = _weighted_sum(baskets.weights, values)
        impossible = float(baskets.weights[np.isneginf(values)].sum())
        _add_inverses(kernel, baskets, np.flatnonzero(np.isneginf(each) & np.isfinite(values)), delta)
    return Statistics(baskets.total_weight, logdet, delta, kernel.n_items, impossible)


def sums_under_L(L: Floats, baskets: AnyBaskets, threads: int | None = None) -> tuple[float, Floats]:
    """Return Σ w log det L_Y and Delta = Σ w B (L_Y)⁻¹ Bᵀ under L itself (C-contiguous float64).

    A set of positive weight with a pivot of rounding size makes the first −inf; Delta is without such sets.
    """
    return summed(_sums_under_L, L, baskets=baskets, threads=threads)


def _sums_under_L(L: Floats, baskets: Baskets, threads: int | None) -> tuple[float, Floats]:
    logdet, left_out, delta = _without_factor(L, baskets, threads).sums()
    return -np.inf if left_out > 0 else logdet, delta


def logdet_under_L(L: Floats, baskets: AnyBaskets, threads: int | None = None) -> float:
    """Return Σ w log det L_Y alone, in about half the time."""
    return summed(_logdet_under_L, L, baskets=baskets, threads=threads)


def _logdet_under_L(L: Floats, baskets: Baskets, threads: int | None) -> float:
    logdet, left_out = _without_factor(L, baskets, threads).logdet()
    return -np.inf if left_out > 0 else logdet


def set_minors(kernel: SpectralDPP, baskets: Sets, threads: int | None) -> DefiniteMinors | BorderedMinors:
    """Return the minors that give the probabilities of the sets."""
    bordered = kernel.bordered
    if bordered.n_border:
        return BorderedMinors(bordered, baskets, threads)
    return DefiniteMinors(kernel.unit_L, baskets, threads, rank=kernel.rank, limit=doubtful_pivot)


def _without_factor(L: Floats, baskets: Baskets, threads: int | None) -> DefiniteMinors:
    return DefiniteMinors(UnitDiagonal.of(L), baskets, threads, rank=len(L), limit=zero_pivot)


def _log_determinants(kernel: SpectralDPP, baskets: Baskets, each: Floats) -> Floats:
    """Return the log-determinant of every basket; those in doubt are computed from the factor of the kernel."""
    return kernel.log_prob_by_minors(each, baskets) - kernel.bordered.log_normaliser


def _add_inverses(kernel: SpectralDPP, baskets: Baskets, rows: Ints, delta: Floats) -> None:
    """Add the inverses of these baskets' minors, computed from the factor of L, because the minors lack digits."""
    border = np.arange(kernel.n_items, len(delta))
    for row in rows:
        members = np.concatenate([baskets.positions(row), border])
        if len(border):
            inverse = _inverse(kernel.bordered.matrix[np.ix_(members, members)])
        else:
            B = kernel.eigenvectors[members] * np.sqrt(kernel.odds)
            R_inverse = np.linalg.inv(np.linalg.qr(B.T, mode="r"))
            inverse = R_inverse @ R_inverse.T
        delta[np.ix_(members, members)] += baskets.weights[row] * inverse


def _inverse(minor: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(minor), dtype=np.float64)
    except np.linalg.LinAlgError:  # rounding may leave a pivot of exactly zero
        return np.asarray(np.linalg.pinv(minor, rtol=0, hermitian=True))


def mean_log_likelihood(kernel: SpectralDPP, baskets: AnyBaskets, threads: int | None = None) -> float:
    """Return the weighted mean of log P(Y); one pass without Delta."""
    logdet = summed(_logdet, _laid_out(kernel), baskets=baskets, threads=threads)
    return logdet / baskets.total_weight + kernel.bordered.log_normaliser


def _logdet(kernel: SpectralDPP, baskets: Baskets, threads: int | None) -> float:
    minors = set_minors(kernel, baskets, threads)
    logdet, left_out = minors.logdet()
    if not left_out > 0:
        return logdet
    values = minors.each()
    doubtful = np.flatnonzero(np.isneginf(values) & (baskets.weights > 0))
    if not np.isin(baskets.sizes[doubtful], kernel.size_range).all():
        return -np.inf
    for row in doubtful.tolist():  # one by one: the first impossible set decides, and line searches meet many of them
        values[row] = kernel.log_prob_by_factor(baskets.positions(row)[None])[0] - kernel.bordered.log_normaliser
        if values[row] == -np.inf:
            return -np.inf
    return _weighted_sum(baskets.weights, values)


def log_likelihood(kernel: SpectralDPP, stats: Statistics) -> float:
    """Return the weighted mean of log P(Y): logdet/weight + Σ_j log(1 − λ_j)."""
    return stats.logdet / stats.weight + kernel.bordered.log_normaliser


def _weighted_sum(weights: Floats, values: Floats) -> float:
    """Return Σ w x, in which terms of weight 0 do not count even if x is −inf."""
    counted = weights > 0
    return float(weights[counted] @ values[counted])


@dataclass(frozen=True)
class MinorSums:
    """Σ w log det C_Y and Δ = Σ w C_Y⁻ᵀ, scattered to (n_items, n_items)."""

    logdet: float
    delta: Floats

    def __add__(self, other: MinorSums) -> MinorSums:
        return MinorSums(self.logdet + other.logdet, self.delta + other.delta)


@dataclass(frozen=True)
class SegmentSums:
    """Σ w log Σ_c exp(bias_c + log_odds_c·x_Y); and with the responsibilities r_c, Σ w r_c and Σ w r_c x_Y."""

    log_sum: float
    shares: Floats  # (n_segments,)
    counts: Floats  # (n_segments, n_items)

    def __add__(self, other: SegmentSums) -> SegmentSums:
        return SegmentSums(self.log_sum + other.log_sum, self.shares + other.shares, self.counts + other.counts)


@dataclass(frozen=True)
class Normalisers:
    """log det(I + L_c) and H_c = (I + L_c)⁻¹ of all segments, whose L_c = D_c C D_c."""

    log_Z: Floats  # (n_segments,)
    H: Floats  # (n_segments, n_items or a few more, the same)
    d: Floats  # (n_segments, n_items), the D_c

    @property
    def marginals(self) -> Floats:
        """Inclusion probabilities K_ii = 1 − H_ii of every segment."""
        n = self.d.shape[1]
        return np.asarray(1 - np.diagonal(self.H, axis1=1, axis2=2)[:, :n])

    def weighted_sum(self, weights: Floats) -> Floats:
        """Return Σ_c w_c D_c H_c D_c."""
        n = self.d.shape[1]
        total = np.zeros((n, n))
        loops("inverses").weighted_sum(self.H, self.d, weights, total)
        return total


def normalisers(C: Floats, log_odds: Floats, threads: int | None = None) -> Normalisers:
    """Return the normalisers of segments that share the interaction C."""
    compiled, (m, n) = loops("inverses"), log_odds.shape
    padded = -(-n // compiled.BLOCK) * compiled.BLOCK
    log_Z, H, d = np.empty(m), np.empty((m, padded, padded)), np.exp(log_odds / 2)

    def part(share: Share) -> None:
        compiled.inverses_of(C, d, share.thread, share.of, H, log_Z, np.empty((compiled.BLOCK, padded)))

    over_threads(part, int(INVERSE * m * n**3), min(thread_count(threads), m), with_blas=False)
    return Normalisers(log_Z, H, d)


@dataclass(frozen=True)
class OfItems:
    """log Z and inclusion probabilities of segments in which items are independent."""

    log_Z: Floats  # (n_segments,)
    marginals: Floats  # (n_segments, n_items)


def of_items(log_odds: Floats) -> OfItems:
    """Return log Z and marginals of `normalisers` for C = I, without a matrix."""
    log_sum = np.logaddexp(0, log_odds)
    return OfItems(log_sum.sum(axis=1), np.exp(log_odds - log_sum))


def minor_sums(C: Floats, baskets: AnyBaskets, threads: int | None = None) -> MinorSums:
    """Return the sums over the minors of C."""
    return summed(_minor_sums, C, baskets=baskets, threads=threads)


def _minor_sums(C: Floats, baskets: Baskets, threads: int | None) -> MinorSums:
    logdets, parts = _minors(C, baskets, threads, want_delta=True)
    return MinorSums(float(baskets.blocks.weights @ logdets), reduce(iadd, parts))


def log_minors(C: Floats, baskets: Sets, threads: int | None = None) -> Floats:
    """Return log det C_Y of every basket."""
    return _minors(C, baskets, threads, want_delta=False)[0][baskets.blocks.places]


def _minors(C: Floats, baskets: Sets, threads: int | None, *, want_delta: bool) -> tuple[Floats, list[Floats]]:
    """Return log det C_Y of the set at every place of the blocks, and from each thread a part of Σ w C_Y⁻ᵀ."""
    blocks, logdets = baskets.blocks, np.zeros(len(baskets.blocks.weights))

    def part(share: Share) -> Floats:
        delta, work = np.zeros(C.shape) if want_delta else NO_DELTA, np.empty(LANES * max(blocks.largest, 1) ** 2)
        given = (C, blocks.items, blocks.weights, blocks.groups, share.thread, share.of)
        loops("minors").minors_of(*given, delta, logdets, work)
        return delta

    return logdets, over_threads(part, MINOR * blocks.work, threads, with_blas=False)


def segment_sums(log_odds: Floats, bias: Floats, baskets: AnyBaskets, threads: int | None = None) -> SegmentSums:
    """Return the sums over the responsibilities of the segments."""
    return summed(_segment_sums, log_odds, bias, baskets=baskets, threads=threads)


def _segment_sums(log_odds: Floats, bias: Floats, baskets: Baskets, threads: int | None) -> SegmentSums:
    table, m = np.ascontiguousarray(log_odds.T), len(bias)

    def part(share: Share) -> tuple[float, Floats, Floats]:
        counts, shares = np.zeros(table.shape), np.zeros(m)
        return _segments(table, bias, baskets, counts, shares, NO_NUMBERS, share), shares, counts

    parts = over_threads(part, SEGMENT * len(baskets) * m, threads, with_blas=False)
    log_sum, shares, counts = parts[0]
    for other in parts[1:]:
        log_sum, shares, counts = log_sum + other[0], shares + other[1], counts + other[2]
    return SegmentSums(log_sum, shares, counts.T)


def log_segments(log_odds: Floats, bias: Floats, baskets: Sets, threads: int | None = None) -> Floats:
    """Return log Σ_c exp(bias_c + log_odds_c·x_Y) of every basket."""
    table, each = np.ascontiguousarray(log_odds.T), np.empty(len(baskets))
    part = partial(_segments, table, bias, baskets, NO_DELTA, NO_NUMBERS, each)
    over_threads(part, SEGMENT * len(baskets) * len(bias), threads, with_blas=False)
    return each


def _segments(
    table: Floats, bias: Floats, baskets: Sets, counts: Floats, shares: Floats, each: Floats, share: Share
) -> float:
    rows = share.among(len(baskets))
    given = (baskets.indices, baskets.offsets, baskets.weights, table, bias, rows.start, rows.stop)
    return float(loops("segments").responsibilities(*given, counts, shares, each))
