"""The best next items and greedy sets, exactly, without scoring every item.

A score Σ_c ρ_c exp(log_odds_ci) C'_ii is at most Σ_c ρ_c exp(log_odds_ci) (C_ii + λ|z_i|²), λ of `Beside.most`. Items
that are alike have one such bound together, from the largest of each of their numbers: what a block cannot reach, none
of its items can. So only the items of a few blocks are looked at, and of these only those are scored whose own bound
reaches the best scores seen. Bounds are in single precision and made larger by more than that loses; what is returned
is in double.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.kernels.factored.beside import Beside, beside
from dpplearn.kernels.factored.conditioning import probabilities
from dpplearn.kernels.factored.kernel import FactoredKernel, Singles
from dpplearn.kernels.ranking import Best

ROUNDING = 1e-7  # what a step in single precision may lose, and more
FURTHER = 20  # steps in a bound beside the sum over segments
LEAST = np.float32(1e-37)  # more than what underflows
BLOCK = 32  # items
FIRST = 2 * BLOCK  # items scored before the others are looked at, or some for each that is wanted
FOR_EACH = 16


class Numbers(NamedTuple):
    """What bounds are made of, of items, or the largest of those of a block; single precision."""

    odds: Singles  # exp(log_odds), (n_segments, n)
    diagonal: Singles  # C_ii, the largest of any coupling
    squares: Singles  # |z_i|²

    def of(self, items: Ints) -> Numbers:
        return Numbers(*(each[..., items] for each in self))

    def at(self, state: Beside) -> Singles:
        """What no score exceeds, (n,)."""
        larger = np.float32(1 + ROUNDING * (len(self.odds) + FURTHER))
        with np.errstate(over="ignore"):
            found = np.maximum(state.segments, LEAST).astype(np.float32) @ self.odds
            found *= self.diagonal + np.float32(state.most) * larger * self.squares
            found *= larger
            found += LEAST
        return found


@dataclass(frozen=True)
class Bounds:
    """What the bounds of all scores are made of, whatever the basket."""

    items: Numbers
    blocks: Numbers
    order: Ints  # the items, those of a block behind each other

    @classmethod
    def of(cls, kernel: FactoredKernel) -> Bounds:
        with np.errstate(over="ignore"):
            odds = np.exp(kernel.log_odds) + LEAST
        squares = np.einsum("ij,ij->i", kernel.factors, kernel.factors)
        items = Numbers(odds, kernel.diagonal.max(axis=0).astype(np.float32), squares)
        order = _alike(kernel.log_odds)
        starts = np.arange(0, len(order), BLOCK)
        blocks = Numbers(*(np.maximum.reduceat(each, starts, axis=-1) for each in items.of(order)))
        return cls(items, blocks, order)

    def members(self, blocks: Ints, free: Bools) -> Ints:
        """The items of some blocks, but for those that are not free."""
        places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        items: Ints = self.order[places[places < len(self.order)]]
        return np.asarray(items[free[items]])


def _alike(log_odds: Singles) -> Ints:
    """The items ordered by the segment that likes them most beside the others, and by how much they are liked there."""
    beside_others = log_odds - log_odds.mean(axis=0)
    segment = np.argmax(beside_others, axis=0)
    return np.lexsort((-log_odds[segment, np.arange(log_odds.shape[1])], segment))


def best_next(kernel: FactoredKernel, bounds: Bounds, basket: Ints, k: int, candidate: Bools | None) -> Best:
    """The k items of the highest P(A ∪ i)/P(A), best first; ties by probability, then position."""
    free = np.ones(kernel.n_items, bool) if candidate is None else np.array(candidate, bool)
    free[basket] = False
    items, score = _above(beside(kernel, basket), bounds, free, k)
    probability = probabilities(kernel, basket, items)
    order = np.lexsort((items, -probability, -score))[:k]
    return items[order], score[order], probability[order]


def _above(state: Beside, bounds: Bounds, free: Bools, k: int) -> tuple[Ints, Floats]:
    """The k free items of the highest score above 0, and those that tie with the last."""
    of_blocks = bounds.blocks.at(state)
    order = np.argsort(-of_blocks, kind="stable")
    first, rest = np.split(order, [-(-max(FIRST, FOR_EACH * k) // BLOCK)])
    items = bounds.members(first, free)
    score = state.scores_of(items)
    more = bounds.members(rest[of_blocks[rest] >= _at_place(score, k)], free)
    more = more[bounds.items.of(more).at(state) >= _at_place(score, k)]
    items, score = np.concatenate([items, more]), np.concatenate([score, state.scores_of(more)])
    wanted = (score > 0) & (score >= _at_place(score, k))
    return items[wanted], score[wanted]


def _at_place(score: Floats, k: int) -> np.float64:
    """The score at the k-th place; nothing is above all of them, and 0 is where there are fewer."""
    if not k:
        return np.float64(np.inf)
    return np.float64(np.partition(score, len(score) - k)[len(score) - k] if k <= len(score) else 0)


def greedy_map(kernel: FactoredKernel, bounds: Bounds, k: int | None, include: Ints) -> tuple[Ints, Floats]:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y).
    """
    taken: list[int] = []
    gains: list[float] = []
    free = np.ones(kernel.n_items, bool)
    while len(taken) < (kernel.n_items if k is None else min(k, kernel.n_items)):
        state = beside(kernel, np.array(taken, dtype=np.int64))
        forced = len(taken) < len(include)
        best, gain = _this(state, int(include[len(taken)])) if forced else _best(state, bounds, free)
        if not forced and k is None and gain <= 1:
            break
        free[best] = False
        taken.append(best)
        gains.append(gain)
    return np.array(taken, dtype=np.int64), np.array(gains)


def _this(state: Beside, item: int) -> tuple[int, float]:
    return item, float(state.scores_of(np.array([item]))[0])


def _best(state: Beside, bounds: Bounds, free: Bools) -> tuple[int, float]:
    """The first item of the highest score that is free."""
    items, score = _above(state, bounds, free, 1)
    best = int(np.argmin(items))
    return int(items[best]), float(score[best])
