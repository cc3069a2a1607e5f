"""The public function evaluate, end to end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, Evaluation, InputError
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.protocol import TASKS
from dpplearn.models.record import Training
from helpers.problems import as_mixture, random_kernel, random_mixture

ITEMS = ["crib", "cot", "monitor", "stroller", "bib", "bottle", "bear"]


X = np.random.default_rng(0).standard_normal((7, 3))  # few dimensions, so that items repel
BARE = DPP.from_L(2 * X @ X.T + 0.05 * np.eye(7), ITEMS)


@pytest.fixture(scope="module")
def train() -> Baskets:
    return Baskets.from_lists(BARE.sample(2000, rng=1), items=ITEMS)


@pytest.fixture(scope="module")
def test() -> Baskets:
    return Baskets.from_lists(BARE.sample(1500, rng=2), items=ITEMS)


@pytest.fixture(scope="module")
def truth(train: Baskets) -> DPP:
    return BARE.with_record(BARE.learned, Training.of(train))


@pytest.fixture(scope="module")
def evaluation(truth: DPP, test: Baskets) -> Evaluation:
    return dl.evaluate(truth, test, k=(1, 3))


RANKING = ("percentile_rank", "recall@1", "recall@3", "ndcg@1", "ndcg@3")
MEASURES = ("log_likelihood", *(f"{measure}_{task}" for task in TASKS for measure in RANKING))


def test_means_and_sizes_are_those_of_the_model(evaluation: Evaluation, truth: DPP, test: Baskets) -> None:
    found = evaluation.estimate("model")
    assert found.value == pytest.approx(truth.log_likelihood(test), abs=1e-12)
    assert found.low < found.value < found.high
    spread = truth.log_prob(test).std() / math.sqrt(len(test))
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.15)
    assert evaluation.measures("model") == MEASURES
    shares = np.bincount(test.sizes, minlength=8) / len(test)
    distance = np.abs(truth.size_distribution - shares).sum() / 2
    assert set(evaluation.size_distance) == {"model", "independent items"}
    assert evaluation.size_distance["model"] == pytest.approx(distance, abs=1e-12)
    assert evaluation.size_distance["independent items"] > 3 * distance
    rows = {row["name"]: row["size_distance"] for row in evaluation.to_dict()["rows"]}
    assert (rows["model"], rows["EASE"]) == (evaluation.size_distance["model"], None)


def test_models_of_any_family_may_have_their_items_in_another_order(test: Baskets) -> None:
    shuffled = np.random.default_rng(6).permutation(ITEMS).tolist()
    for nonempty, baskets in ((False, test), (True, test.subset(test.sizes > 0))):
        model = as_mixture(random_mixture(3, 7), ITEMS, nonempty=nonempty)
        found = dl.evaluate({"one": model, "turned": model.restrict(shuffled)}, baskets)
        for measure in found.measures("one"):
            np.testing.assert_allclose(found.outcomes["turned"][measure], found.outcomes["one"][measure], atol=1e-9)
        assert found.size_distance["turned"] == pytest.approx(found.size_distance["one"], abs=1e-12)
        for task in TASKS:
            turned_error, error = (found.reliability[name][task].error for name in ("turned", "one"))
            assert turned_error == pytest.approx(error, abs=1e-12)


def test_if_one_model_has_no_empty_baskets_all_are_compared_given_nonempty_baskets(truth: DPP, test: Baskets) -> None:
    never = DPP(truth.kernel, ITEMS, nonempty=True, training=truth.training)
    found = dl.evaluate({"any": truth, "never": never}, test)
    assert found.nonempty
    assert found.estimate("any").value == found.estimate("never").value == -np.inf  # some baskets are empty
    filled = test.subset(test.sizes > 0)
    found = dl.evaluate({"any": truth, "never": never}, filled)
    expected = truth.log_prob(filled) - np.log1p(-truth.distribution.p_empty)
    for name in found.models:
        np.testing.assert_allclose(found.outcomes[name]["log_likelihood"], expected, atol=1e-12)
    assert not dl.evaluate(truth, filled).nonempty


def test_a_sample_of_the_baskets_is_evaluated_and_reported(truth: DPP, test: Baskets) -> None:
    chosen = [dl.evaluate(truth, test, max_baskets=50, rng=seed) for seed in range(2)]
    assert [len(each.weights) for each in chosen] == [50, 50]
    assert chosen[0].rows[-1] > 750  # not the first ones
    assert set(chosen[0].rows) != set(chosen[1].rows)
    for each in chosen:
        expected = truth.log_prob(test.subset(each.rows))
        np.testing.assert_allclose(each.outcomes["model"]["log_likelihood"], expected, atol=1e-12)
        assert any("50 of 1,500" in note for note in each.notes)
    every = dl.evaluate(truth, test, max_baskets=None)
    assert (len(every.weights), every.tables()[0].title) == (1500, "1,500 held-out baskets, 7 items")


def test_training_baskets_are_recognised_by_their_sets_not_only_by_item_counts() -> None:
    train = Baskets.from_lists([["bib", "cot"], ["cup"], ["cot"], ["bib", "cup"], ["bib"]] * 10)
    other = Baskets.from_lists([["bib"], ["cot", "cup"], ["cot", "bib"], ["cup"], ["bib"]] * 10)
    np.testing.assert_allclose(train.frequencies(), other.frequencies(), rtol=1e-15)
    model = dl.fit_dpp(train, max_iter=3).model
    reverse = train.subset(np.arange(len(train))[::-1])
    with_unused = Baskets.from_lists([*train, ["bib", "cot", "cup"]], weights=[1.0] * len(train) + [0.0])
    for baskets, warned in ((train, True), (reverse, True), (with_unused, True), (other, False)):
        assert any("zebra" in note for note in dl.evaluate({"zebra": model}, baskets).notes) == warned


def test_models_without_a_likelihood_have_gaps_in_the_table(train: Baskets, test: Baskets) -> None:
    model = dl.fit(train, segments=1, rng=0, max_iter=5).model
    blend = dl.Mixture(model.distribution, ITEMS, training=replace(Training.of(train), blend=0.3))
    table = dl.evaluate(blend, test).to_table()
    assert table["model"][[0, -1]].tolist() == ["model", "model, blended"]
    blended = table["model"] == "model, blended"
    assert np.isnan(table["log_likelihood"][blended].astype(float)).all()
    np.testing.assert_allclose(table["log_likelihood"][~blended].astype(float), blend.log_prob(test), atol=1e-12)


def test_the_model_that_made_the_data_is_better_than_every_baseline_and_calibrated(evaluation: Evaluation) -> None:
    assert evaluation.baselines == ("independent items", "popularity", "item-to-item", "EASE")
    others = {"log_likelihood": "independent items", "percentile_rank": "popularity", "ndcg@3": "popularity"}
    for measure, other in others.items():
        found = evaluation.difference("model", other, measure)
        means = [evaluation.estimate(name, measure).value for name in ("model", other)]
        assert found.verdict == "better"
        assert found.value == pytest.approx(means[0] - means[1])
    itself = evaluation.difference("model", "model")
    assert (itself.value, itself.low, itself.high) == (0, 0, 0)
    error = {name: found["given_one"].error for name, found in evaluation.reliability.items()}
    assert error["model"] < error["independent items"] / 3
    for measure in evaluation.measures("popularity"):  # independent items rank by popularity
        np.testing.assert_array_equal(
            evaluation.outcomes["popularity"][measure], evaluation.outcomes["independent items"][measure]
        )
    text = str(evaluation)
    assert all(name in text for name in (*evaluation.names, f"{evaluation.estimate('model').value:.4f}"))


def test_baselines_learn_from_training_data_wherever_they_are(truth: DPP, train: Baskets, test: Baskets) -> None:
    kept, named, unknown = dl.evaluate(truth, test), dl.evaluate(BARE, test, train=train), dl.evaluate(BARE, test)
    p = (train.frequencies() * len(train) + 0.5) / (len(train) + 1)
    smoothed = DPP(SpectralDPP(p, np.eye(7)), ITEMS).log_likelihood(test)
    for found in (kept, named):
        assert found.estimate("independent items").value == pytest.approx(smoothed, abs=1e-12)
    ranks = [found.estimate("item-to-item", "percentile_rank").value for found in (kept, named)]  # the same questions
    assert ranks[0] == pytest.approx(ranks[1], rel=1e-12)
    marginals = DPP(SpectralDPP(truth.marginals(), np.eye(7)), ITEMS).log_likelihood(test)
    assert unknown.estimate("independent items").value == pytest.approx(marginals, abs=1e-9)
    assert unknown.baselines == ("independent items", "popularity")
    found = dl.evaluate(BARE, test, train=train.over(BARE.restrict(ITEMS[::-1]).catalogue))
    assert found.estimate("item-to-item", "ndcg@5") == kept.estimate("item-to-item", "ndcg@5")


def test_several_models_are_compared_on_the_same_questions(truth: DPP, test: Baskets) -> None:
    other = DPP(random_kernel(np.random.default_rng(5), 7), ITEMS)
    found = dl.evaluate({"truth": truth, "other": other}, test)
    assert found.models == ("truth", "other")
    alone = dl.evaluate(other, test)
    column = "ndcg@5_given_half"
    np.testing.assert_array_equal(alone.outcomes["model"][column], found.outcomes["other"][column])
    assert found.difference("other", "truth").verdict == "worse"
    pairs = {(each["model"], each["against"]) for each in found.to_dict()["differences"]}
    assert ("other", "truth") in pairs
    assert ("truth", "other") not in pairs


def test_probability_zero_is_said_and_not_hidden(truth: DPP, test: Baskets) -> None:
    K = np.array(truth.K)
    K[6], K[:, 6] = 0, 0
    found = dl.evaluate({"no bears": DPP.from_K(K, ITEMS), "truth": truth}, test)
    with_bears = np.array(["bear" in basket for basket in test])
    np.testing.assert_array_equal(found.impossible("no bears"), with_bears)
    assert found.estimate("no bears").value == -np.inf
    row, others = found.to_dict()["rows"][0], found.outcomes["no bears"]["log_likelihood"][~with_bears]
    assert row["n_impossible"] == with_bears.sum()
    assert row["log_likelihood_of_possible"] == pytest.approx(others.mean())
    assert row["n_unranked"] > 0
    assert found.difference("truth", "no bears").verdict == "better"
    assert found.difference("truth", "no bears").value == np.inf
    assert found.reliability["no bears"]["given_one"].left_out > 0
    assert found.reliability["truth"]["given_one"].left_out == 0


def test_data_without_pairs_are_evaluated_as_far_as_they_go(truth: DPP) -> None:
    for lists in ([["crib"], ["cot"]], [[], []]):
        found = dl.evaluate(truth, lists)
        assert found.n_ranked == 0
        assert math.isnan(found.estimate("model", "percentile_rank").value)


def test_invalid_models_baskets_and_options_are_rejected() -> None:
    cases: list[tuple[Any, Any, dict[str, Any], str | None]] = [
        ({}, [["crib"]], {}, None),
        (BARE.kernel, [[0]], {}, None),
        (BARE, [["crub"]], {}, "'crub'"),
        (BARE, [], {}, None),
        (BARE, [["crib"]], {"k": 0}, r"\bk\b.*0"),
        (BARE, [["crib"]], {"tasks": ("given_two",)}, "given_two"),
        (BARE, [["crib"], ["cot"]], {"max_baskets": 0}, "max_baskets.*0"),
        ({"popularity": BARE}, [["crib"]], {}, "popularity"),
        ({"a": BARE, "b": BARE.restrict(["crib"])}, [["crib"]], {}, None),
    ]
    for models, baskets, options, value in cases:
        with pytest.raises(InputError, match=value):
            dl.evaluate(models, baskets, **options)


def test_estimates_of_unknown_names_and_measures_are_rejected(evaluation: Evaluation) -> None:
    with pytest.raises(InputError, match="'log_likelihood'"):
        evaluation.estimate("popularity", "log_likelihood")
    with pytest.raises(InputError, match="given_two"):
        evaluation.estimate("popularity", "recall@1", "given_two")
    with pytest.raises(InputError, match="'em'"):
        evaluation.difference("model", "em")
    with pytest.raises(InputError):
        evaluation.fold_means("model")
