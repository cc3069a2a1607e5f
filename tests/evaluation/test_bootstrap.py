"""Bootstrap intervals: how often they hold the truth, and what they make of weights, gaps and −inf."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpplearn.arrays import Floats
from dpplearn.evaluation import bootstrap
from dpplearn.evaluation.bootstrap import Difference, difference, estimate, resampled_means


def means(*columns: Floats, weights: Floats | None = None, resamples: int = 400, seed: int = 0) -> Floats:
    values = np.column_stack(columns)
    weights = np.ones(len(values)) if weights is None else weights
    return resampled_means(values, weights, resamples, np.random.default_rng(seed))


def compared(first: Floats, second: Floats, seed: int = 0) -> Difference:
    found = means(first, second, seed=seed).T
    return difference(float(first.mean()), found[0], float(second.mean()), found[1])


def test_about_95_percent_of_the_intervals_hold_the_true_mean() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(250):
        values = rng.exponential(size=80)
        found = estimate(values, np.ones(80), means(values, seed=trial)[:, 0])
        assert found.value == pytest.approx(values.mean())
        hits += found.low <= 1 <= found.high
    assert 0.90 <= hits / 250 <= 0.97


def test_a_weight_of_two_is_drawn_as_two_baskets() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=40), rng.integers(0, 6, 40).astype(float)
    weighted = means(values, weights=weights, resamples=4000)
    repeated = means(np.repeat(values, weights.astype(int)), resamples=4000, seed=5)
    assert weighted.mean() == pytest.approx(repeated.mean(), abs=0.01)
    assert weighted.std() == pytest.approx(repeated.std(), rel=0.06)
    importances = means(values, weights=weights / 7, resamples=4000)  # the same means, of fewer independent baskets
    assert importances.mean() == pytest.approx(repeated.mean(), abs=0.02)
    assert importances.std() > 1.3 * repeated.std()


def test_groups_of_baskets_give_the_intervals_of_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).exponential(size=3001)
    single = means(values, resamples=3000)
    monkeypatch.setattr(bootstrap, "MOST_UNITS", 200)
    grouped = means(values, resamples=3000)
    assert grouped.mean() == pytest.approx(values.mean(), abs=0.005)
    assert grouped.std() == pytest.approx(single.std(), rel=0.15)  # itself an estimate from 200 groups


def test_what_is_missing_is_not_counted() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=50) + 10
    gaps = np.where(np.arange(50) % 5 == 0, values, np.nan)
    found = means(gaps, gaps, resamples=3000)
    assert found.mean() == pytest.approx(values[::5].mean(), abs=0.02)
    assert found[:, 0].std() == pytest.approx(values[::5].std() / math.sqrt(10), rel=0.15)
    assert np.isnan(means(np.full(4, np.nan))).all()


def test_resamples_without_a_value_are_left_out_of_the_interval() -> None:
    values = np.array([3.0, np.nan, np.nan])
    resampled = means(values)[:, 0]
    assert np.isnan(resampled).any()
    assert estimate(values, np.ones(3), resampled) == bootstrap.Estimate(3, 3, 3)
    assert compared(values, values).better == 0.5


def test_a_mean_over_minus_infinity_is_minus_infinity() -> None:
    values = np.append(np.ones(99), -np.inf)
    resampled = means(values, resamples=2000)[:, 0]
    assert np.isneginf(resampled).mean() == pytest.approx(1 - 0.99**100, abs=0.04)  # those that drew it
    assert set(resampled[~np.isneginf(resampled)]) == {1.0}
    assert estimate(values, np.ones(100), resampled) == bootstrap.Estimate(-np.inf, -np.inf, 1)
    silent = means(values, weights=np.append(np.ones(99), 0))
    assert set(silent[:, 0]) == {1.0}


def test_the_difference_from_minus_infinity_is_infinite_and_decided() -> None:
    finite, infinite = np.zeros(50), np.append(np.zeros(49), -np.inf)
    found = compared(infinite, finite)
    assert (found.value, found.verdict) == (-np.inf, "worse")
    assert compared(finite, infinite).verdict == "better"
    both = difference(-np.inf, np.full(9, -np.inf), -np.inf, np.full(9, -np.inf))
    assert math.isnan(both.value)
    assert math.isnan(both.low)
    assert (both.better, both.verdict) == (0.5, "undecided")


def test_a_slightly_better_model_is_told_from_an_equal_one_by_pairing() -> None:
    rng = np.random.default_rng(4)
    base = rng.normal(size=500) * 3
    better, equal = base + 0.1 + rng.normal(size=500) * 0.3, base + rng.normal(size=500) * 0.3
    equal -= (equal - base).mean()
    found = compared(better, base)
    assert found.verdict == "better"
    assert found.better == 1
    assert found.value == pytest.approx((better - base).mean())
    assert found.low < found.value < found.high
    assert compared(base, better).verdict == "worse"
    assert compared(equal, base).verdict == "undecided"
    assert compared(rng.permutation(better), base).verdict == "undecided"  # not paired


def test_equal_models_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(5)
    verdicts = [compared(*rng.normal(size=(2, 100)), seed=trial).verdict for trial in range(200)]
    assert 0.02 <= np.mean([verdict != "undecided" for verdict in verdicts]) <= 0.10
