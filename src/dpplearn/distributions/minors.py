"""The minors of baskets under a symmetric kernel, and passes over baskets that are shared by threads.

The minors of a positive semidefinite L are factored by Cholesky. Where eigenvalues are near 1, those of the indefinite
bordered matrix are factored by LU with row pivots. In a pass every thread takes the same share of the sets of every
size. So the threads end together, and the result is reproducible for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, lru_cache, reduce
from operator import iadd
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from dpplearn.arrays import Floats, Items, read_only
from dpplearn.data.blocks import LANES
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Sets
from dpplearn.distributions.determinants import doubtful_pivot
from dpplearn.errors import InputError
from dpplearn.utils.text import count
from dpplearn.utils.threads import one_blas_thread, pool, thread_count

if TYPE_CHECKING:
    from dpplearn.distributions.spectral import Bordered

WORK_WORTH_A_THREAD = 300_000  # in nanoseconds, about; below, handing over costs more than it saves
NO_NUMBERS, NO_DELTA = np.empty(0), np.empty((0, 0))  # for results that a pass does not want

Part = TypeVar("Part")
Limit = Callable[[int, int], float]  # from the numbers of all items and of a set's to the smallest pivot allowed


def check_items(n_items: int, baskets: Sets) -> None:
    """Raise `InputError` if sets are over another number of items; compiled loops check no bounds."""
    if baskets.n_items != n_items:
        raise InputError(f"the distribution has {count(n_items, 'item')}, but the baskets have {baskets.n_items}")


class Share(NamedTuple):
    """The share of one of several threads."""

    thread: int
    of: int

    def among(self, n: int) -> slice:
        """Return its part of n sets, or blocks of sets, of one size."""
        return slice(n * self.thread // self.of, n * (self.thread + 1) // self.of)


ALL, NO_LIMIT = Share(0, 1), nullcontext()


def over_threads(part: Callable[[Share], Part], work: int, threads: int | None, *, with_blas: bool) -> list[Part]:
    """Return what `part` returns for each share, in order; `work` is the length of the pass in nanoseconds.

    If the work calls BLAS, BLAS is limited to one thread, because these threads share the cores already.
    """
    most = 1 + work // WORK_WORTH_A_THREAD
    if threads is not None or most > 1:
        most = min(most, thread_count(threads))
    with one_blas_thread() if with_blas else NO_LIMIT:
        if most == 1:
            return [part(ALL)]
        others = [pool(most).submit(part, Share(thread, most)) for thread in range(1, most)]
        return [part(Share(0, most)), *(other.result() for other in others)]


class UnitDiagonal(NamedTuple):
    """A kernel L, scaled to a unit diagonal. Items that cannot occur have rows of NaN."""

    C: Floats  # (n_items, n_items)
    inverse: Floats  # (n_items,) 1/√L_ii, 0 for items that cannot occur
    log_scale: Floats  # (n_items,) log L_ii

    @classmethod
    def of(cls, L: Floats) -> UnitDiagonal:
        square = L.diagonal()
        possible = (square > 0) & (square < np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(possible, 1 / np.sqrt(square), np.nan)
            log_scale = np.where(possible, np.log(square), -np.inf)
        C = L * inverse[:, None]
        C *= inverse
        np.fill_diagonal(C, np.where(possible, 1.0, np.nan))
        return cls(C, np.where(possible, inverse, 0), log_scale)


class DefiniteMinors:
    """The minors L_Y of baskets. L is scaled to a unit diagonal, so that pivots are compared with 1.

    Sets with a pivot below the limit, and sets of more than `rank` items, are left out.
    """

    def __init__(self, L: UnitDiagonal, baskets: Sets, threads: int | None, *, rank: int, limit: Limit) -> None:
        check_items(len(L.C), baskets)
        self.baskets, self.blocks, self.threads, self.rank = baskets, baskets.blocks, threads, rank
        self.C, self.inverse, self.log_scale = L
        self.smallest = _smallest_pivots(limit, len(L.C), self.blocks.largest)

    def sums(self) -> tuple[float, float, Floats]:
        """Return Σ w log det L_Y, the weight of the sets left out, and Delta without them."""
        logdets, parts = self._pass(want_delta=True)
        upper = reduce(iadd, parts)
        alone = np.where(self.inverse > 0, self.blocks.alone, 0)
        upper[np.arange(len(upper)), np.arange(len(upper))] += alone
        return *self._summed(logdets), _whole(upper, self.inverse)

    def logdet(self) -> tuple[float, float]:
        """Return Σ w log det L_Y and the weight of the sets left out, in about half the time."""
        return self._summed(self._pass(want_delta=False)[0])

    def each(self) -> Floats:
        """Return log det L_Y of every basket, −inf where it is left out."""
        baskets, logdets = self.baskets, self._pass(want_delta=False)[0]
        rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
        of_scale = np.bincount(rows, self.log_scale[baskets.indices], len(baskets))
        return np.asarray(logdets[self.blocks.places] + of_scale)

    def _summed(self, logdets: Floats) -> tuple[float, float]:
        """Return Σ w log det L_Y and the weight of the sets left out, from log det C_Y of every place."""
        logdet, left_out = _weighted(self.blocks.weights, logdets)
        counted = self.blocks.item_weights > 0
        of_scale = float(self.blocks.item_weights[counted] @ self.log_scale[counted])
        return logdet + of_scale, left_out + float(self.blocks.alone[self.inverse == 0].sum())

    def _pass(self, *, want_delta: bool) -> tuple[Floats, list[Floats]]:
        """Return log det C_Y of the set at every place, and from each thread an upper triangle of Σ w (C_Y)⁻¹."""
        blocks, compiled = self.blocks, loops("definite")
        sizes, n_blocks = blocks.groups[:, 0], blocks.groups[:, 3]
        # The loop leaves out sets of no item and of one, whose determinant is 1.
        determinants = np.repeat((sizes < 2).astype(float), LANES * n_blocks)
        exponents = np.zeros(len(determinants))
        given = (self.C, blocks.items, blocks.weights, blocks.groups, self.smallest, self.rank)

        def part(share: Share) -> Floats:
            delta = np.zeros(self.C.shape) if want_delta else NO_DELTA
            k = min(blocks.largest, self.rank)
            work = np.empty(LANES * k * (k + 3) if k > compiled.SMALL else 0)
            compiled.definite(*given, share.thread, share.of, delta, determinants, exponents, work)
            return delta

        parts = over_threads(part, blocks.work, self.threads, with_blas=False)
        with np.errstate(divide="ignore"):
            return np.log(determinants) + np.log(2) * exponents, parts


def _whole(upper: Floats, scale: Floats) -> Floats:
    """Return the symmetric matrix S U S with the upper triangle U and S = diag(scale); U is overwritten."""
    upper *= scale[:, None]
    upper *= scale
    whole = upper + upper.T
    np.fill_diagonal(whole, upper.diagonal())
    return whole


def _weighted(weights: Floats, values: Floats) -> tuple[float, float]:
    """Return Σ w x over the finite values, and Σ w over the others."""
    trusted = values > -np.inf
    return float(weights @ np.where(trusted, values, 0)), float(weights @ ~trusted)


@lru_cache(maxsize=64)
def _smallest_pivots(limit: Limit, n_items: int, largest: int) -> Floats:
    """Return the limits for sets of 0 to `largest` items."""
    return read_only(np.array([limit(n_items, k) for k in range(largest + 1)]))


class BorderedMinors:
    """The minors Y ∪ border of the bordered matrix E, which is scaled to A_ii + |U_i|² = 1.

    Sets whose two smallest pivots are doubtful, and sets of an impossible size, are left out.
    """

    def __init__(self, bordered: Bordered, baskets: Sets, threads: int | None) -> None:
        check_items(len(bordered.scale), baskets)
        self.baskets, self.threads, self.loop = baskets, threads, loops("bordered").bordered
        self.possible_sizes = bordered.possible_sizes
        E, scale = bordered.matrix, bordered.scale
        self.n_items, self.border = len(scale), np.arange(len(scale), len(E))
        self.inverse = np.ones(len(E))
        with np.errstate(divide="ignore"):
            self.inverse[: self.n_items] = np.where(scale > 0, 1 / scale, 0)
            self.log_scale = 2 * np.log(scale)  # what scaling took from log det, per item
            self.log_empty = float(np.log(-E[self.border, self.border]).sum())
        self.C = E * self.inverse[:, None]
        self.C *= self.inverse

    def sums(self) -> tuple[float, float, Floats]:
        """Return Σ w log|det|, the weight of the sets left out, and Delta without them, with the border last."""
        values, parts = self._pass(want_delta=True)
        return *_weighted(self.baskets.weights, values), _whole(reduce(iadd, parts), self.inverse)

    def logdet(self) -> tuple[float, float]:
        """Return Σ w log|det| and the weight of the sets left out."""
        return _weighted(self.baskets.weights, self._values)

    def each(self) -> Floats:
        """Return log|det| of every basket, −inf where it is left out."""
        return self._values.copy()

    @cached_property
    def _values(self) -> Floats:
        return self._pass(want_delta=False)[0]

    def _pass(self, *, want_delta: bool) -> tuple[Floats, list[Floats]]:
        """Return log|det| of every basket, and from each thread an upper triangle of the sum of inverses."""
        values, groups = np.empty(len(self.baskets)), self.baskets.by_size

        def part(share: Share) -> Floats:
            delta = np.zeros(self.C.shape) if want_delta else NO_DELTA
            for group in groups:
                mine = share.among(len(group.rows))
                rows = group.rows[mine]
                values[rows] = self._sets_of_one_size(group.sets[mine], self.baskets.weights[rows], delta)
            return delta

        work = sum(len(group.rows) * (group.sets.shape[1] + len(self.border)) ** 3 for group in groups)
        return values, over_threads(part, work, self.threads, with_blas=False)

    def _sets_of_one_size(self, sets: Items, weights: Floats, delta: Floats) -> Floats:
        """Return log|det| of each set, whose weighted inverses are added into delta unless it is empty."""
        n, k = sets.shape
        if k not in self.possible_sizes:
            return np.full(n, -np.inf)
        if k == 0:
            if delta.size:  # the inverse of the border alone, −D⁻¹
                delta[self.border, self.border] += float(weights.sum()) / self.C[self.border, self.border]
            return np.full(n, self.log_empty)
        values, smallest = np.empty(n), doubtful_pivot(self.n_items, len(self.border) + k)
        self.loop(self.C, self.log_scale, sets, weights, smallest, values, delta, delta.size > 0)
        return values
