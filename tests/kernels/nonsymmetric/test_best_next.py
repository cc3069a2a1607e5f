"""The best next items of a mixture: ties, and baskets that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw

from dpplearn import Baskets, InputError
from dpplearn.distributions.compiled import few_answers

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
    with pytest.raises(InputError):
        law.best_next(np.array([1]), 2)
    found = law.best_next_of_many(Baskets.from_lists([[1], [0], [0, 1, 2]], n_items=3), 2)
    assert found.possible.tolist() == [False, True, False]
    assert found.items.tolist() == [[-1, -1], [2, -1], [-1, -1]]


@pytest.mark.parametrize("n_interactions", [1, 3])
@pytest.mark.parametrize("basket", [NOTHING, np.array([4]), np.array([0, 2, 5])])
def test_few_answers_without_the_loops_are_those_of_the_loops(n_interactions: int, basket: np.ndarray) -> None:
    """All pivots of C are at least 1 and entries of order 1: both are within 1e-12."""
    rng = np.random.default_rng(1)
    A, U = rng.standard_normal((2, n_interactions, 6, 6)) / 2
    C = np.eye(6) + A - A.transpose(0, 2, 1) + U @ U.transpose(0, 2, 1)
    law = MixtureLaw(MixtureKernel(np.array([0.2, 0.5, 0.3]), rng.standard_normal((3, 6)), C))
    candidate = np.array([True, True, True, False, True, True])
    loops = law.next_item(basket), law.best_next(basket, 2, candidate), law.next_of(1, [basket])
    with few_answers():
        found = law.next_item(basket), law.best_next(basket, 2, candidate), law.next_of(1, [basket])
    for one, other in zip(loops, found, strict=True):
        for these, those in zip(one, other, strict=True):
            np.testing.assert_allclose(those, these, rtol=1e-12, atol=1e-13)


def test_few_answers_refuse_a_basket_that_is_too_unlikely_for_a_number() -> None:
    law = MixtureLaw(MixtureKernel.of_items([0.0, -1e4, 1.0]))
    with few_answers(), pytest.raises(InputError):
        law.best_next(np.array([1]), 2)
