"""Sums over the minors of baskets, and passes over baskets that are shared by threads.

No minor needs row pivots: neither those of a positive semidefinite L, nor those of the bordered matrix, nor those of a
matrix whose symmetric part is at least I. In a pass every thread takes the same share of the sets of every size. So the
threads end together, and the result is reproducible for a given number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import reduce
from operator import iadd
from typing import NamedTuple, TypeVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.blocks import LANES, Blocks
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.determinants import SetMinors, doubtful_pivot
from dpplearn.errors import InputError
from dpplearn.utils.text import count
from dpplearn.utils.threads import one_blas_thread, pool, thread_count

WORK_WORTH_A_THREAD = 300_000  # in nanoseconds, about; below, handing over costs more than it saves
GENERAL = 8  # cost of a minor that is not symmetric, as a multiple of `Blocks.work`
NO_DELTA = np.empty((0, 0))  # of a pass that does not want it

Part = TypeVar("Part")


def check_items(n_items: int, baskets: Baskets) -> None:
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


def minors_of(
    C: Floats, blocks: Blocks, threads: int | None, *, n_symmetric: int, smallest: Floats, want_delta: bool
) -> tuple[Floats, Floats]:
    """Return log |det C_Y| of the set at every place of the blocks, −inf where it is left out, and Σ w C_Y⁻ᵀ.

    The symmetric part of C is at least I; or C is symmetric with a unit diagonal and only the upper triangle is summed.
    Then all pivots of the first `n_symmetric` items are positive and those of the border, the others, are negative.
    Sets of k items with a smaller pivot than smallest[k] are left out.
    """
    mantissas, exponents = np.zeros((2, len(blocks.weights)))
    k = len(smallest) - 1

    def part(share: Share) -> Floats:
        delta, work = np.zeros(C.shape) if want_delta else NO_DELTA, np.empty(LANES * (k + 1) * (k + 2))
        given = (C, n_symmetric, blocks.items, blocks.weights, blocks.groups, smallest, share.thread, share.of)
        loops("minors").minors_of(*given, delta, mantissas, exponents, work)
        return delta

    parts = over_threads(part, blocks.work * (1 if n_symmetric else GENERAL), threads, with_blas=False)
    with np.errstate(divide="ignore"):
        return np.log(mantissas) + np.log(2) * exponents, reduce(iadd, parts)


class Sums(NamedTuple):
    """Sums over the minors of a symmetric matrix. Sets in doubt are left out."""

    logdet: Callable[[], float]  # returns Σ w log|det|, −inf if a set of positive weight is left out
    delta: Floats  # the sum of weighted inverses, with the border last; empty if it is not wanted
    each: Callable[[], Floats]  # returns log|det| of every basket, −inf where it is left out


def symmetric_sums(
    minors: SetMinors, possible_sizes: range, baskets: Baskets, threads: int | None, *, want_delta: bool
) -> Sums:
    """Return the sums over the minors Y ∪ border. Left out are impossible sizes, and sets with a `doubtful_pivot`.

    Pivots are those of the matrix scaled to a unit diagonal.
    """
    C, n_items, possible = minors.scaled, len(minors.unit), minors.inverse > 0
    check_items(n_items, baskets)
    if not possible.all():  # comparisons with NaN are false, which leaves out the sets of items that cannot occur
        C = np.where(possible[:, None] & possible, C, np.nan)
    blocks, log_squares = baskets.blocks.with_border(n_items, minors.n_border), minors.log_squares
    smallest = doubtful_pivot(n_items, np.arange(blocks.largest + 1))
    smallest[: possible_sizes.start + minors.n_border] = smallest[possible_sizes.stop + minors.n_border :] = np.inf
    log_dets, delta = minors_of(C, blocks, threads, n_symmetric=n_items, smallest=smallest, want_delta=want_delta)

    def each() -> Floats:
        rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
        of_scale = np.bincount(rows, log_squares[baskets.indices], len(baskets))
        return np.asarray(log_dets[blocks.places] + of_scale)

    def logdet() -> float:
        return weighted_sum(blocks.weights, log_dets) + weighted_sum(baskets.item_weights, log_squares)

    return Sums(logdet, whole(delta, minors.inverse) if want_delta else delta, each)


def whole(upper: Floats, scale: Floats) -> Floats:
    """Return the symmetric matrix S U S with the upper triangle U and S = diag(scale); U is overwritten."""
    upper *= scale[:, None]
    upper *= scale
    whole = upper + upper.T
    np.fill_diagonal(whole, upper.diagonal())
    return whole


def weighted_sum(weights: Floats, values: Floats) -> float:
    """Return Σ w x, in which terms of weight 0 do not count even if x is −inf."""
    return float(weights @ np.where(weights > 0, values, 0))
