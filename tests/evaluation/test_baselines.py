"""Baselines by plain counting, and models by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import DPP, Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation import ridge_choice
from dpplearn.evaluation.baselines import (
    COSINE,
    EASE,
    INDEPENDENT,
    ITEM_TO_ITEM,
    POPULARITY,
    Predictor,
    baselines_of,
    baselines_without_training,
    ease,
    ease_of,
    of_blend,
    of_model,
)
from dpplearn.evaluation.ridge_choice import RIDGES, chosen_ridge
from dpplearn.learners.kernels import distribution_of
from dpplearn.models.training import Training
from helpers import oracle
from helpers.problems import as_mixture, random_kernel, random_mixture, sampled

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
    np.testing.assert_allclose(independent.pair_probabilities(np.arange(5)), np.tile(p, (5, 1)))


def test_popularity_item_to_item_and_cosine_are_those_of_plain_counting(baselines: dict[str, Predictor]) -> None:
    frequencies = [counted(i) / TRAIN.total_weight for i in range(5)]
    np.testing.assert_allclose(baselines[POPULARITY].scores(np.array([1])), frequencies)
    scores = baselines[ITEM_TO_ITEM].scores(np.array([1, 2]))
    assert scores[0] == pytest.approx((counted(0, 1) / counted(1) + counted(0, 2) / counted(2)) / 2)
    assert scores[3] == 0
    unseen = baselines[ITEM_TO_ITEM].scores(np.array([3]))
    np.testing.assert_allclose(unseen, frequencies)  # of an item that never occurred, nothing is known
    X = matrix()[:, :3]  # items 3 and 4 never occur
    unit = X / np.linalg.norm(X, axis=0)
    scores = baselines[COSINE].scores(np.array([0, 2]))
    assert scores[1] == pytest.approx(unit[:, 1] @ unit[:, 0] + unit[:, 1] @ unit[:, 2])
    assert scores[3] == scores[4] == 0
    assert np.isfinite(baselines[COSINE].scores(np.array([3]))).all()
    for name in (EASE, COSINE, ITEM_TO_ITEM):  # without an item to go by
        np.testing.assert_allclose(baselines[name].scores(np.zeros(0, np.int64)), TRAIN.frequencies())
    for name in (EASE, COSINE, ITEM_TO_ITEM, POPULARITY):
        assert baselines[name].log_prob(TRAIN) is None
        assert baselines[name].pair_probabilities is None or name == ITEM_TO_ITEM


def matrix() -> Floats:
    """The training baskets as rows of 0 and 1, one row per basket that a weight counts."""
    rows = [[float(i in basket) for i in range(5)] for basket in TRAIN]
    return np.repeat(rows, TRAIN.weights.astype(int), axis=0)


def test_ease_is_the_ridge_regression_of_each_item_on_the_others() -> None:
    """Column j of B minimises |x_j − X b|² + λ|b|² over the b that leave out item j itself."""
    X, ridge = matrix(), 0.01
    B = np.zeros((5, 5))
    for j in range(5):
        others = np.delete(np.arange(5), j)
        A = X[:, others]
        B[others, j] = np.linalg.solve(A.T @ A + ridge * len(X) * np.eye(4), A.T @ X[:, j])
    ease = baselines_of(Training.of(TRAIN), ridge=ridge)[EASE]
    for basket in ([1], [0, 2], [3], [0, 1, 2, 4]):
        x = np.isin(np.arange(5), basket).astype(float)
        np.testing.assert_allclose(ease.scores(np.array(basket)), x @ B, atol=1e-12)


def test_without_training_data_the_marginals_are_used_with_and_without_the_empty_basket() -> None:
    found = baselines_without_training(distribution_of(SpectralDPP(np.array([0.5, 0.0, 0.25]), np.eye(3))))
    assert list(found) == [INDEPENDENT, POPULARITY]
    one, impossible = found[INDEPENDENT].log_prob(Baskets.from_lists([[0], [0, 1]], n_items=3))
    assert (np.exp(one), impossible) == (pytest.approx(0.5 * 0.75), -np.inf)
    law = distribution_of(
        SpectralDPP(np.array([0.5, 0.1, 0.25]), np.eye(3)), nonempty=True
    )  # independent items themselves
    independent = baselines_without_training(law, nonempty=True)[INDEPENDENT]
    sets = Baskets.from_lists([[0], [1, 2], [0, 1, 2]], n_items=3)
    np.testing.assert_allclose(independent.log_prob(sets), law.log_prob(sets), atol=1e-8)


def test_a_model_ranks_as_it_recommends_also_in_a_blend() -> None:
    rng = np.random.default_rng(0)
    at_one = SpectralDPP(np.array([0.2, 0.5, 0.9, 1.0, 1.0]), np.linalg.qr(rng.standard_normal((5, 5)))[0])
    models = (DPP(random_kernel(rng, 7)), DPP(at_one), DPP(at_one, nonempty=True), as_mixture(random_mixture(1, 7)))
    for model in (*models, as_mixture(random_mixture(2, 7), nonempty=True)):
        for basket in ([], [3], [1, 4]):
            scores = of_model(model.distribution).scores(np.array(basket, np.int64))
            best = [found.item for found in model.recommend(basket, 7)]
            ranked = [item for item in np.argsort(-scores).tolist() if item not in basket]
            assert len(best) > 2
            assert best == ranked[: len(best)]
            assert not np.isnan(scores).any()  # where P(A) is zero, by the probability
    model = as_mixture(random_mixture(2, 5), training=Training.of(TRAIN))
    scores = of_blend(model.distribution, Training.of(TRAIN), 0.3).scores(np.array([1]))
    assert [each.item for each in model.recommend([1], blend=0.3)] == np.argsort(-scores)[:4].tolist()


LAWS = {
    "symmetric": distribution_of(random_kernel(np.random.default_rng(1), 5)),
    "mixture": distribution_of(random_mixture(1, 5)),
    "mixture, never empty": distribution_of(random_mixture(2, 5), nonempty=True),
    "mixture, seldom empty": distribution_of(random_mixture(2, 5)).with_p_empty(0.05),
}
SUBSETS = Baskets.from_lists(oracle.subsets(5), n_items=5)


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_given_one_item_and_given_a_nonempty_basket_are_those_of_enumeration(name: str) -> None:
    P = np.exp(LAWS[name].log_prob(SUBSETS))
    holds = np.array([[i in subset for i in range(5)] for subset in SUBSETS])
    found = of_model(LAWS[name]).pair_probabilities(np.arange(5))
    assert found is not None
    for a in range(5):
        given = (P * holds[:, a]) @ holds / P[holds[:, a]].sum()
        np.testing.assert_allclose(np.delete(found[a], a), np.delete(given, a), atol=1e-12)
    P[SUBSETS.sizes == 0] = 0
    law = LAWS[name].with_p_empty(0.0)
    np.testing.assert_allclose(np.exp(law.log_prob(SUBSETS)), P / P.sum(), atol=1e-12)


def test_what_is_impossible_under_a_model_has_no_ranking_and_no_probability() -> None:
    model = of_model(distribution_of(SpectralDPP(np.array([0.5, 0.4, 0.0]), np.eye(3))))
    assert np.isnan(model.scores(np.array([0, 2]))).all()
    assert np.isnan(model.pair_probabilities(np.arange(3))[2]).all()
    assert not np.isnan(model.pair_probabilities(np.arange(3))[:2]).any()


def test_given_not_empty_independent_items_are_those_whose_baskets_that_are_not_have_the_frequencies() -> None:
    rng = np.random.default_rng(0)
    sets = [np.flatnonzero(row).tolist() for row in rng.random((4000, 5)) < [0.5, 0.3, 0.2, 0.1, 0.05]]
    baskets = Baskets.from_lists([each for each in sets if each], n_items=5)
    law = baselines_of(Training.of(baskets), nonempty=True)[INDEPENDENT].distribution
    assert law is not None
    assert law.log_empty() == -np.inf
    n = len(baskets)
    np.testing.assert_allclose(law.marginals(), (baskets.frequencies() * n + 0.5) / (n + 1), atol=1e-9)


def test_ease_of_many_items_is_that_of_the_most_frequent_and_puts_the_others_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training = Training.of(TRAIN)
    monkeypatch.setattr("dpplearn.evaluation.baselines.MOST_IN_EASE", 2)
    found = ease_of(training, 0.1).scores(np.array([1, 2]))
    inner = ease(training.pair_counts_among(np.array([0, 1])) / training.weight, 0.1).scores(np.array([1]))
    np.testing.assert_allclose(found[:2], inner)
    assert found[2] < found[:2].min()
    assert found[2] > found[3]  # which never occurred
    np.testing.assert_allclose(ease_of(training, 0.1).scores(np.array([2])), TRAIN.frequencies())


@pytest.mark.parametrize(("seed", "expected"), [(0, 0.03), (3, 3.0)])
def test_it_is_the_one_that_ranks_best_by_plain_loops(seed: int, expected: float) -> None:
    train = sampled(seed, 600, 8)
    rng = np.random.default_rng(7)
    kept, aside = train.split(0.8, rng)
    questions = ridge_choice.ask(aside, rng)
    means = []
    for ridge in RIDGES:
        predictor, found = ease(Training.of(kept).pair_frequencies(), ridge), []
        for row, held in zip(questions.ranked.tolist(), questions.held.tolist(), strict=True):
            rest = [item for item in aside[row] if item != held]
            scores = predictor.scores(np.array(rest))
            others = [scores[i] for i in range(8) if i not in rest and i != held]
            found.append(np.mean([(other < scores[held]) + (other == scores[held]) / 2 for other in others]))
        means.append(np.mean(found))
    assert RIDGES[int(np.argmax(means))] == expected
    assert chosen_ridge(train, np.random.default_rng(7)) == expected


def test_baskets_that_are_too_few_or_hold_one_item_each_choose_none() -> None:
    train = sampled(0, 400, 8)
    train = train.subset(train.sizes > 1)
    assert chosen_ridge(train[:49], np.random.default_rng(0)) is None
    assert chosen_ridge(train[:50], np.random.default_rng(0)) is not None
    single = Baskets.from_lists([[0], [1], [2]] * 100, n_items=3)
    assert chosen_ridge(single, np.random.default_rng(0)) is None
