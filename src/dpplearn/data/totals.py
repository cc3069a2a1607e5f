"""What baskets come to, all together: sums over baskets, so that those of parts add up to those of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats

if TYPE_CHECKING:
    from dpplearn.data.item_sets import ItemSets

MOST_COUNTED = 2**53  # the largest sum of counts that is exact


@dataclass(frozen=True)
class Totals:
    """Of any number of baskets; those of weight 0 count in `n_baskets` and `n_held` alone."""

    n_baskets: int
    n_held: int  # items, each as often as it is held
    n_empty: int
    largest: int  # items of one basket, whatever its weight
    weight: float
    empty_weight: float
    whole: bool  # whether every weight is a whole number
    heaviest: float  # the largest weight
    squares: float  # Σ (w / heaviest)², as squares may be too small for numbers, or too large

    @classmethod
    def of(cls, sets: ItemSets) -> Totals:
        weights, empty = sets.weights, sets.sizes == 0
        heaviest = float(weights.max(initial=0.0))
        relative = weights / heaviest if heaviest > 0 else weights
        return cls(
            n_baskets=len(weights),
            n_held=len(sets.indices),
            n_empty=int((empty & (weights > 0)).sum()),
            largest=int(sets.sizes.max(initial=0)),
            weight=sets.total_weight,
            empty_weight=float(weights[empty].sum()),
            whole=bool(np.all(weights == np.round(weights))),
            heaviest=heaviest,
            squares=float((relative**2).sum()),
        )

    def __add__(self, other: Totals) -> Totals:
        heaviest = max(self.heaviest, other.heaviest)
        scaled = [each.squares * (each.heaviest / heaviest) ** 2 if heaviest else 0.0 for each in (self, other)]
        return Totals(
            self.n_baskets + other.n_baskets,
            self.n_held + other.n_held,
            self.n_empty + other.n_empty,
            max(self.largest, other.largest),
            self.weight + other.weight,
            self.empty_weight + other.empty_weight,
            self.whole and other.whole,
            heaviest,
            sum(scaled),
        )

    @property
    def mean_size(self) -> float:
        """Items per basket."""
        return self.n_held / self.n_baskets

    @property
    def are_counts(self) -> bool:
        """Whether the weights say how many baskets there were of each kind."""
        return self.whole and self.weight < MOST_COUNTED

    @property
    def effective_number(self) -> float:
        """How many baskets the weights stand for: their sum if they are counts, else (Σw)²/Σw². [Kish65]"""
        return self.weight if self.are_counts else (self.weight / self.heaviest) ** 2 / self.squares


def item_weights(sets: ItemSets) -> Floats:
    """The weight of the baskets that hold each item."""
    return np.bincount(sets.indices, np.repeat(sets.weights, sets.sizes), sets.n_items).astype(float)


def pair_weights(sets: ItemSets) -> Floats:
    """The weight of the baskets that hold both of every two items, (n_items, n_items)."""
    from scipy.sparse import csr_array

    shape = (len(sets), sets.n_items)
    held = csr_array((np.ones(len(sets.indices)), sets.indices, sets.offsets), shape=shape)
    weighted = csr_array((np.repeat(sets.weights, sets.sizes), sets.indices, sets.offsets), shape=shape)
    pairs: Floats = (held.T @ weighted).toarray()
    return pairs
