"""Measures against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpplearn.evaluation.metrics import Ranks, ranks, relative_gain, share_beaten, weighted_mean


def possible_ranks(scores: list[float], held: int) -> list[int]:
    """Of the held-out item, one for each way to order those that tie with it."""
    above = sum(score > scores[held] for score in scores)
    tied = sum(score == scores[held] for score in scores) - 1
    return list(range(above + 1, above + tied + 2))


def questions(seed: int, n: int = 60) -> list[tuple[list[float], int]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(0, 4, size).astype(float).tolist(), int(rng.integers(size)))
        for size in rng.integers(2, 12, n).tolist()
    ]


def asked(scores: list[float], held: int) -> Ranks:
    """With items in between that are no candidates, and score best."""
    everything = np.full(2 * len(scores), 99.0)
    everything[::2] = scores
    return ranks(everything, np.arange(2 * len(scores)) % 2 == 0, np.array([2 * held]))


def test_ranks_are_expectations_over_the_order_of_ties() -> None:
    for scores, held in questions(0):
        found, places = asked(scores, held), possible_ranks(scores, held)
        for k in (1, 3, 50):
            assert found.recall(k) == pytest.approx([np.mean([place <= k for place in places])])
            ndcg = np.mean([1 / math.log2(1 + place) if place <= k else 0 for place in places])
            assert found.ndcg(k) == pytest.approx([ndcg])
        others = [score for item, score in enumerate(scores) if item != held]
        share = np.mean([(score < scores[held]) + (score == scores[held]) / 2 for score in others])
        assert found.percentile() == pytest.approx([100 * share])


def test_best_worst_and_all_tied() -> None:
    everyone, held = np.ones(5, bool), np.array([1, 3])
    np.testing.assert_array_equal(ranks(np.arange(5.0), everyone, np.array([4, 0])).percentile(), [100, 0])
    np.testing.assert_array_equal(ranks(np.full(5, np.nan), everyone, held).percentile(), [50, 50])
    np.testing.assert_allclose(ranks(np.zeros(5), everyone, held).recall(2), [0.4, 0.4])
    assert np.isnan(ranks(np.zeros(1), np.ones(1, bool), np.array([0])).percentile()).all()


def test_share_beaten_counts_ties_half_and_minus_infinity_as_a_value() -> None:
    true = np.array([1.0, -np.inf, 2.0])
    others = np.array([[0, 1, 2, -np.inf], [-np.inf, 0, 1, 2], [0, 1, 1.5, -3]])
    expected = [[(other < t) + (other == t) / 2 for other in row] for t, row in zip(true, others, strict=True)]
    np.testing.assert_allclose(share_beaten(true, others), np.mean(expected, axis=1))


def test_means_skip_what_is_missing_and_keep_minus_infinity_and_gains_are_in_percent() -> None:
    values = np.array([1.0, np.nan, 4.0, -np.inf])
    assert weighted_mean(values, np.array([2.0, 5, 1, 0])) == pytest.approx(2)
    assert weighted_mean(values, np.ones(4)) == -np.inf
    assert math.isnan(weighted_mean(values, np.array([0.0, 1, 0, 0])))
    assert relative_gain(-9, -10) == pytest.approx(10)
    assert math.isnan(relative_gain(-9, -np.inf))
