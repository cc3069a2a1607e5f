"""Greedy MAP and diverse completion of a basket, by incremental Cholesky in O(N k²)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.conditioning import conditioned
from dpplearn.kernels.symmetric.independence import can_contain, doubtful_pivot
from dpplearn.kernels.symmetric.kernel import Kernel

IMPOSSIBLE = "the items to start from have probability zero together; leave one out"

Take = Callable[[int, float, Floats], None]  # brings what is left up to date once an item is taken with some gain
Possible = Callable[[Ints], bool]  # whether these items can be together


@dataclass(frozen=True)
class Greedy:
    """Positions in the order taken, and the factor by which each multiplied the probability."""

    positions: Ints
    gains: Floats

    def then(self, places: Ints, more: Greedy) -> Greedy:
        """Followed by others, whose positions count in `places`."""
        positions = np.concatenate([self.positions, places[more.positions]])
        return Greedy(positions, np.concatenate([self.gains, more.gains]))


def greedy_map(kernel: Kernel, k: int | None, include: Ints = NO_ITEMS) -> Greedy:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y).
    """
    if kernel.at_one.any():
        return _with_certain_part(kernel, k, include)
    found = None if kernel.near_one.any() else greedy(kernel.L, kernel.rank, k, include)
    if found is None:
        vectors = kernel.eigenvectors * np.sqrt(kernel.odds)
        found = _by_vectors(vectors, kernel.rank, k, include, partial(can_contain, kernel))
    return found


def greedy(L: Floats, rank: int, k: int | None, include: Ints = NO_ITEMS) -> Greedy | None:
    """Greedy maximisation of det L_Y; the items of `include` come first, in their order. None where L has too few
    digits to tell which item is next. [CZZ18]"""
    rows = np.empty((rank if k is None else min(k, rank), len(L)))  # the Cholesky factor, one row per taken item
    taken = 0

    def take(best: int, gain: float, left: Floats) -> None:
        nonlocal taken
        row = rows[taken]
        np.dot(rows[:taken, best], rows[:taken], out=row)
        np.subtract(L[best], row, out=row)
        row /= np.sqrt(gain)
        left -= row * row
        taken += 1

    return _grow(L.diagonal().copy(), None, take, rank, k, include)


def _by_vectors(vectors: Floats, rank: int, k: int | None, include: Ints, possible: Possible) -> Greedy:
    """The same in O(N² k), on vectors whose products L holds: of items that are almost alike, or beside eigenvalues
    near 1, L has no digits left. Overwrites the vectors."""

    def take(best: int, gain: float, left: Floats) -> None:
        direction = vectors[best] / np.sqrt(gain)
        np.subtract(vectors, np.outer(vectors @ direction, direction), out=vectors)
        np.copyto(left, (vectors**2).sum(axis=1), where=np.isfinite(left))

    found = _grow((vectors**2).sum(axis=1), possible, take, rank, k, include)
    assert found is not None  # as `possible` leaves no doubt
    return found


def _grow(
    left: Floats, possible: Possible | None, take: Take, rank: int, k: int | None, include: Ints
) -> Greedy | None:
    """Take `include`, then again and again the item of which most is left, as long as that is possible.

    `left` is what each item would multiply the determinant by. Where little is left, `possible` says whether that is
    more than rounding; without it, nothing is found.
    """
    if len(include) > rank:
        raise InputError(IMPOSSIBLE)
    left[left <= 0] = -np.inf
    doubtful = doubtful_pivot(len(left), rank) * left
    positions: list[int] = []
    gains: list[float] = []
    while len(positions) < (rank if k is None else min(k, rank)):
        size = len(positions)
        forced = size < len(include)
        best = int(include[size]) if forced else int(np.argmax(left))
        gain = float(left[best])
        if not forced and (gain == -np.inf or (k is None and gain <= 1)):
            break
        if not gain > doubtful[best] > 0:
            if possible is None:
                return None
            if not possible(np.array([*positions, best])):
                if forced:
                    raise InputError(IMPOSSIBLE)
                left[best] = -np.inf
                continue
        take(best, gain, left)
        left[best] = -np.inf
        positions.append(best)
        gains.append(gain)
    return Greedy(np.array(positions, dtype=np.int64), np.array(gains))


def _with_certain_part(kernel: Kernel, k: int | None, include: Ints) -> Greedy:
    """The limit of λ → 1 from below: as many items as there are eigenvalues at 1 come first, from their span alone.

    Then the set has a probability, and what remains is an ordinary greedy search given these items. Gains of the
    first items are those of the span, as P of a smaller set is zero; those of `include` are unknown.
    """
    first = Greedy(include, np.full(len(include), np.nan))
    if not len(include):
        U = kernel.eigenvectors[:, kernel.at_one]
        most = U.shape[1] if k is None else min(U.shape[1], k)
        first = _by_vectors(U, U.shape[1], most, NO_ITEMS, partial(can_contain, kernel))
    size = len(first.positions)
    if size == kernel.n_items and not can_contain(kernel, first.positions):
        raise InputError(IMPOSSIBLE)
    if size == kernel.n_items or (size == k and not len(include)):
        return first
    rest, places = conditioned(kernel, first.positions, NO_ITEMS)
    return first.then(places, greedy_map(rest, None if k is None else k - size))
