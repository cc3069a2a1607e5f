"""Results print their tables and return plain values; segments, and edge cases of models that once gave NaN."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.utils.files import json_safe
from helpers import oracle
from helpers.problems import as_mixture, random_low_rank, random_mixture

ITEMS = ["bib", "cot", "crib", "mug"]
BASKETS = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"], ["mug", "cot"], []] * 20
FEATURES = {"item": ITEMS, "price": [3.0, 90.0, 120.0, 7.0]}


def test_results_are_tables_of_80_columns_and_plain_values() -> None:
    slates = [(ITEMS, [0.4, 0.3, 0.2, 0.1], ["bib"]), (ITEMS, [0.1, 0.3, 0.2, 0.4], ["mug", "cot"])] * 20
    for result in (
        dl.fit(BASKETS, segments=2, rng=0, validation=0.2),
        dl.fit_dpp(BASKETS, rng=0, restarts=2),
        dl.fit_quality(BASKETS, features=FEATURES),
        dl.fit_weights(BASKETS, [dl.fit_dpp(BASKETS, shrinkage=s).model for s in (0.1, 1)]),
        dl.fit_quality(BASKETS).quality,
        dl.posterior(BASKETS, features=FEATURES, draws=100, rng=0),
        dl.fit_slates(slates, {item: item[0] for item in ITEMS}),
    ):
        lines = str(result).splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) > 3
        assert json.loads(json.dumps(json_safe(result.to_dict()), allow_nan=False))
        assert "\n" not in repr(result)


def test_a_certain_eigenvalue_and_an_excluded_item_leave_no_nan() -> None:
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    model = dl.DPP(SpectralDPP(np.array([1.0, 0.6, 0.3, 0.2]), V), ITEMS, nonempty=True)
    part = model.restrict(["cot", "crib", "bib"])  # which may be empty, although the model never is
    assert part.log_prob([]) > -np.inf
    P = np.exp([part.log_prob([part.items[i] for i in Y]) for Y in oracle.subsets(2)])  # without "bib"
    expected = oracle.item_marginals(oracle.normalised(P))
    np.testing.assert_allclose(part.given(exclude=["bib"]).marginals(), expected, atol=1e-12)
    assert np.isfinite(part.with_items(["pram"]).marginals()).all()


def test_inclusion_probabilities_of_extreme_odds_are_those_of_enumeration_and_never_negative() -> None:
    rng = np.random.default_rng(1)
    log_odds = rng.uniform(-18, 18, (2, 5))
    A = rng.standard_normal((5, 5))
    model = dl.Mixture.from_arrays([0.4, 0.6], log_odds, 0.3 * A @ A.T + A - A.T)
    P = np.exp([model.log_prob(Y) for Y in oracle.subsets(5)])
    assert P.sum() == pytest.approx(1, abs=1e-12)
    for A in oracle.subsets(5):
        assert model.inclusion_prob(A) == pytest.approx(oracle.marginal(P, A), rel=1e-9, abs=1e-300)


def test_marginals_of_a_low_rank_model_are_the_same_after_save_and_load(tmp_path: Path) -> None:
    model = dl.fit(BASKETS, segments=2, rank=1, attraction=2, rng=0, validation=0.0).model
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(dl.load(tmp_path / "model.safetensors").marginals(), model.marginals())


SEGMENTS = {"dense": random_mixture(3, 7), "low-rank": random_low_rank(3, 7)}
SEGMENTED = {
    **{kind: as_mixture(segments, nonempty=True) for kind, segments in SEGMENTS.items()},
    "combined": dl.Mixture.of([as_mixture(random_mixture(2, 7), nonempty=True), dl.DPP.from_K(np.eye(7) / 3)]),
}


@pytest.mark.parametrize("kind", SEGMENTED)
def test_segments_of_a_restricted_mixture_are_those_of_its_distribution(kind: str) -> None:
    """Sets without the chosen items are empty now, so P(∅) is positive and differs between segments."""
    whole = SEGMENTED[kind]
    part = whole.restrict([4, 1])
    weights = np.array([each.weight for each in part.segments()])
    assert part.distribution.p_empty > 0
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ part.segment_marginals, part.marginals(), rtol=1e-10)
    np.testing.assert_allclose(part.marginals(), whole.marginals()[[4, 1]], rtol=1e-10)
    np.testing.assert_allclose(part.segment_of([]), weights)
    if kind in SEGMENTS:
        segments = SEGMENTS[kind]
        p_empty = [oracle.probabilities_from_L(segments.components.L(c))[0] for c in range(3)]
        expected = segments.weights * (1 - np.array(p_empty))
        np.testing.assert_allclose(weights, np.sort(expected / expected.sum())[::-1], rtol=1e-10)
    else:
        np.testing.assert_allclose(weights, 0.5)
    np.testing.assert_allclose(part.segment_marginals, whole.segment_marginals[:, [4, 1]], rtol=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("nonempty", [False, True])
def test_items_of_probability_zero_have_no_place_in_segments(nonempty: bool) -> None:
    never, likes = -np.inf, [[2.0, -2.0], [-2.0, 2.0]]
    log_odds = [[*row, never, odd] for row, odd in zip(likes, (never, 0.0), strict=True)]
    model = dl.Mixture.from_arrays([0.5, 0.5], log_odds, np.zeros((4, 4)), items=list("abcd"), nonempty=nonempty)
    found = model.segments()
    assert [[item for item, _ in each.likes] for each in found] in ([["a"], ["b", "d"]], [["b", "d"], ["a"]])
    assert np.isfinite([ratio for each in found for _, ratio in each.likes]).all()
    assert np.isfinite([(each.weight, each.expected_size) for each in found]).all()
    assert np.isfinite(model.lift).all()


def test_of_an_item_that_never_occurred_the_data_leave_every_lift_possible() -> None:
    baskets = dl.Baskets.from_lists([["a", "b"], ["b"], ["c"], ["c", "a"]] * 9, items=["a", "b", "c", "never"])
    model = dl.fit(baskets, rng=0).model
    assert isinstance(model, dl.Mixture)
    related = model.substitutes("never", level=None) + model.complements("never", level=None)
    assert related
    assert {(each.observed, each.expected, each.low, each.high) for each in related} == {(0, 0, 0, np.inf)}
