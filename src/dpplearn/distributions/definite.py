"""The minors L_Y of baskets under a positive semidefinite L, by Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from operator import iadd
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, read_only
from dpplearn.data.blocks import LANES
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Sets
from dpplearn.distributions.passes import NO_DELTA, Share, check_items, one_by_one, over_threads

LARGE = 100  # sets of more items go through LAPACK: few of them fill a processor

NO_LOGDETS = np.empty(0)  # for a pass that does not want them
NO_BORDER = np.empty(0, np.int64)

Limit = Callable[[int, int], float]  # from the numbers of all items and of a set's to the smallest pivot allowed
LogdetSums = tuple[float, float]  # Σ w log det over the sets whose pivots are above the limit, and Σ w over the others


class DefiniteMinors:
    """L scaled to a unit diagonal, so that a pivot is compared with 1, beside the sets as the loops read them.

    Left out are the sets with a pivot below the limit, and those of more than `rank` items.
    """

    def __init__(self, L: Floats, baskets: Sets, threads: int | None, *, rank: int, limit: Limit) -> None:
        n_items, blocks = len(L), baskets.blocks
        check_items(n_items, baskets)
        self.baskets, self.blocks, self.threads, self.loops = baskets, blocks, threads, loops("definite")
        self.C, self.inverse, self.log_scale = np.empty((n_items, n_items)), np.empty(n_items), np.empty(n_items)
        self.of_scale = self.loops.scale(L, blocks.item_weights, self.C, self.inverse, self.log_scale)
        smallest = _smallest_pivots(limit, n_items, LARGE)
        self.given = (self.C, self.inverse, blocks.alone, blocks.items, blocks.weights, blocks.groups, smallest, rank)
        self.rank, self.limit, self.large = rank, limit, blocks.largest > LARGE

    def sums(self) -> tuple[float, float, Floats]:
        """Σ w log det L_Y, the weight of the sets left out, and Delta without them."""
        parts = over_threads(self._part_with_delta, self.blocks.work, self.threads, with_blas=self.large)
        logdet, left_out, delta = reduce(_added, parts)
        return logdet + self.of_scale, left_out, delta

    def logdet(self) -> LogdetSums:
        """The same without Delta, in about half the time."""
        return self._logdet(NO_LOGDETS)

    def each(self) -> Floats:
        """log det L_Y of every basket, −inf where it is left out."""
        logdets = np.zeros(len(self.blocks.weights))  # of C_Y; the loops leave out sets of one item, whose C_Y is 1
        self._logdet(logdets)
        baskets = self.baskets
        rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
        of_scale = np.bincount(rows, self.log_scale[baskets.indices], len(baskets))
        return np.where(baskets.sizes <= self.rank, logdets[self.blocks.places] + of_scale, -np.inf)

    def _logdet(self, logdets: Floats) -> LogdetSums:
        part = partial(self._part, NO_DELTA, logdets)
        parts = over_threads(part, self.blocks.work, self.threads, with_blas=self.large)
        logdet, left_out = reduce(_added, parts)
        return logdet + self.of_scale, left_out

    def _part_with_delta(self, share: Share) -> tuple[float, float, Floats]:
        delta = np.zeros(self.C.shape)
        return *self._part(delta, NO_LOGDETS, share), delta

    def _part(self, delta: Floats, logdets: Floats, share: Share) -> LogdetSums:
        """Of Σ w log det C_Y and of the weight of the sets left out; and Delta, or log det C_Y of each."""
        k = min(self.blocks.largest, self.rank, LARGE)
        work = np.empty(LANES * (2 + (k * (k + 3) if k > self.loops.SMALL else 0)))
        large = self._large_sets(delta, logdets, share) if self.large else (0.0, 0.0)
        small = self.loops.definite(*self.given, share.thread, share.of, delta, logdets, work)
        return large[0] + small[0], large[1] + small[1]

    def _large_sets(self, delta: Floats, logdets: Floats, share: Share) -> LogdetSums:
        """The same of the sets that go through LAPACK."""
        logdet = left_out = 0.0
        for group in self.baskets.by_size:
            n, k = group.sets.shape
            if LARGE < k <= self.rank:
                part = share.among(n)
                rows, solve = group.rows[part], partial(_cholesky, self.limit(len(self.C), k))
                weights = self.baskets.weights[rows]
                values = one_by_one(self.C, group.sets[part], NO_BORDER, weights, delta, solve)
                trusted = np.isfinite(values)
                logdet += float(weights[trusted] @ values[trusted])
                left_out += float(weights[~trusted].sum())
                if logdets.size:
                    logdets[self.blocks.places[rows]] = values
        return logdet, left_out


def _added(one: Any, other: Any) -> Any:
    """Both threads' parts, term by term; arrays in place."""
    return tuple(map(iadd, one, other))


@lru_cache(maxsize=64)
def _smallest_pivots(limit: Limit, n_items: int, largest: int) -> Floats:
    """For sets of 0 to `largest` items."""
    return read_only(np.array([limit(n_items, k) for k in range(largest + 1)]))


def _cholesky(smallest: float, minor: Floats, want_inverse: bool) -> tuple[float, Floats]:
    """log det and the upper triangle of the inverse; −inf and nothing where a pivot is below the smallest allowed."""
    from scipy.linalg import lapack

    factor, info = lapack.dpotrf(minor, lower=1)
    pivots = np.diag(factor) ** 2
    if info != 0 or not pivots.min() >= smallest:
        return -np.inf, NO_DELTA
    return np.log(pivots).sum(), np.triu(lapack.dpotri(factor, lower=1)[0].T) if want_inverse else NO_DELTA
