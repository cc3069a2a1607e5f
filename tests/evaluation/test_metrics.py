"""Ranking measures and confidence intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpplearn.arrays import Floats, Ints
from dpplearn.evaluation.metrics import difference, estimate, measure_ranks, rank, ranking_measures

KS = (1, 3, 50)


def naive(scores: Floats, given: Ints, held: Ints) -> list[float]:
    """Average the measures over all orders of the candidates that agree with the scores."""
    candidates = [i for i in range(len(scores)) if i not in given]
    best_first = sorted(scores[i] for i in candidates)[::-1]
    orders = [each for each in itertools.permutations(candidates) if [scores[i] for i in each] == best_first]
    negatives = [i for i in candidates if i not in held]
    pairs = [(scores[h] > scores[i]) + (scores[h] == scores[i]) / 2 for h in held for i in negatives]
    found = [100 * np.mean(pairs)]
    for k in KS:
        found.append(np.mean([len({*order[:k]} & {*held}) / len(held) for order in orders]))
    for k in KS:
        ideal = sum(1 / math.log2(2 + place) for place in range(min(k, len(held))))
        gains = [sum((item in held) / math.log2(2 + place) for place, item in enumerate(o[:k])) for o in orders]
        found.append(np.mean(gains) / ideal)
    return found


def test_measures_are_means_over_all_orders_of_tied_items() -> None:
    rng, asked = np.random.default_rng(0), []
    for _ in range(40):
        scores, order, n_given = rng.integers(0, 3, 7).astype(float), rng.permutation(7), rng.integers(1, 3)
        asked.append((scores, order[:n_given], order[n_given : n_given + rng.integers(1, 4)]))
    ranks = [rank(*each) for each in asked]
    question = np.repeat(np.arange(len(asked)), [len(held) for _, _, held in asked])
    n_negative = np.array([7 - len(given) - len(held) for _, given, held in asked])
    found = measure_ranks(np.concatenate(ranks, axis=1), question, n_negative, KS)
    assert found.shape[1] == len(ranking_measures(KS))
    np.testing.assert_allclose(found, [naive(*each) for each in asked])


def test_the_interval_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(0).exponential(size=80)
    found = estimate(values, np.ones(80))
    assert found.value == pytest.approx(values.mean())
    assert found.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(80))
    assert (found.low, found.high) == pytest.approx(stats.norm.interval(0.95, found.value, found.standard_error))


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
