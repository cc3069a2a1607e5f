"""The best next items and greedy sets by bounds, against scores of all items."""

from __future__ import annotations

import numpy as np
import pytest
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.beside import Beside, beside
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.factored.selection import BLOCK, Bounds
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.ranking import best_of

from dpplearn.arrays import Floats, Ints
from helpers.catalogues import catalogue

N = 4000
BASKETS = [[], [0], [3, 1000], [7, 1, 3999, 200, 50], list(range(0, 40, 2))]
two_forms = pytest.mark.parametrize("each", [False, True])


@two_forms
def test_no_score_is_above_its_bound_and_some_are_close(each: bool) -> None:
    kernel = catalogue(N, each=each)
    for basket in map(np.array, BASKETS[1:]):
        state = beside(kernel, basket)
        bounds = Bounds.of(kernel)
        ratio = state.scores() / bounds.items.at(state)
        ratio[basket] = 0
        assert 0.2 < ratio.max() < 1
        of_block = np.repeat(bounds.blocks.at(state), BLOCK)[:N]
        assert np.all(bounds.items.at(state)[bounds.order] <= of_block * (1 + 1e-6))


@two_forms
@pytest.mark.parametrize("basket", BASKETS)
def test_the_pruned_top_ten_is_that_of_all_items(each: bool, basket: list[int]) -> None:
    law = FactoredLaw(catalogue(N, each=each))
    A = np.array(basket, dtype=np.int64)
    candidate = np.random.default_rng(0).random(N) < 0.3
    for k, among in ((10, None), (10, candidate), (700, None), (700, candidate)):
        found, expected = law.best_next(A, k, among), best_of(*law.next_item(A), A, k, among)
        assert found[0].tolist() == expected[0].tolist()
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-10)


def test_most_items_are_never_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    law, scored = FactoredLaw(catalogue(N)), []
    whole = Beside.scores_of

    def counted(state: Beside, items: Ints) -> Floats:
        scored.append(len(items))
        return whole(state, items)

    monkeypatch.setattr(Beside, "scores_of", counted)
    law.best_next(np.array([3, 40]), 10)
    assert 0 < sum(scored) < N / 3


def test_equal_scores_are_told_apart_by_probability_and_then_by_position() -> None:
    """Two segments as likely beside nothing, in which items differ; and items that are the same."""
    log_odds = np.log([[2.0, 1.0, 1.0, 0.5, 0.5], [0.0625, 1.0, 1.0, 0.5, 0.5]])
    law = FactoredLaw(FactoredKernel(np.array([0.5, 0.5]), log_odds, np.zeros((5, 0)), np.zeros((1, 0, 0))))
    assert law.best_next(np.array([], dtype=np.int64), 2)[0].tolist() == [1, 2]
    assert (
        law.best_next(np.array([1]), 3)[0].tolist() == best_of(*law.next_item(np.array([1])), [1], 3, None)[0].tolist()
    )


def test_a_law_that_is_never_empty_ranks_what_comes_first_by_probability() -> None:
    law = WithEmptyShare(FactoredLaw(catalogue(N)))
    items, score, probability = law.best_next(np.array([], dtype=np.int64), 5)
    assert np.isnan(score).all()
    assert items.tolist() == np.argsort(-law.marginals(), kind="stable")[:5].tolist()
    np.testing.assert_allclose(probability, law.marginals()[items], rtol=1e-12)


@two_forms
@pytest.mark.parametrize(("k", "include"), [(12, []), (12, [399, 4]), (None, []), (None, [200, 2, 17])])
def test_lazy_greedy_takes_what_greedy_over_all_items_takes(each: bool, k: int | None, include: list[int]) -> None:
    kernel = catalogue(400, each=each, seed=1)
    found = FactoredLaw(kernel).greedy(k, np.array(include, dtype=np.int64))
    expected = MixtureLaw(kernel.dense()).greedy(k, np.array(include, dtype=np.int64))
    assert found[0].tolist() == expected[0].tolist()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)


def test_greedy_on_two_items_ends_with_both() -> None:
    law = FactoredLaw(FactoredKernel.of_items([0.5, 1.0]))
    items, gains = law.greedy(5, np.array([], dtype=np.int64))
    assert items.tolist() == [1, 0]
    np.testing.assert_allclose(gains, np.exp([1.0, 0.5]), rtol=1e-7)


def test_odds_beyond_single_precision_leave_the_order() -> None:
    law = FactoredLaw(FactoredKernel.of_items([-120.0, -110.0, 95.0, 100.0]))
    assert law.best_next(np.array([], dtype=np.int64), 4)[0].tolist() == [3, 2, 1, 0]
