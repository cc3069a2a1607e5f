"""Baselines by plain counting, and models by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Kernel
from dpplearn.evaluation.baselines import (
    INDEPENDENT,
    ITEM_TO_ITEM,
    POPULARITY,
    Predictor,
    baselines_of,
    baselines_without_training,
    of_model,
)
from dpplearn.kernels.symmetric.statistics import log_nonempty
from dpplearn.models.training import Training
from helpers import oracle
from helpers.problems import random_kernel

TRAIN = Baskets.from_lists([[0, 1], [0, 1], [0, 2], [1], [], [0, 1, 2]], n_items=5, weights=[1, 1, 2, 1, 1, 3])


def counted(*items: int) -> float:
    """The weight of the training baskets that hold the items."""
    return sum(w for basket, w in zip(TRAIN, TRAIN.weights, strict=True) if set(items) <= set(basket))


@pytest.fixture(scope="module")
def baselines() -> dict[str, Predictor]:
    return baselines_of(Training.of(TRAIN))


def test_independent_items_are_smoothed_so_that_unseen_items_stay_possible(baselines: dict[str, Predictor]) -> None:
    independent = baselines[INDEPENDENT]
    p = np.array([(counted(i) + 0.5) / (TRAIN.total_weight + 1) for i in range(5)])
    test = Baskets.from_lists([[], [0, 3], [4], range(5)], n_items=5)
    expected = [np.prod([p[i] if i in basket else 1 - p[i] for i in range(5)]) for basket in test]
    np.testing.assert_allclose(np.exp(independent.log_prob(test)), expected)
    np.testing.assert_allclose(independent.pair_probabilities, np.tile(p, (5, 1)))
    given = independent.log_prob(test, nonempty=True)
    assert given[0] == -np.inf
    np.testing.assert_allclose(np.exp(given[1:]), np.array(expected[1:]) / (1 - np.prod(1 - p)))


def test_popularity_ranks_by_frequency_and_has_no_probabilities(baselines: dict[str, Predictor]) -> None:
    np.testing.assert_allclose(
        baselines[POPULARITY].scores(np.array([1])), [counted(i) / TRAIN.total_weight for i in range(5)]
    )
    assert baselines[POPULARITY].log_prob(TRAIN) is None
    assert baselines[POPULARITY].pair_probabilities is None


def test_item_to_item_is_the_mean_share_of_baskets_with_an_item_that_hold_the_other(
    baselines: dict[str, Predictor],
) -> None:
    scores = baselines[ITEM_TO_ITEM].scores(np.array([1, 2]))
    assert scores[0] == pytest.approx((counted(0, 1) / counted(1) + counted(0, 2) / counted(2)) / 2)
    assert scores[3] == 0
    np.testing.assert_allclose(
        baselines[ITEM_TO_ITEM].scores(np.array([3])), [counted(i) / TRAIN.total_weight for i in range(5)]
    )  # of an item that never occurred, nothing is known
    assert baselines[ITEM_TO_ITEM].log_prob(TRAIN) is None


def test_without_training_data_the_marginals_stand_in() -> None:
    found = baselines_without_training(Kernel(np.array([0.5, 0.0, 0.25]), np.eye(3)))
    assert list(found) == [INDEPENDENT, POPULARITY]
    one, impossible = found[INDEPENDENT].log_prob(Baskets.from_lists([[0], [0, 1]], n_items=3))
    assert (np.exp(one), impossible) == (pytest.approx(0.5 * 0.75), -np.inf)


def test_a_model_ranks_as_it_recommends() -> None:
    rng = np.random.default_rng(0)
    at_one = Kernel(np.array([0.2, 0.5, 0.9, 1.0, 1.0]), np.linalg.qr(rng.standard_normal((5, 5)))[0])
    for kernel in (random_kernel(rng, 7), at_one):
        for basket in ([], [3], [1, 4]):
            scores = of_model(kernel).scores(np.array(basket, np.int64))
            best = [found.item for found in DPP(kernel).recommend(basket, 7)]
            ranked = [item for item in np.argsort(-scores).tolist() if item not in basket]
            assert len(best) > 2
            assert best == ranked[: len(best)]
            assert not np.isnan(scores).any()  # where P(A) is zero, by the probability


def test_a_models_probabilities_given_one_item_are_those_of_enumeration() -> None:
    kernel = random_kernel(np.random.default_rng(1), 5)
    P = oracle.probabilities_from_K(kernel.K)
    found = of_model(kernel).pair_probabilities
    for a in range(5):
        given = oracle.item_marginals(oracle.conditional(P, [a]))
        np.testing.assert_allclose(np.delete(found[a], a), np.delete(given, a), atol=1e-12)


def test_what_is_impossible_under_a_model_has_no_ranking_and_no_probability() -> None:
    model = of_model(Kernel(np.array([0.5, 0.4, 0.0]), np.eye(3)))
    assert np.isnan(model.scores(np.array([0, 2]))).all()
    assert np.isnan(model.pair_probabilities[2]).all()
    assert not np.isnan(model.pair_probabilities[:2]).any()


def test_given_that_a_basket_is_not_empty_the_others_sum_to_one() -> None:
    model = of_model(random_kernel(np.random.default_rng(2), 4))
    everything = Baskets.from_lists(oracle.subsets(4), n_items=4)
    assert np.exp(model.log_prob(everything)).sum() == pytest.approx(1)
    assert np.exp(model.log_prob(everything, nonempty=True)[1:]).sum() == pytest.approx(1)


def test_given_not_empty_independent_items_are_those_whose_baskets_that_are_not_have_the_frequencies() -> None:
    rng = np.random.default_rng(0)
    sets = [np.flatnonzero(row).tolist() for row in rng.random((4000, 5)) < [0.5, 0.3, 0.2, 0.1, 0.05]]
    baskets = Baskets.from_lists([each for each in sets if each], n_items=5)
    kernel = baselines_of(Training.of(baskets), nonempty=True)["independent items"].kernel
    assert kernel is not None
    found = kernel.K.diagonal() / np.exp(log_nonempty(kernel))
    n = len(baskets)
    np.testing.assert_allclose(found, (baskets.frequencies() * n + 0.5) / (n + 1), atol=1e-9)


def test_without_training_data_independent_items_of_a_diagonal_model_are_the_model_given_not_empty_too() -> None:
    kernel = Kernel(np.array([0.5, 0.1, 0.25]), np.eye(3))
    found = baselines_without_training(kernel, nonempty=True)[INDEPENDENT].kernel
    assert found is not None
    np.testing.assert_allclose(found.K, kernel.K, atol=1e-9)
