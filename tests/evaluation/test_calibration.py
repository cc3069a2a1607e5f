"""Reliability tables: right by plain counting, and telling a calibrated model from one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Reliability
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.baselines import independent_items, of_model
from dpplearn.evaluation.calibration import PairSums, pair_sums, size_sums, wilson
from dpplearn.learners.kernels import distribution_of
from helpers import oracle
from helpers.problems import random_kernel, random_mixture


def drawn(kernel: SpectralDPP, n: int, seed: int) -> Baskets:
    return Baskets.from_lists(DPP(kernel).sample(n, rng=seed), n_items=kernel.n_items)


def given(kernel: SpectralDPP) -> Floats:
    found = of_model(distribution_of(kernel)).pair_probabilities
    assert found is not None
    return found(np.arange(kernel.n_items))


def hits(table: Reliability) -> list[bool]:
    """Whether the share that came true may be what was predicted."""
    return [row.low <= row.predicted <= row.high for row in table.rows]


def test_rows_are_those_of_plain_counting() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.choice(6, rng.integers(0, 5), replace=False).tolist() for _ in range(40)]
    weights = rng.integers(0, 4, 40).astype(float)
    P = rng.random((6, 6)) ** 4
    P[3] = np.nan
    table = pair_sums(P, Baskets.from_lists(lists, n_items=6, weights=weights)).reliability()
    pairs = [
        (P[a, i], i in basket, w)
        for basket, w in zip(lists, weights, strict=True)
        for a in basket
        for i in range(6)
        if i != a and a != 3
    ]
    gaps = []
    for row in table.rows:
        p, true, w = np.array([each for each in pairs if row.start <= each[0] < row.stop]).T
        assert row.weight == pytest.approx(w.sum())
        assert row.predicted == pytest.approx(w @ p / w.sum())
        assert row.observed == pytest.approx(w @ true / w.sum())
        gaps.append(w.sum() * abs(row.predicted - row.observed))
    total = sum(w for _, _, w in pairs)
    assert sum(row.weight for row in table.rows) == pytest.approx(total)
    assert table.error == pytest.approx(sum(gaps) / total)
    assert table.left_out == pytest.approx(5 * sum(w for basket, w in zip(lists, weights, strict=True) if 3 in basket))


def test_the_model_that_made_the_data_is_calibrated_and_its_marginals_alone_are_not() -> None:
    kernel = random_kernel(np.random.default_rng(1), 8)
    baskets = drawn(kernel, 6000, 2)
    right = pair_sums(given(kernel), baskets).reliability()
    assert len(right.rows) >= 4
    assert all(hits(right))
    marginals = independent_items(kernel.K.diagonal()).pair_probabilities
    assert marginals is not None
    wrong = pair_sums(marginals(np.arange(8)), baskets).reliability()
    assert not any(hits(wrong))
    assert wrong.error > 3 * right.error


@pytest.mark.slow
def test_intervals_allow_for_predictions_of_one_basket_coming_true_together() -> None:
    kernel = random_kernel(np.random.default_rng(5), 6)
    ours, as_if_independent = [], []
    draws = drawn(kernel, 100 * 250, 0)
    for part in range(100):
        table = pair_sums(given(kernel), draws[250 * part : 250 * (part + 1)]).reliability()
        ours += hits(table)
        for row in table.rows:
            low, high = wilson(np.array([row.observed]), np.array([row.weight]))
            as_if_independent.append(low[0] <= row.predicted <= high[0])
    assert 0.92 <= np.mean(ours) <= 0.98
    assert np.mean(as_if_independent) < 0.91


def test_tables_of_baskets_in_which_nothing_comes_true_or_without_items() -> None:
    table = pair_sums(np.full((2, 2), 0.3), Baskets.from_lists([[0], [1], [0]], n_items=2)).reliability()
    (row,) = table.rows
    assert (row.observed, row.low) == (0, 0)
    assert row.high == pytest.approx(1.959964**2 / (3 + 1.959964**2))
    empty = pair_sums(np.full((3, 3), 0.1), Baskets.from_lists([[], []], n_items=3)).reliability()
    assert empty.rows == ()
    assert np.isnan(empty.error)


def test_a_weight_of_two_is_two_baskets_parts_add_and_scaled_weights_leave_the_intervals_alone() -> None:
    kernel = random_kernel(np.random.default_rng(6))
    baskets = drawn(kernel, 50, 7)
    tables = [pair_sums(given(kernel), each) for each in (Baskets.together([baskets, baskets]), baskets.reweighted(2))]
    parts: PairSums = pair_sums(given(kernel), baskets[:20]) + pair_sums(given(kernel), baskets[20:])
    for left, right in ((tables[0], tables[1]), (parts + parts, tables[0])):
        np.testing.assert_allclose(left.sums, right.sums)
        assert left.reliability().error == pytest.approx(right.reliability().error)
    unknown = pair_sums(np.full((2, 2), np.nan), Baskets.from_lists([[0], [0, 1]], n_items=2))
    assert (unknown + unknown).reliability().left_out == 6
    # Fractions are no counts: the number of baskets must come from the baskets.
    plain, scaled = (pair_sums(given(kernel), each).reliability() for each in (baskets, baskets.reweighted(0.01)))
    for left, right in zip(plain.rows, scaled.rows, strict=True):
        assert (left.low, left.high) == (pytest.approx(right.low), pytest.approx(right.high))


def test_the_distance_of_sizes_is_the_total_variation_and_parts_add() -> None:
    baskets = Baskets.from_lists([[0], [1, 2], [0, 3], [0, 1, 2, 3], [2]], n_items=4, weights=[1, 2, 1, 3, 0])
    every = Baskets.from_lists(oracle.subsets(4), n_items=4)
    for nonempty in (False, True):
        law = distribution_of(random_mixture(2, 4), nonempty=nonempty)
        P = np.exp(law.log_prob(every))
        predicted = [P[every.sizes == k].sum() for k in range(5)]
        expected = sum(abs(p - share) for p, share in zip(predicted, [0, 1 / 7, 3 / 7, 0, 3 / 7], strict=True)) / 2
        for found in (size_sums(law, baskets), size_sums(law, baskets[:2]) + size_sums(law, baskets[2:])):
            assert found.distance() == pytest.approx(expected, abs=1e-12)


def test_of_some_items_given_the_sums_are_those_of_their_rows_alone() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.choice(6, rng.integers(0, 5), replace=False).tolist() for _ in range(40)]
    baskets, P = Baskets.from_lists(lists, n_items=6, weights=rng.random(40)), rng.random((6, 6)) ** 4
    some = np.array([1, 4])
    unknown = np.where(np.isin(np.arange(6), some)[:, None], P, np.nan)
    whole, part = pair_sums(unknown, baskets), pair_sums(P[some], baskets, some)
    np.testing.assert_allclose(part.sums, whole.sums)
    assert part.left_out == 0 < whole.left_out
