"""Greedy MAP and diverse completion of a basket, by incremental Cholesky in O(N k²)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.conditioning import conditioned, inclusion_probability
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel

NOTHING = np.zeros(0, dtype=np.int64)
IMPOSSIBLE = "the items to start from have probability zero together; leave one out"

Take = Callable[[int, float, Floats], None]  # brings what is left up to date once an item is taken with some gain


@dataclass(frozen=True)
class Greedy:
    """Positions in the order taken, and the factor by which each multiplied the probability."""

    positions: Ints
    gains: Floats

    def then(self, places: Ints, more: Greedy) -> Greedy:
        """Followed by others, whose positions count in `places`."""
        positions = np.concatenate([self.positions, places[more.positions]])
        return Greedy(positions, np.concatenate([self.gains, more.gains]))


def greedy_map(kernel: Kernel, k: int | None, include: Ints = NOTHING) -> Greedy:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y).
    """
    if kernel.at_one.any():
        return _with_certain_part(kernel, k, include)
    if kernel.near_one.any():
        return _by_vectors(kernel, k, include)
    return greedy(kernel.L, kernel.rank, k, include)


def greedy(L: Floats, rank: int, k: int | None, include: Ints = NOTHING) -> Greedy:
    """Greedy maximisation of det L_Y; the items of `include` come first, in their order. [CZZ18]"""
    rows = np.empty((rank if k is None else min(k, rank), len(L)))  # the Cholesky factor, one row a taken item
    taken = 0

    def take(best: int, gain: float, left: Floats) -> None:
        nonlocal taken
        row = rows[taken]
        np.dot(rows[:taken, best], rows[:taken], out=row)
        np.subtract(L[best], row, out=row)
        row /= np.sqrt(gain)
        left -= row * row
        taken += 1

    return _grow(L.diagonal().copy(), EPSILON * L.diagonal(), take, rank, k, include)


def _by_vectors(kernel: Kernel, k: int | None, include: Ints) -> Greedy:
    """The same in O(N² k), on vectors whose products L holds: eigenvalues near 1 leave L no digits for the others."""
    vectors = kernel.eigenvectors * np.sqrt(kernel.odds)

    def take(best: int, gain: float, left: Floats) -> None:
        direction = vectors[best] / np.sqrt(gain)
        np.subtract(vectors, np.outer(vectors @ direction, direction), out=vectors)
        np.copyto(left, (vectors**2).sum(axis=1), where=np.isfinite(left))

    return _grow((vectors**2).sum(axis=1), EPSILON * kernel.bordered.scale**2, take, kernel.rank, k, include)


def _grow(left: Floats, smallest: Floats, take: Take, rank: int, k: int | None, include: Ints) -> Greedy:
    """Take `include`, then again and again the item of which most is left, until that is rounding.

    `left` is what each item would multiply the determinant by.
    """
    if len(include) > rank:
        raise InputError(IMPOSSIBLE)
    positions: list[int] = []
    gains: list[float] = []
    while len(positions) < (rank if k is None else min(k, rank)):
        size = len(positions)
        forced = size < len(include)
        best = int(include[size]) if forced else int(np.argmax(left))
        gain = float(left[best])
        if not gain > (size + 1) * smallest[best]:
            if forced:
                raise InputError(IMPOSSIBLE)
            break
        if k is None and not forced and gain <= 1:
            break
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
        first = greedy(U @ U.T, U.shape[1], U.shape[1] if k is None else min(U.shape[1], k))
    size = len(first.positions)
    if size == kernel.n_items and not inclusion_probability(kernel, first.positions) > 0:
        raise InputError(IMPOSSIBLE)
    if size == kernel.n_items or (size == k and not len(include)):
        return first
    rest, places = conditioned(kernel, first.positions, NOTHING)
    return first.then(places, greedy_map(rest, None if k is None else k - size))
