"""The best next items of a mixture: ties, and baskets that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets, InputError
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw

NOTHING = np.array([], dtype=np.int64)


def test_equal_scores_are_by_probability_and_then_by_position() -> None:
    """Beside nothing all score the same; the last two attract each other, so that they are in more sets."""
    C = np.eye(4)
    C[2, 3], C[3, 2] = 2, -2
    law = MixtureLaw(MixtureKernel(np.ones(1), np.zeros((1, 4)), C[None]))
    for k in (1, 2, 3, 4):
        items, scores, chances = law.best_next(NOTHING, k)
        assert items.tolist() == [2, 3, 0, 1][:k]
        assert scores.tolist() == [1.0] * k
        assert sorted(chances, reverse=True) == chances.tolist()
    assert law.best_next(NOTHING, 3, np.array([True, True, False, True]))[0].tolist() == [3, 0, 1]


def test_a_basket_that_is_too_unlikely_for_a_number_is_an_error_and_of_many_the_others_have_theirs() -> None:
    law = MixtureLaw(MixtureKernel.of_items([0.0, -1e4, 1.0]))
    with pytest.raises(InputError, match="so unlikely under this model"):
        law.best_next(np.array([1]), 2)
    found = law.best_next_of_many(Baskets.from_lists([[1], [0], [0, 1, 2]], n_items=3), 2)
    assert found.possible.tolist() == [False, True, False]
    assert found.items.tolist() == [[-1, -1], [2, -1], [-1, -1]]
