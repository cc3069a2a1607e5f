"""Passes over baskets, shared by threads: every thread takes the same share of the sets of every size.

So the threads end together, and the result is reproducible for a given number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple, TypeVar

import numpy as np

from dpplearn.arrays import Floats, Ints, Items
from dpplearn.distributions.components import Sets
from dpplearn.errors import InputError
from dpplearn.utils.text import count
from dpplearn.utils.threads import one_blas_thread, pool, thread_count

WORK_WORTH_A_THREAD = 300_000  # in nanoseconds, about; below, handing over costs more than it saves
NO_DELTA = np.empty((0, 0))  # for a pass that does not want it

Part = TypeVar("Part")
# From a minor and whether its inverse is wanted: log|det|, −inf where a pivot is too small to trust, and what to add to
# Delta for a weight of 1.
Solve = Callable[[Floats, bool], tuple[float, Floats]]


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


def one_by_one(matrix: Floats, sets: Items, border: Ints, weights: Floats, delta: Floats, solve: Solve) -> Floats:
    """Return log|det| of the minors Y ∪ border of a matrix, for sets large enough to fill a processor one at a time.

    What `solve` gives for Delta is added to it with the set's weight, unless delta is empty.
    """
    logdet = np.empty(len(sets))
    for row, basket in enumerate(sets):
        members = np.concatenate([basket, border])
        places = np.ix_(members, members)
        logdet[row], inverse = solve(matrix[places], delta.size > 0)
        if inverse.size:
            delta[places] += weights[row] * inverse
    return logdet
