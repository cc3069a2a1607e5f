"""Segments and relations of mixtures: restricted and combined mixtures, items of probability zero."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from helpers import oracle
from helpers.problems import as_mixture, random_low_rank, random_mixture

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
