"""Greedy MAP and diverse completion of a basket, by incremental Cholesky in O(N k²)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.conditioning import conditioned
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel

NOTHING = np.zeros(0, dtype=np.int64)
IMPOSSIBLE = "the items to start from have probability zero together; leave one out"


@dataclass(frozen=True)
class Greedy:
    """Positions in the order taken, the factor by which each multiplied the probability, and whether all were found."""

    positions: Ints
    gains: Floats
    exhausted: bool  # no further item could be added


def greedy_map(kernel: Kernel, k: int | None, include: Ints = NOTHING) -> Greedy:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y).
    """
    if kernel.at_one.any():
        return _with_certain_part(kernel, k, include)
    return greedy(kernel.L, kernel.rank, k, include)


def greedy(L: Floats, rank: int, k: int | None, include: Ints = NOTHING) -> Greedy:
    """Greedy maximisation of det L_Y; the items of `include` come first, in their order. [CZZ18]"""
    n = len(L)
    if len(include) > rank:
        raise InputError(IMPOSSIBLE)
    limit = rank if k is None else min(k, rank)
    left = L.diagonal().copy()  # what each item would multiply the determinant by
    smallest = np.finfo(float).eps * left
    rows = np.empty((max(limit, len(include)), n))  # the Cholesky factor, one row a taken item
    positions: list[int] = []
    gains: list[float] = []
    while len(positions) < max(limit, len(include)):
        size = len(positions)
        forced = size < len(include)
        best = int(include[size]) if forced else int(np.argmax(left))
        gain = float(left[best])
        if not gain > (size + 1) * smallest[best]:
            if forced:
                raise InputError(IMPOSSIBLE)
            return Greedy(np.array(positions, dtype=np.int64), np.array(gains), exhausted=True)
        if k is None and not forced and gain <= 1:
            break
        row = rows[size]
        np.dot(rows[:size, best], rows[:size], out=row)
        np.subtract(L[best], row, out=row)
        row /= np.sqrt(gain)
        left -= row * row
        left[best] = -np.inf
        positions.append(best)
        gains.append(gain)
    return Greedy(np.array(positions, dtype=np.int64), np.array(gains), exhausted=k is not None and len(positions) < k)


def _with_certain_part(kernel: Kernel, k: int | None, include: Ints) -> Greedy:
    """The limit of λ → 1 from below: as many items as there are eigenvalues at 1 come first, from their span alone.

    Then the set has a probability, and what remains is an ordinary greedy search given these items. Gains of the
    first items are those of the span, as P of a smaller set is zero.
    """
    taken, gains = include, np.full(len(include), np.nan)
    rest, places = (kernel, np.arange(kernel.n_items)) if not len(include) else conditioned(kernel, include, NOTHING)
    if rest.at_one.any():
        U = rest.eigenvectors[:, rest.at_one]
        needed = U.shape[1] if k is None else min(U.shape[1], k - len(taken))
        first = greedy(U @ U.T, U.shape[1], max(needed, 0))
        taken = np.concatenate([taken, places[first.positions]])
        gains = np.concatenate([gains, first.gains])
        if (k is not None and len(taken) >= k) or len(taken) == kernel.n_items:
            return Greedy(taken, gains, exhausted=k is not None and len(taken) < k)
        rest, kept = conditioned(rest, first.positions, NOTHING)
        places = places[kept]
        if rest.at_one.any():
            raise InputError("an eigenvalue of 1 remains after as many items as there were; the kernel is degenerate")
    more = greedy(rest.L, rest.rank, None if k is None else k - len(taken))
    return Greedy(
        np.concatenate([taken, places[more.positions]]), np.concatenate([gains, more.gains]), exhausted=more.exhausted
    )
