"""Weight, log det and Delta of baskets under a kernel: all a learner needs to know of its data. Sums, so they add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import TypeVar

import numpy as np

from dpplearn.arrays import Floats, Ints, Items, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.blocks import LANES
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.compiled import loops
from dpplearn.kernels.symmetric.independence import doubtful_pivot, log_determinant, two_smallest, zero_pivot
from dpplearn.kernels.symmetric.kernel import Bordered, Kernel
from dpplearn.tools.threads import one_blas_thread, pool, thread_count

LARGE = 100  # sets of more items go through LAPACK: few of them fill a processor
LARGE_BORDERED = 32  # the same where the matrix has a border
WORK_WORTH_A_THREAD = 300_000  # in nanoseconds, about; below, handing over costs more than it saves

NOTHING, NO_DELTA = np.empty(0), np.empty((0, 0))

BorderedLoop = Callable[[Floats, Floats, Items, Floats, float, Floats, Floats, bool], None]
Limit = Callable[[int, int], float]  # from the numbers of all items and of a set's to the smallest pivot allowed
Sums = tuple[float, float]  # Σ w log det over the sets whose pivots are above the limit, and Σ w over the others
Part = TypeVar("Part")


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
    bordered = kernel.bordered
    if bordered.n_border:
        logdet, left_out, delta = _bordered_sums(bordered, baskets, threads)
    else:
        logdet, left_out, delta = _sums(_UnitDiagonal.of(kernel, baskets), threads)
    impossible = 0.0
    if left_out > 0:
        values = _pivot_determinants(kernel, baskets, threads)
        decided = _decide(kernel, baskets, values)
        logdet = _weighted_sum(baskets.weights, values)
        impossible = float(baskets.weights[np.isneginf(values)].sum())
        _add_decided(kernel, baskets, decided[np.isfinite(values[decided])], delta)
    return Statistics(baskets.total_weight, logdet, delta, kernel.n_items, impossible)


def sums_under_L(L: Floats, baskets: Baskets, threads: int | None = None) -> tuple[float, Floats]:
    """Σ w log det L_Y and Delta = Σ w B (L_Y)⁻¹ Bᵀ, for a learner that holds L itself (C-contiguous float64).

    A set of positive weight with a pivot of rounding size makes the first −inf; Delta is without such sets.
    """
    logdet, impossible, delta = _sums(_UnitDiagonal.without_factor(L, baskets), threads)
    return -np.inf if impossible > 0 else logdet, delta


def logdet_under_L(L: Floats, baskets: Baskets, threads: int | None = None) -> float:
    """Σ w log det L_Y alone, in about half the time."""
    logdet, impossible = _logdet(_UnitDiagonal.without_factor(L, baskets), threads)
    return -np.inf if impossible > 0 else logdet


def log_determinants(kernel: Kernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log det L_Y of every basket (of the bordered matrix, where eigenvalues are near 1)."""
    values = _pivot_determinants(kernel, baskets, threads)
    _decide(kernel, baskets, values)
    return values


def _pivot_determinants(kernel: Kernel, baskets: Baskets, threads: int | None) -> Floats:
    """The same where pivots are above the limit, and −inf elsewhere."""
    if kernel.bordered.n_border:
        return _bordered_over_threads(_Scaled.of(kernel.bordered), baskets, threads, want_delta=False)[0]
    scaled, each = _UnitDiagonal.of(kernel, baskets), np.zeros(len(baskets.blocks.weights))
    _logdet(scaled, threads, each)
    rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
    of_scale = np.bincount(rows, scaled.log_scale[baskets.indices], len(baskets))
    return np.where(baskets.sizes <= scaled.rank, each[baskets.blocks.places] + of_scale, -np.inf)


def _decide(kernel: Kernel, baskets: Baskets, values: Floats, *, until_zero: bool = False) -> Ints:
    """Find out by the kernel's factor what pivots left in doubt, and which baskets those were.

    With `until_zero` only until one that counts turns out to be impossible.
    """
    doubtful = np.flatnonzero(np.isneginf(values) & (baskets.weights > 0 if until_zero else True))
    sizes, possible = baskets.sizes[doubtful], kernel.possible_sizes
    of_possible_size = (sizes >= possible[0]) & (sizes <= possible[-1])
    for row in () if until_zero and not of_possible_size.all() else doubtful[of_possible_size]:
        values[row] = log_determinant(kernel, baskets.positions(row))
        if until_zero and values[row] == -np.inf:
            break
    return doubtful[of_possible_size]


