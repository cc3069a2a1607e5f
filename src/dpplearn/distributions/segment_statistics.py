"""Sufficient statistics of baskets under a mixture with a shared interaction, and its normalising constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.blocks import LANES
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Sets
from dpplearn.distributions.passes import NO_DELTA, Share, over_threads
from dpplearn.utils.threads import thread_count

NO_NUMBERS = np.empty(0)  # passed where no result per basket is wanted
MINOR, SEGMENT = 8, 12  # times `Blocks.work`, and nanoseconds per basket and segment: what a pass takes
INVERSE = 0.1  # nanoseconds per segment and cube of the number of items


@dataclass(frozen=True)
class MinorSums:
    """Σ w log det C_Y and Δ = Σ w C_Y⁻ᵀ, scattered to (n_items, n_items)."""

    logdet: float
    delta: Floats

    def __add__(self, other: MinorSums) -> MinorSums:
        return MinorSums(self.logdet + other.logdet, self.delta + other.delta)


@dataclass(frozen=True)
class SegmentSums:
    """Σ w log Σ_c exp(bias_c + log_odds_c·x_Y); and with r_c how likely segment c is given a basket, Σ w r_c and
    Σ w r_c x_Y."""

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
    """Return what `normalisers` gives for C = I, without a matrix."""
    log_sum = np.logaddexp(0, log_odds)
    return OfItems(log_sum.sum(axis=1), np.exp(log_odds - log_sum))


def minor_sums(C: Floats, baskets: AnyBaskets, threads: int | None = None) -> MinorSums:
    """Return the sums over the minors of C."""
    return summed(_minor_sums, C, baskets=baskets, threads=threads)


def _minor_sums(C: Floats, baskets: Baskets, threads: int | None) -> MinorSums:

    def part(share: Share) -> tuple[float, Floats]:
        delta = np.zeros(C.shape)
        return _minors(C, baskets, delta, NO_NUMBERS, share), delta

    parts = over_threads(part, MINOR * baskets.blocks.work, threads, with_blas=False)
    delta = parts[0][1]
    for _, other in parts[1:]:
        delta += other
    return MinorSums(sum(logdet for logdet, _ in parts), delta)


def log_minors(C: Floats, baskets: Sets, threads: int | None = None) -> Floats:
    """Return log det C_Y of every basket."""
    each = np.zeros(len(baskets.blocks.weights))
    part = partial(_minors, C, baskets, NO_DELTA, each)
    over_threads(part, MINOR * baskets.blocks.work, threads, with_blas=False)
    return each[baskets.blocks.places]


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


def _minors(C: Floats, baskets: Sets, delta: Floats, each: Floats, share: Share) -> float:
    blocks = baskets.blocks
    work, logdet = np.empty(LANES * max(blocks.largest, 1) ** 2), np.empty(LANES)
    given = (C, blocks.items, blocks.weights, blocks.groups, share.thread, share.of)
    return float(loops("minors").minors_of(*given, delta, each, work, logdet))


def _segments(
    table: Floats, bias: Floats, baskets: Sets, counts: Floats, shares: Floats, each: Floats, share: Share
) -> float:
    rows = share.among(len(baskets))
    given = (baskets.indices, baskets.offsets, baskets.weights, table, bias, rows.start, rows.stop)
    return float(loops("segments").responsibilities(*given, counts, shares, each))
