"""Which items come first, where all of them have been scored."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints

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
