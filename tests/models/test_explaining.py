"""Explanations of a recommendation: Shapley values of the basket items against all orders."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from dpplearn import DPP, InputError
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.spectral import SpectralDPP
from helpers.problems import as_mixture, random_kernel, random_low_rank, random_mixture


def some_dpp(n_items: int = 7, seed: int = 0) -> DPP:
    return DPP(random_kernel(np.random.default_rng(seed), n_items))


def next_item(dpp: DPP, basket: Any) -> tuple[Any, Any]:
    scores, probabilities = dpp.distribution.next_items(sets_of([np.array(basket, int)], len(dpp.items)))
    return scores[0], probabilities[0]


def brute_force(dpp: DPP, basket: list[int], item: int) -> np.ndarray[Any, Any]:
    """Return the contribution of each basket item to log-score and log-probability, averaged over all orders."""
    steps, orders = np.zeros((len(basket), 2)), list(permutations(range(len(basket))))
    for order in orders:
        prefixes = [[basket[i] for i in order[:size]] for size in range(len(basket) + 1)]
        steps[list(order)] += np.diff(np.log([[each[item] for each in next_item(dpp, A)] for A in prefixes]), axis=0)
    return steps / len(orders)


@pytest.mark.parametrize("basket", [[3], [1, 4], [5, 0, 2], [6, 4, 1, 3]])
def test_factors_are_shapley_values_over_all_orders(basket: list[int]) -> None:
    dpp = some_dpp()
    item = next(i for i in range(7) if i not in basket)
    explained = dpp.explain(basket, item)
    score, probability = next_item(dpp, basket)
    assert explained.alone == pytest.approx(dpp.K[item, item], rel=1e-9)
    assert (explained.given, explained.score) == pytest.approx((probability[item], score[item]), rel=1e-9)
    assert np.all(np.diff([each.factor for each in explained.influences]) >= 0)  # the strongest first
    found = {each.item: each for each in explained.influences}
    for j, (score, probability) in zip(basket, brute_force(dpp, basket, item), strict=True):
        assert np.log(found[j].factor) == pytest.approx(probability, abs=1e-12)
        assert np.log(found[j].score_factor) == pytest.approx(score, abs=1e-12)


def test_scores_do_not_exist_where_the_empty_set_is_impossible() -> None:
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    found = DPP(SpectralDPP(np.array([1, 0.6, 0.4, 0.2]), V)).explain([1, 2], 0)
    assert np.isnan(found.score_alone)
    assert all(np.isnan(each.score_factor) for each in found.influences)
    assert found.alone * np.prod([each.factor for each in found.influences]) == pytest.approx(found.given)
    assert found.score > 0  # of the whole basket it does


def test_an_item_that_rules_the_candidate_out_has_factor_zero() -> None:
    K = np.array([[0.4, 0.4, 0.1], [0.4, 0.4, 0.1], [0.1, 0.1, 0.5]])  # 0 and 1 are copies
    found = DPP.from_K(K).explain([1, 2], 0)
    assert (found.influences[0].item, found.influences[0].factor, found.given) == (1, 0, 0)
    assert 0 < found.influences[1].factor < 1


def test_larger_baskets_are_sampled_around_the_exact_values() -> None:
    """Items that are independent of the candidate and of the others have no share, and change no other share."""
    some = some_dpp(4, seed=3)
    dpp, basket = DPP.from_K(block_diag(some.K, 0.3 * np.eye(8))), list(range(1, 12))
    exact = dict.fromkeys(basket, 0.0) | {
        each.item: np.log(each.factor) for each in some.explain([1, 2, 3], 0).influences
    }
    found = dpp.explain(basket, 0, n_orders=400)
    assert found.n_orders == 400
    assert found.alone * np.prod([each.factor for each in found.influences]) == pytest.approx(found.given, rel=1e-12)
    off = np.array([np.log(each.factor) - exact[each.item] for each in found.influences])
    assert 0 < np.abs(off).max() < 4 * found.error < 0.2
    assert "400" in str(found)
    one, same, other = (dpp.explain(basket, 0, n_orders=20, rng=seed) for seed in (0, 0, 1))
    assert one == same != other


@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("segments", [random_mixture(3, 9), random_low_rank(3, 9)], ids=["dense", "low-rank"])
def test_prefixes_of_an_order_have_the_values_of_separate_queries(segments: Any, nonempty: bool) -> None:
    distribution, rng = as_mixture(segments, nonempty=nonempty).distribution, np.random.default_rng(4)
    basket, orders = np.array([5, 0, 7, 2]), np.array([rng.permutation(4) for _ in range(3)])
    found = distribution.next_item_along(basket, orders, 3)
    prefixes = sets_of([basket[order[:size]] for order in orders for size in range(5)], 9)
    for each, expected in zip(found, distribution.next_items(prefixes, np.full((15, 1), 3)), strict=True):
        np.testing.assert_allclose(each, expected.reshape(3, 5), rtol=1e-10)
    assert np.isnan(found[0][:, 0]).all() == nonempty


def test_impossible_questions_are_refused() -> None:
    assert some_dpp().explain([], 0).influences == ()
    at_most_one = DPP(SpectralDPP(np.array([0.5, 0.0, 0.0]), np.eye(3)), ["a", "b", "c"])
    for basket, item, n_orders, value in (
        (["a"], "a", 100, "'a'"),
        (["a"], "b", 100, "'b'"),
        (["b"], "a", 100, None),
        ([], "a", 1, r"n_orders.*1"),
    ):
        with pytest.raises(InputError, match=value):
            at_most_one.explain(basket, item, n_orders=n_orders)
