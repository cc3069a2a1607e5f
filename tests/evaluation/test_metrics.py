"""Measures against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpplearn.evaluation.intervals import difference, estimate
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


def test_about_95_percent_of_the_intervals_hold_the_true_mean() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(1000):
        values = rng.exponential(size=80)
        found = estimate(values, np.ones(80))
        assert found.value == pytest.approx(values.mean())
        assert found.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(80))
        hits += found.low <= 1 <= found.high
    assert 0.91 <= hits / 1000 <= 0.97  # skewness costs a normal interval about two points at n = 80


def test_a_count_of_two_is_two_baskets_and_another_weight_is_an_importance() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=40), rng.integers(0, 6, 40).astype(float)
    repeated = np.repeat(values, weights.astype(int))
    weighted, expected = estimate(values, weights), estimate(repeated, np.ones(len(repeated)))
    for name in ("value", "low", "high", "standard_error"):
        assert getattr(weighted, name) == pytest.approx(getattr(expected, name))
    importances = estimate(values, weights / 7)  # the same mean from fewer independent baskets
    assert importances.value == pytest.approx(weighted.value)
    assert importances.standard_error > 1.2 * weighted.standard_error


def test_missing_values_and_weights_of_zero_are_not_counted_and_one_basket_has_no_interval() -> None:
    values = np.random.default_rng(3).normal(size=50) + 10
    gaps = np.where(np.arange(50) % 5 == 0, values, np.nan)
    assert estimate(gaps, np.ones(50)).low == pytest.approx(estimate(values[::5], np.ones(10)).low)
    impossible = np.append(values, -np.inf)
    assert estimate(impossible, np.append(np.ones(50), 0)).value == pytest.approx(values.mean())
    assert math.isnan(estimate(np.full(4, np.nan), np.ones(4)).value)
    found = estimate(np.array([3.0, np.nan]), np.ones(2))
    assert (found.value, math.isnan(found.low), math.isnan(found.high)) == (3, True, True)
    assert difference(np.array([3.0]), np.array([1.0]), np.ones(1)).verdict == "undecided"


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(4)
    hard = rng.normal(scale=10, size=200)
    better, worse = hard + rng.normal(scale=0.1, size=200) + 0.1, hard
    found = difference(better, worse, np.ones(200))
    assert found.verdict == "better"
    assert difference(worse, better, np.ones(200)).verdict == "worse"
    assert found.standard_error == pytest.approx((better - worse).std(ddof=1) / math.sqrt(200))
    assert found.standard_error < estimate(better, np.ones(200)).standard_error / 10
    same = difference(hard, hard, np.ones(200))
    assert (same.value, same.verdict) == (0, "undecided")


def test_the_test_of_a_difference_errs_in_about_5_percent_of_samples() -> None:
    rng, called = np.random.default_rng(5), 0
    for _ in range(1000):
        first, second = rng.normal(size=(2, 60))
        called += difference(first, second, np.ones(60)).verdict != "undecided"
    assert 0.03 <= called / 1000 <= 0.08


def test_a_basket_that_one_model_rules_out_decides_and_one_that_both_rule_out_does_not() -> None:
    possible, impossible = np.array([-1.0, -2.0, -3.0]), np.array([-1.0, -np.inf, -3.0])
    mean = estimate(impossible, np.ones(3))
    assert (mean.value, mean.low, mean.high) == (-math.inf, -math.inf, -math.inf)
    assert difference(possible, impossible, np.ones(3)).verdict == "better"
    found = difference(impossible, possible, np.ones(3))
    assert (found.value, found.verdict) == (-math.inf, "worse")
    for other in (impossible, np.array([-np.inf, -1.0, -1.0])):
        both = difference(impossible, other, np.ones(3))
        assert math.isnan(both.value)
        assert both.verdict == "undecided"
