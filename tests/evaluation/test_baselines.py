"""Baselines equal plain counting; models rank as they recommend."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import DPP, Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.baselines import (
    DEFAULT_RIDGE,
    RIDGES,
    Learned,
    baselines,
    blend_predictor,
    choose_ridge,
    ease,
    learn_baselines,
    model_predictor,
)
from dpplearn.evaluation.protocol import ALL_BUT_ONE, Predictor, answer, ask
from dpplearn.learners.kernels import distribution_of
from dpplearn.models.record import Training
from helpers.problems import as_mixture, random_kernel, random_mixture, sampled

TRAIN = Baskets.from_lists([[0, 1], [0, 1], [0, 2], [1], [], [0, 1, 2]], n_items=5, weights=[1, 1, 2, 1, 1, 3])
NONE = distribution_of(SpectralDPP(np.full(5, 0.5), np.eye(5)))  # not used where training data are known


def counted(*items: int) -> float:
    """Return the weight of the training baskets that contain the items."""
    return sum(w for basket, w in zip(TRAIN, TRAIN.weights, strict=True) if set(items) <= set(basket))


def scores(predictor: Predictor, *basket: int) -> Floats:
    return predictor.scores([np.array(basket, np.int64)])[0]


@pytest.fixture(scope="module")
def learned() -> dict[str, Predictor]:
    return baselines(Learned(Training.of(TRAIN)), NONE)


def test_independent_items_are_smoothed_so_that_unseen_items_stay_possible(learned: dict[str, Predictor]) -> None:
    p = np.array([(counted(i) + 0.5) / (TRAIN.total_weight + 1) for i in range(5)])
    test = Baskets.from_lists([[], [0, 3], [4], range(5)], n_items=5)
    expected = [np.prod([p[i] if i in basket else 1 - p[i] for i in range(5)]) for basket in test]
    independent = learned["independent items"]
    assert independent.distribution is not None
    assert independent.probabilities is not None
    np.testing.assert_allclose(np.exp(independent.distribution.log_prob(test)), expected)
    np.testing.assert_allclose(independent.probabilities([np.array([1])]), [p])


def test_popularity_and_item_to_item_are_those_of_plain_counting(learned: dict[str, Predictor]) -> None:
    frequencies = [counted(i) / TRAIN.total_weight for i in range(5)]
    np.testing.assert_allclose(scores(learned["popularity"], 1), frequencies)
    found = scores(learned["item-to-item"], 1, 2)
    assert found[0] == pytest.approx((counted(0, 1) / counted(1) + counted(0, 2) / counted(2)) / 2)
    assert found[3] == 0
    np.testing.assert_allclose(scores(learned["item-to-item"], 3), frequencies)  # an item that never occurred
    for name in ("EASE", "item-to-item", "popularity"):
        assert learned[name].distribution is learned[name].probabilities is None


def test_ease_is_the_ridge_regression_of_each_item_on_the_others() -> None:
    """Column j of B minimises |x_j − X b|² + λ|b|² over the b with b_j = 0."""
    rows = [[float(i in basket) for i in range(5)] for basket in TRAIN]
    X, ridge = np.repeat(rows, TRAIN.weights.astype(int), axis=0), 0.01
    B = np.zeros((5, 5))
    for j in range(5):
        others = np.delete(np.arange(5), j)
        A = X[:, others]
        B[others, j] = np.linalg.solve(A.T @ A + ridge * len(X) * np.eye(4), A.T @ X[:, j])
    found = ease(Training.of(TRAIN), ridge)
    for basket in ([1], [0, 2], [3], [0, 1, 2, 4]):
        x = np.isin(np.arange(5), basket).astype(float)
        np.testing.assert_allclose(scores(found, *basket), x @ B, atol=1e-12)


def test_ease_of_many_items_is_that_of_the_most_frequent_and_ranks_the_others_last() -> None:
    two = Baskets.from_lists([[i for i in basket if i < 2] for basket in TRAIN], n_items=2, weights=TRAIN.weights)
    found = scores(ease(Training.of(TRAIN), 0.1, max_items=2), 1, 2)
    np.testing.assert_allclose(found[:2], scores(ease(Training.of(two), 0.1), 1))
    assert found[:2].min() > found[2] > found[3]  # item 3 never occurred
    np.testing.assert_allclose(scores(ease(Training.of(TRAIN), 0.1, max_items=2), 2), TRAIN.frequencies())


def test_a_model_ranks_as_it_recommends_also_in_a_blend() -> None:
    rng = np.random.default_rng(0)
    at_one = SpectralDPP(np.array([0.2, 0.5, 0.9, 1.0, 1.0]), np.linalg.qr(rng.standard_normal((5, 5)))[0])
    models = (DPP(random_kernel(rng, 7)), DPP(at_one), DPP(at_one, nonempty=True), as_mixture(random_mixture(1, 7)))
    for model in (*models, as_mixture(random_mixture(2, 7), nonempty=True)):
        for basket in ([3], [1, 4]):
            found = scores(model_predictor(model.distribution), *basket)
            best = [each.item for each in model.recommend(basket, 7)]
            ranked = [item for item in np.argsort(-found).tolist() if item not in basket]
            assert len(best) > 2
            assert best == ranked[: len(best)]
            assert not np.isnan(found).any()  # where P(A) is zero, by the probability
    model = as_mixture(random_mixture(2, 5), training=Training.of(TRAIN))
    found = scores(blend_predictor(model.distribution, Training.of(TRAIN), 0.3), 1)
    assert [each.item for each in model.recommend([1], blend=0.3)] == np.argsort(-found)[:4].tolist()


def test_the_chosen_ridge_ranks_best_on_validation_data() -> None:
    train = sampled(0, 600, 8)
    rng = np.random.default_rng(7)
    kept, validation = train.split(0.8, rng)
    questions = ask(validation, rng, (ALL_BUT_ONE,))
    kept = Training.of(kept)
    ranks = [answer(ease(kept, ridge), questions, ()).columns["percentile_rank_all_but_one"] for ridge in RIDGES]
    means = [np.average(each[~np.isnan(each)]) for each in ranks]
    assert choose_ridge(train, np.random.default_rng(7)) == RIDGES[int(np.argmax(means))]


def test_the_ridge_of_ease_is_chosen_only_where_training_baskets_are_given() -> None:
    # Integer random numbers: the same baskets on every processor. The best ridge of so few baskets varies widely.
    rows = np.random.default_rng(0).integers(10, size=(800, 8)) < 3
    parts = [Baskets.from_matrix(rows[start : start + 100].astype(int)) for start in range(0, 800, 100)]
    chosen = {learn_baselines(part, np.random.default_rng(0)).ridge for part in parts}
    assert len(chosen) > 2
    for part in parts:
        assert learn_baselines(Training.of(part), np.random.default_rng(0)).ridge == DEFAULT_RIDGE