def _add_decided(kernel: Kernel, baskets: Baskets, rows: Ints, delta: Floats) -> None:
    """Add the inverses of these baskets' minors, of L from its factor, as the minor has too few digits of it."""
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


def log_probabilities(
    kernel: Kernel, baskets: Baskets, threads: int | None = None, *, nonempty: bool = False
) -> Floats:
    """log P(Y) of every basket, or log P(Y given Y ≠ ∅); −inf where it is zero, NaN where no set but ∅ is possible."""
    values = log_determinants(kernel, baskets, threads) + kernel.bordered.log_normaliser
    if not nonempty:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(baskets.sizes > 0, values - log_nonempty(kernel), -np.inf)


def log_nonempty(kernel: Kernel) -> float:
    """log P(Y ≠ ∅) = log(1 − Π_j (1 − λ_j)); −inf where the empty set is all there is."""
    with np.errstate(divide="ignore"):
        log_empty = float(np.log1p(-kernel.eigenvalues).sum())
        return float(np.log(-np.expm1(log_empty)))


def mean_log_likelihood(
    kernel: Kernel, baskets: Baskets, threads: int | None = None, *, nonempty: bool = False
) -> float:
    """The weighted mean of log P(Y), or of log P(Y given Y ≠ ∅); one pass without Delta."""
    if nonempty:
        if np.any(baskets.weights[baskets.sizes == 0] > 0):
            return -np.inf
        return mean_log_likelihood(kernel, baskets, threads) - log_nonempty(kernel)
    logdet, left_out = 0.0, 1.0
    if not kernel.bordered.n_border:
        logdet, left_out = _logdet(_UnitDiagonal.of(kernel, baskets), threads)
    if left_out > 0:
        values = _pivot_determinants(kernel, baskets, threads)
        _decide(kernel, baskets, values, until_zero=True)
        logdet = _weighted_sum(baskets.weights, values)
    return logdet / baskets.total_weight + kernel.bordered.log_normaliser


def log_likelihood(kernel: Kernel, stats: Statistics) -> float:
    """The weighted mean of log P(Y): logdet/weight + Σ_j log(1 − λ_j)."""
    return stats.logdet / stats.weight + kernel.bordered.log_normaliser


def _sums(scaled: _UnitDiagonal, threads: int | None) -> tuple[float, float, Floats]:
    """Σ w log det L_Y, the weight of the sets left out, among them all of more than `rank` items, and Delta."""

    def share(thread: int, of: int) -> tuple[float, float, Floats]:
        delta = np.zeros(scaled.C.shape)
        return *scaled.sums(thread, of, delta, NOTHING), delta

    parts = scaled.over_threads(share, threads)
    logdet, left_out, delta = parts[0]
    for part in parts[1:]:
        logdet, left_out = logdet + part[0], left_out + part[1]
        delta += part[2]
    return logdet + scaled.of_scale, left_out, delta


def _logdet(scaled: _UnitDiagonal, threads: int | None, each: Floats = NOTHING) -> Sums:
    """Σ w log det L_Y and the weight of the sets left out; and log det C_Y of every set of two items and more, −inf
    where it was left out, unless `each` is empty."""
    parts = scaled.over_threads(lambda thread, of: scaled.sums(thread, of, NO_DELTA, each), threads)
    return sum(part[0] for part in parts) + scaled.of_scale, sum(part[1] for part in parts)


