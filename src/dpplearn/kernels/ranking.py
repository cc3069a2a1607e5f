"""Which items come first, where all of them have been scored."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError

Best = tuple[Ints, Floats, Floats]  # items, best first; their scores and probabilities


def best_of(score: Floats, probability: Floats, basket: Ints, k: int, candidate: Bools | None) -> Best:
    """The k items of the highest score, or probability where scores are not numbers.

    Ties are by probability, then position. Items of the basket, those that are no candidates, and those of score
    0 are left out.
    """
    by = probability if np.isnan(score).any() else score
    wanted = by > 0 if candidate is None else candidate & (by > 0)
    wanted[basket] = False
    found = np.flatnonzero(wanted)
    best = found[np.lexsort((found, -probability[found], -by[found]))][:k]
    return best, score[best], probability[best]


class BestOfMany(NamedTuple):
    """The same of many baskets, a row each. What is missing at the end of a row is item −1, its numbers NaN."""

    items: Ints  # (n_baskets, k)
    scores: Floats  # (n_baskets, k)
    probabilities: Floats  # (n_baskets, k)
    possible: Bools  # (n_baskets,) whether the basket has a probability; if not, nothing can be added to it

    @classmethod
    def nothing(cls, n_baskets: int, k: int) -> BestOfMany:
        """To be filled."""
        shape = (n_baskets, k)
        return cls(
            np.full(shape, -1, np.int64), np.full(shape, np.nan), np.full(shape, np.nan), np.ones(n_baskets, bool)
        )

    def put(self, row: int, best: Best) -> None:
        """As the row of a basket."""
        for to, values in zip(self[:3], best, strict=True):
            to[row, : len(values)] = values


def one_by_one(best_next: Callable[[Ints, int], Best], baskets: Baskets, k: int) -> BestOfMany:
    """For laws that have nothing faster."""
    found = BestOfMany.nothing(len(baskets), k)
    for row, (start, stop) in enumerate(pairwise(baskets.offsets.tolist())):
        try:
            found.put(row, best_next(baskets.indices[start:stop].astype(np.int64), k))
        except InputError:
            found.possible[row] = False
    return found
