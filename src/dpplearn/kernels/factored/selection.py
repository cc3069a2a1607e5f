"""The best next items and greedy sets, exactly, without scoring every item.

A score Σ_c ρ_c exp(log_odds_ci) C'_ii is at most Σ_c ρ_c exp(log_odds_ci) (C_ii + λ|z_i|²), λ of `Beside.most`: cheap
for all items at once. So only items whose bound reaches the best scores seen are scored. Bounds are in single precision
and made larger by more than that loses; what is returned is in double.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.kernels.factored.beside import Beside, beside
from dpplearn.kernels.factored.conditioning import probabilities
from dpplearn.kernels.factored.kernel import FactoredKernel, Singles
from dpplearn.kernels.ranking import Best

LARGER = 1 + 1e-5  # a sum of up to a hundred positive terms in single precision is off by less
LEAST = np.float32(1e-37)  # more than what underflows
UNLIKELY = 1e-4  # share of a segment whose items are bounded by what they are in any segment
FIRST = 512  # items scored before the others are looked at


@dataclass(frozen=True)
class Bounds:
    """What the bounds of all scores are made of, whatever the basket; single precision."""

    odds: Singles  # exp(log_odds), (n_segments, n_items)
    highest: Singles  # of them in any segment, (n_items,)
    diagonal: Singles  # C_ii, the largest of any coupling
    squares: Singles  # |z_i|²

    @classmethod
    def of(cls, kernel: FactoredKernel) -> Bounds:
        with np.errstate(over="ignore"):
            odds = np.exp(kernel.log_odds) + LEAST
        squares = np.einsum("ij,ij->i", kernel.factors, kernel.factors)
        return cls(odds, odds.max(axis=0), kernel.diagonal.max(axis=0).astype(np.float32), squares)

    def at(self, state: Beside) -> Singles:
        """What no score exceeds, (n_items,)."""
        rho = state.segments
        with np.errstate(over="ignore"):
            found = self.highest * np.float32(rho[rho <= UNLIKELY].sum() + LEAST)
            for c in np.flatnonzero(rho > UNLIKELY):
                found += np.float32(rho[c]) * self.odds[c]
            found *= self.diagonal + np.float32(state.most() * LARGER) * self.squares
            found *= np.float32(LARGER)
            found += LEAST
        return found


def best_next(kernel: FactoredKernel, bounds: Bounds, basket: Ints, k: int, candidate: Bools | None) -> Best:
    """The k items of the highest P(A ∪ i)/P(A), best first; ties by probability, then position."""
    state = beside(kernel, basket)
    bound = bounds.at(state)
    bound[basket] = -1
    if candidate is not None:
        bound[~candidate] = -1
    items, score = _above(state, bound, k)
    probability = probabilities(kernel, basket, items)
    order = np.lexsort((items, -probability, -score))[:k]
    return items[order], score[order], probability[order]


def _above(state: Beside, bound: Singles, k: int) -> tuple[Ints, Floats]:
    """The k items of the highest score, and those that tie with the last; of those with a bound above 0."""
    first = min(max(FIRST, 4 * k), len(bound))
    items = np.argpartition(-bound, first - 1)[:first]
    items = items[bound[items] > 0]
    score = state.scores_of(items)
    if len(items) == first < len(bound):
        rest = bound >= (np.partition(score, first - k)[first - k] if k else np.inf)
        rest[items] = False
        more = np.flatnonzero(rest)
        items, score = np.concatenate([items, more]), np.concatenate([score, state.scores_of(more)])
    wanted = score > 0
    if k < len(score):
        wanted &= score >= np.partition(score, len(score) - k)[len(score) - k] if k else False
    return items[wanted], score[wanted]


def greedy_map(kernel: FactoredKernel, bounds: Bounds, k: int | None, include: Ints) -> tuple[Ints, Floats]:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. Gains are P(Y ∪ i)/P(Y).
    """
    taken: list[int] = []
    gains: list[float] = []
    while len(taken) < (kernel.n_items if k is None else min(k, kernel.n_items)):
        state = beside(kernel, np.array(taken, dtype=np.int64))
        forced = len(taken) < len(include)
        best, gain = _this(state, int(include[len(taken)])) if forced else _best(state, bounds, taken)
        if not forced and k is None and gain <= 1:
            break
        taken.append(best)
        gains.append(gain)
    return np.array(taken, dtype=np.int64), np.array(gains)


def _this(state: Beside, item: int) -> tuple[int, float]:
    return item, float(state.scores_of(np.array([item]))[0])


def _best(state: Beside, bounds: Bounds, taken: list[int]) -> tuple[int, float]:
    """The first item of the highest score that is not taken."""
    bound = bounds.at(state)
    bound[taken] = -1
    floor = min(_this(state, int(np.argmax(bound)))[1], float(bound.max()))
    items = np.flatnonzero(bound >= np.float64(floor))
    score = state.scores_of(items)
    best = int(np.argmax(score))
    return int(items[best]), float(score[best])