class _UnitDiagonal:
    """L scaled to a unit diagonal, so that a pivot is compared with 1, beside the sets as the loops read them."""

    def __init__(self, L: Floats, baskets: Baskets, rank: int, limit: Limit) -> None:
        n_items = len(L)
        _check_items(n_items, baskets)
        self.baskets, self.blocks, self.loops = baskets, baskets.blocks, loops("definite")
        self.C, self.inverse, self.log_scale = np.empty((n_items, n_items)), np.empty(n_items), np.empty(n_items)
        blocks = self.blocks
        self.of_scale = self.loops.scale(L, blocks.item_weights, self.C, self.inverse, self.log_scale)
        smallest = _smallest_pivots(limit, n_items, LARGE)
        self.given = (self.C, self.inverse, blocks.alone, blocks.items, blocks.weights, blocks.groups, smallest, rank)
        self.rank, self.limit, self.large = rank, limit, blocks.largest > LARGE

    @classmethod
    def of(cls, kernel: Kernel, baskets: Baskets) -> _UnitDiagonal:
        return cls(kernel.L, baskets, kernel.rank, doubtful_pivot)

    @classmethod
    def without_factor(cls, L: Floats, baskets: Baskets) -> _UnitDiagonal:
        return cls(L, baskets, len(L), zero_pivot)

    def sums(self, thread: int, of: int, delta: Floats, each: Floats) -> Sums:
        """A thread's part of Σ w log det C_Y and of the weight of the sets left out; Delta or every log det C_Y."""
        k = min(self.blocks.largest, self.rank, LARGE)
        work = np.empty(LANES * (2 + (k * (k + 3) if k > self.loops.SMALL else 0)))
        large = self.large_sets(thread, of, delta, each) if self.large else (0.0, 0.0)
        small = self.loops.definite(*self.given, thread, of, delta, each, work)
        return large[0] + small[0], large[1] + small[1]

    def over_threads(self, share: Callable[[int, int], Part], threads: int | None) -> list[Part]:
        """share(thread, of how many) of every thread, each of which takes the same share of the sets of every size."""
        most = 1 + self.blocks.work // WORK_WORTH_A_THREAD
        if threads is not None or most > 1:
            most = min(most, thread_count(threads))
        with one_blas_thread() if self.large else nullcontext():
            if most == 1:
                return [share(0, 1)]
            others = [pool(most).submit(share, thread, most) for thread in range(1, most)]
            return [share(0, most), *(other.result() for other in others)]

    def large_sets(self, thread: int, of: int, delta: Floats, each: Floats) -> Sums:
        """The same of the sets that go through LAPACK."""
        logdet = left_out = 0.0
        for group in self.baskets.by_size:
            n, k = group.sets.shape
            if LARGE < k <= self.rank:
                part = slice(n * thread // of, n * (thread + 1) // of)
                sets, weights = group.sets[part], self.baskets.weights[group.rows[part]]
                values = _large_sets(self.C, len(self.C), sets, weights, self.limit(len(self.C), k), delta)
                trusted = np.isfinite(values)
                logdet += float(weights[trusted] @ values[trusted])
                left_out += float(weights[~trusted].sum())
                if each.size:
                    each[self.blocks.places[group.rows[part]]] = values
        return logdet, left_out


@lru_cache(maxsize=64)
def _smallest_pivots(limit: Limit, n_items: int, largest: int) -> Floats:
    """For sets of 0 to `largest` items."""
    return read_only(np.array([limit(n_items, k) for k in range(largest + 1)]))


def _check_items(n_items: int, baskets: Baskets) -> None:
    if baskets.n_items != n_items:
        raise InputError(
            f"the kernel has {n_items} items, but the baskets have {baskets.n_items}; "
            "a DPP matches them by label (DPP.log_prob), a kernel cannot"
        )


def _large_sets(matrix: Floats, n_items: int, sets: Items, weights: Floats, smallest: float, delta: Floats) -> Floats:
    """log|det| of the minors Y ∪ border, −inf where a pivot is below the smallest allowed; weighted inverses into the
    upper triangle of delta, unless it is empty."""
    from scipy.linalg import lapack

    border = np.arange(n_items, len(matrix))
    logdet = np.full(len(sets), -np.inf)
    for row, basket in enumerate(sets):
        members = np.concatenate([basket, border])
        minor = matrix[np.ix_(members, members)]
        if len(border):
            factor, swaps, info = lapack.dgetrf(minor)
            pivots = np.abs(np.diag(factor))
            least = two_smallest(pivots)
        else:
            factor, info = lapack.dpotrf(minor, lower=1)
            pivots = np.diag(factor) ** 2
            least = float(pivots.min())
        if info != 0 or not least >= smallest:
            continue
        logdet[row] = np.log(pivots).sum()
        if delta.size:
            inverse = lapack.dgetri(factor, swaps)[0] if len(border) else lapack.dpotri(factor, lower=1)[0].T
            delta[np.ix_(members, members)] += weights[row] * np.triu(inverse)
    return logdet


def _weighted_sum(weights: Floats, values: Floats) -> float:
    """Σ w x where a weight of zero silences even −inf."""
    counted = weights > 0
    return float(weights[counted] @ values[counted])


def _bordered_sums(bordered: Bordered, baskets: Baskets, threads: int | None) -> tuple[float, float, Floats]:
    """The same as `_sums` of the bordered matrix."""
    scaled = _Scaled.of(bordered)
    values, parts = _bordered_over_threads(scaled, baskets, threads, want_delta=True)
    upper = reduce(add, parts)
    delta = upper + upper.T
    np.fill_diagonal(delta, upper.diagonal())
    delta *= scaled.inverse_scale[:, None]
    delta *= scaled.inverse_scale
    left_out = float(baskets.weights[np.isneginf(values)].sum())
    return _weighted_sum(baskets.weights, values), left_out, delta


@dataclass(frozen=True)
class _Scaled:
    """E scaled to A_ii + |U_i|² = 1, so that a pivot is compared with 1."""

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


def _bordered_over_threads(
    scaled: _Scaled, baskets: Baskets, threads: int | None, *, want_delta: bool
) -> tuple[Floats, list[Floats]]:
    """log det of every basket, and one upper triangle of the sum of inverses a thread.

    Each thread takes the same share of every group of equal-size sets.
    """
    _check_items(len(scaled.log_scale), baskets)
    loop = loops("bordered").bordered
    n_border = len(scaled.matrix) - baskets.n_items
    work = sum(len(group.rows) * (group.sets.shape[1] + n_border) ** 3 for group in baskets.by_size)
    of = min(thread_count(threads), 1 + work // WORK_WORTH_A_THREAD)
    logdet = np.empty(len(baskets))

    def share(thread: int) -> Floats:
        delta = np.zeros(scaled.matrix.shape if want_delta else (0, 0))
        for group in baskets.by_size:
            n = len(group.rows)
            rows = group.rows[n * thread // of : n * (thread + 1) // of]
            sets = group.sets[n * thread // of : n * (thread + 1) // of]
            logdet[rows] = _bordered_sets(scaled, sets, baskets.weights[rows], delta, loop)
        return delta

    largest = max((group.sets.shape[1] for group in baskets.by_size), default=0)
    with one_blas_thread() if largest > LARGE_BORDERED else nullcontext():
        return logdet, [share(0)] if of == 1 else list(pool(of).map(share, range(of)))


def _bordered_sets(scaled: _Scaled, sets: Items, weights: Floats, delta: Floats, loop: BorderedLoop) -> Floats:
    """log det of sets of one size, whose weighted inverses are added into delta unless it is empty."""
    n, k = sets.shape
    if k not in scaled.possible_sizes:
        return np.full(n, -np.inf)
    if k == 0:
        _add_empty(scaled, float(weights.sum()), delta)
        return np.full(n, scaled.log_empty)
    smallest = doubtful_pivot(len(scaled.log_scale), len(scaled.matrix) - len(scaled.log_scale) + k)
    if k > LARGE_BORDERED:
        large = _large_sets(scaled.matrix, len(scaled.log_scale), sets, weights, smallest, delta)
        return np.asarray(large + scaled.log_scale[sets].sum(axis=1))
    logdet = np.empty(n)
    loop(scaled.matrix, scaled.log_scale, sets, weights, smallest, logdet, delta, delta.size > 0)
    return logdet


def _add_empty(scaled: _Scaled, weight: float, delta: Floats) -> None:
    """The inverse of the border alone, −D⁻¹."""
    if delta.size:
        border = np.arange(len(scaled.log_scale), len(delta))
        delta[border, border] += weight / scaled.matrix[border, border]
