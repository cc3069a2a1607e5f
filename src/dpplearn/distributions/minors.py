"""The minors of baskets under a symmetric kernel, and passes over baskets that are shared by threads.

The minors of a positive semidefinite L are factored by Cholesky. Where eigenvalues are near 1, those of the indefinite
bordered matrix are factored by LU with row pivots. In a pass every thread takes the same share of the sets of every
size. So the threads end together, and the result is reproducible for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, lru_cache, partial, reduce
from operator import add, iadd
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
LogdetSums = tuple[float, float]  # Σ w log det over the sets whose pivots are above the limit, and Σ w over the others


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


class DefiniteMinors:
    """The minors L_Y of baskets. L is scaled to a unit diagonal, so that pivots are compared with 1.

    Sets with a pivot below the limit, and sets of more than `rank` items, are left out.
    """

    def __init__(self, L: Floats, baskets: Sets, threads: int | None, *, rank: int, limit: Limit) -> None:
        n_items, blocks = len(L), baskets.blocks
        check_items(n_items, baskets)
        self.baskets, self.blocks, self.threads, self.loops = baskets, blocks, threads, loops("definite")
        self.C, self.inverse, self.log_scale = np.empty((n_items, n_items)), np.empty(n_items), np.empty(n_items)
        self.of_scale = self.loops.scale(L, blocks.item_weights, self.C, self.inverse, self.log_scale)
        smallest = _smallest_pivots(limit, n_items, blocks.largest)
        self.given = (self.C, self.inverse, blocks.alone, blocks.items, blocks.weights, blocks.groups, smallest, rank)
        self.rank = rank

    def sums(self) -> tuple[float, float, Floats]:
        """Return Σ w log det L_Y, the weight of the sets left out, and Delta without them."""
        parts = over_threads(self._part_with_delta, self.blocks.work, self.threads, with_blas=False)
        logdet, left_out, delta = reduce(_added, parts)
        return logdet + self.of_scale, left_out, delta

    def logdet(self) -> LogdetSums:
        """Return Σ w log det L_Y and the weight of the sets left out, in about half the time."""
        return self._logdet(NO_NUMBERS)

    def each(self) -> Floats:
        """Return log det L_Y of every basket, −inf where it is left out."""
        logdets = np.zeros(len(self.blocks.weights))  # of C_Y; the loops leave out sets of one item, whose C_Y is 1
        self._logdet(logdets)
        baskets = self.baskets
        rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
        of_scale = np.bincount(rows, self.log_scale[baskets.indices], len(baskets))
        return np.where(baskets.sizes <= self.rank, logdets[self.blocks.places] + of_scale, -np.inf)

    def _logdet(self, logdets: Floats) -> LogdetSums:
        part = partial(self._part, NO_DELTA, logdets)
        parts = over_threads(part, self.blocks.work, self.threads, with_blas=False)
        logdet, left_out = reduce(_added, parts)
        return logdet + self.of_scale, left_out

    def _part_with_delta(self, share: Share) -> tuple[float, float, Floats]:
        delta = np.zeros(self.C.shape)
        return *self._part(delta, NO_NUMBERS, share), delta

    def _part(self, delta: Floats, logdets: Floats, share: Share) -> LogdetSums:
        """Return a share of both sums over C_Y; add to `delta`, or write log det C_Y of each set to `logdets`."""
        k = min(self.blocks.largest, self.rank)
        work = np.empty(LANES * (2 * self.loops.CHUNK + (k * (k + 3) if k > self.loops.SMALL else 0)))
        logdet, left_out = self.loops.definite(*self.given, share.thread, share.of, delta, logdets, work)
        return logdet, left_out


def _added(one: Any, other: Any) -> Any:
    """Add the parts of two threads term by term; arrays in place."""
    return tuple(map(iadd, one, other))


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
        upper = reduce(add, parts)
        delta = upper + upper.T
        np.fill_diagonal(delta, upper.diagonal())
        delta *= self.inverse[:, None]
        delta *= self.inverse
        return *self._summed(values), delta

    def logdet(self) -> tuple[float, float]:
        """Return Σ w log|det| and the weight of the sets left out."""
        return self._summed(self._values)

    def each(self) -> Floats:
        """Return log|det| of every basket, −inf where it is left out."""
        return self._values.copy()

    @cached_property
    def _values(self) -> Floats:
        return self._pass(want_delta=False)[0]

    def _summed(self, values: Floats) -> tuple[float, float]:
        weights, trusted = self.baskets.weights, ~np.isneginf(values)
        return float(weights[trusted] @ values[trusted]), float(weights[~trusted].sum())

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
