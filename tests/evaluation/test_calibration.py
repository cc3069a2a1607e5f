"""Reliability tables: equal to plain counting, and able to tell a calibrated model from one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Reliability
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.baselines import independent_items, model_predictor
from dpplearn.evaluation.calibration import Calibration, wilson
from dpplearn.evaluation.protocol import GIVEN_HALF, GIVEN_ONE, Predictor, answer, ask, n_calibrated, size_distance
from dpplearn.learners.kernels import distribution_of
from helpers import oracle
from helpers.problems import random_kernel, random_mixture


def drawn(kernel: SpectralDPP, n: int, seed: int) -> Baskets:
    return Baskets.from_lists(DPP(kernel).sample(n, rng=seed), n_items=kernel.n_items)


def sums_of(predictor: Predictor, baskets: Baskets, task: str = GIVEN_ONE) -> Calibration:
    return answer(predictor, ask(baskets, np.random.default_rng(0), (task,)), ()).calibration[task]


def predictor_of(kernel: SpectralDPP) -> Predictor:
    return model_predictor(distribution_of(kernel))


def contain(table: Reliability) -> list[bool]:
    """Return which intervals contain the prediction."""
    return [row.low <= row.predicted <= row.high for row in table.rows]


@pytest.mark.parametrize("task", [GIVEN_ONE, GIVEN_HALF])
def test_rows_are_those_of_plain_counting(task: str) -> None:
    rng = np.random.default_rng(0)
    lists = [rng.choice(6, rng.integers(0, 5), replace=False).tolist() for _ in range(40)]
    weights = rng.integers(0, 4, 40).astype(float)
    baskets, predictor = Baskets.from_lists(lists, n_items=6, weights=weights), predictor_of(random_kernel(rng, 6))
    table = sums_of(predictor, baskets, task).reliability()
    questions = ask(baskets, np.random.default_rng(0), (task,))
    assert predictor.probabilities is not None
    answers = zip(predictor.probabilities(questions.partial), questions.partial, questions.asked, strict=True)
    pairs = [
        (p[i], i in lists[each.row], weights[each.row] * (len(lists[each.row]) if task == GIVEN_ONE else 1))
        for p, given, asked in answers
        for each in asked
        for i in range(6)
        if i not in given
    ]
    every, true, w = np.array(pairs).T
    gaps = []
    for row in table.rows:
        here = (every >= row.start) & (every < row.stop)
        found = (row.weight, row.predicted, row.observed)
        assert found == pytest.approx((w[here].sum(), *(np.average(x[here], weights=w[here]) for x in (every, true))))
        gaps.append(row.weight * abs(row.predicted - row.observed))
    assert table.error == pytest.approx(sum(gaps) / w.sum())
    assert table.observed_items / table.predicted_items == pytest.approx(w @ true / (w @ every))


def test_the_true_model_is_calibrated_given_one_item_and_independent_items_are_not() -> None:
    kernel = random_kernel(np.random.default_rng(1), 8)
    baskets = drawn(kernel, 6000, 2)
    right = sums_of(predictor_of(kernel), baskets).reliability()
    assert len(right.rows) >= 4
    assert all(contain(right))
    assert right.predicted_items == pytest.approx(right.observed_items, rel=0.02)
    wrong = sums_of(independent_items(kernel.K.diagonal()), baskets).reliability()
    assert not any(contain(wrong))
    assert wrong.error > 3 * right.error


@pytest.mark.slow
def test_intervals_allow_for_the_correlation_within_baskets() -> None:
    kernel = random_kernel(np.random.default_rng(5), 6)
    ours, draws = [], drawn(kernel, 100 * 250, 0)
    for part in range(100):
        ours += contain(sums_of(predictor_of(kernel), draws[250 * part : 250 * (part + 1)]).reliability())
    assert 0.92 <= np.mean(ours) <= 0.98


def test_without_any_success_or_any_item_the_table_is_still_defined() -> None:
    baskets = Baskets.from_lists([[0], [1], [0]], n_items=2)
    (row,) = sums_of(independent_items(np.full(2, 0.3)), baskets).reliability().rows
    assert (row.observed, row.low) == (0, 0)
    assert row.high == pytest.approx(1.959964**2 / (3 + 1.959964**2))
    assert wilson(np.zeros(1), np.array([3.0]))[1] == pytest.approx(row.high)
    empty = sums_of(independent_items(np.full(3, 0.1)), Baskets.from_lists([[], []], n_items=3)).reliability()
    assert empty.rows == ()
    assert np.isnan(empty.error)


def test_folds_are_joined_and_scaled_weights_do_not_change_the_intervals() -> None:
    kernel = random_kernel(np.random.default_rng(6))
    baskets = drawn(kernel, 50, 7)
    predictor, whole = predictor_of(kernel), sums_of(predictor_of(kernel), baskets)
    doubled = sums_of(predictor, baskets.reweighted(2))
    both = Calibration.joined([whole, whole]).reliability()
    assert both.error == pytest.approx(doubled.reliability().error)
    assert [row.low for row in both.rows] != [row.low for row in whole.reliability().rows]
    scaled = sums_of(predictor, baskets.reweighted(0.01)).reliability()  # fractions are not counts
    for left, right in zip(whole.reliability().rows, scaled.rows, strict=True):
        assert (left.low, left.high) == (pytest.approx(right.low), pytest.approx(right.high))


def test_the_distance_of_sizes_is_the_total_variation() -> None:
    baskets = Baskets.from_lists([[0], [1, 2], [0, 3], [0, 1, 2, 3], [2]], n_items=4, weights=[1, 2, 1, 3, 0])
    every = Baskets.from_lists(oracle.subsets(4), n_items=4)
    for nonempty in (False, True):
        distribution = distribution_of(random_mixture(2, 4), nonempty=nonempty)
        P = np.exp(distribution.log_prob(every))
        predicted = [P[every.sizes == k].sum() for k in range(5)]
        expected = sum(abs(p - share) for p, share in zip(predicted, [0, 1 / 7, 3 / 7, 0, 3 / 7], strict=True)) / 2
        sizes = answer(model_predictor(distribution), ask(baskets, np.random.default_rng(0), ()), ()).sizes
        assert sizes is not None
        assert size_distance(sizes) == pytest.approx(expected, abs=1e-12)


def test_large_catalogues_are_calibrated_on_a_part_of_the_baskets() -> None:
    assert [n_calibrated(10_000, n_items) for n_items in (100, 1000, 100_000)] == [10_000, 2000, 500]
    baskets = Baskets.from_lists([[0, 1]] * 600, n_items=6000)
    questions = ask(baskets, np.random.default_rng(0), (GIVEN_HALF,))
    assert questions.calibrated.sum() == 500
    found = answer(independent_items(np.full(6000, 0.01)), questions, ())
    assert found.calibration[GIVEN_HALF].weights.sum() == 500
    assert np.isfinite(found.columns["percentile_rank_given_half"]).all()
