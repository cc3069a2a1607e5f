"""Pairs of items: counts, expected counts under independence, and the test of independence."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from dpplearn import Baskets, InputError
from dpplearn.arrays import Bools
from dpplearn.data.pairs import Cooccurrence, pair_counts, pair_tests, significant
from dpplearn.distributions.independent import before_truncation
from helpers import oracle, strategies


def by_hand(baskets: Baskets) -> dict[tuple[int, ...], float]:
    found: Counter[tuple[int, ...]] = Counter()
    for row, weight in enumerate(baskets.weights):
        found.update(dict.fromkeys(combinations(baskets.positions(row).tolist(), 2), weight))
    return {pair: weight for pair, weight in sorted(found.items()) if weight > 0}


@settings(max_examples=40)
@given(strategies.baskets())
def test_pairs_are_those_of_plain_counting_whatever_is_looked_at_together(baskets: Baskets) -> None:
    expected = by_hand(baskets)
    for batch_size in (1, 5, 1000):
        found = pair_counts(baskets, 10**9, batch_size)
        assert list(map(tuple, found.pairs.tolist())) == list(expected)
        np.testing.assert_allclose(found.weights, list(expected.values()), rtol=1e-12)
        assert found.least == 0


def test_where_there_are_too_many_the_rarest_go_and_it_says_from_where_on() -> None:
    baskets = Baskets.from_lists([[0, 1, 2]] * 3 + [[0, 3], [1, 3], [2, 3]] + [[0, 3]], n_items=5)
    counts = by_hand(baskets)
    for most, least in ((6, 0), (5, 2), (4, 2), (3, 3), (2, 4)):
        found = pair_counts(baskets, most)
        assert found.least == least
        assert list(map(tuple, found.pairs.tolist())) == [pair for pair, count in counts.items() if count >= least]


def independent(p: Any, n: int, seed: int, *, nonempty: bool) -> Bools:
    """n rows of independent items with probabilities p; with `nonempty`, given that none is empty."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, len(p))) < p
    while nonempty and (empty := ~X.any(axis=1)).any():
        X[empty] = rng.random((empty.sum(), len(p))) < p
    return np.asarray(X)


@pytest.mark.parametrize("nonempty", [False, True])
def test_expected_counts_are_those_of_independent_items_by_enumeration(nonempty: bool) -> None:
    X = independent([0.4, 0.3, 0.2, 0.1, 0.05, 0.02], 400, 0, nonempty=False)
    X[X[:, 0], 1] = False  # two that never co-occur, and two pairs that often do
    X[:, 3] |= X[:, 2] & (np.arange(400) % 3 > 0)
    X[:, 5] |= X[:, 4]
    baskets = Baskets.from_matrix(X[X.any(axis=1)] if nonempty else np.vstack([X, np.zeros((1, 6), bool)]))
    found, m = pair_tests(baskets), baskets.frequencies()
    assert found.nonempty == nonempty
    p = before_truncation(m) if nonempty else m
    P = np.array([np.prod([p[i] if i in Y else 1 - p[i] for i in range(6)]) for Y in oracle.subsets(6)])
    if nonempty:
        P[0] = 0
        P /= P.sum()
    np.testing.assert_allclose(oracle.item_marginals(P), m, atol=1e-10)
    expected = [len(baskets) * oracle.marginal(P, pair) for pair in found.pairs.tolist()]
    np.testing.assert_allclose(found.counts.expected, expected, rtol=1e-9)


def test_p_values_and_intervals_are_those_of_poisson_counts() -> None:
    observed, expected = np.array([0.0, 3.0, 25.0, np.nan]), np.array([1.0, 10.0, 10.0, np.nan])
    counts = Cooccurrence(observed, expected)
    tails = [stats.poisson.cdf([0, 3, 25], [1, 10, 10]), stats.poisson.sf([-1, 2, 24], [1, 10, 10])]
    np.testing.assert_allclose(counts.p()[:3], np.minimum(2 * np.minimum(*tails), 1))
    low, high = counts.interval()
    np.testing.assert_allclose(stats.poisson.sf([2, 24], 10 * low[1:3]), 0.025)
    np.testing.assert_allclose(stats.poisson.cdf([0, 3, 25], high[:3] * expected[:3]), 0.025)
    assert low[0] == 0
    assert np.isnan([counts.p()[3], low[3], high[3]]).all()


def test_false_discoveries_are_controlled_over_all_tests_and_unknown_pairs_pass() -> None:
    p = np.random.default_rng(0).random(40) ** 3
    np.testing.assert_array_equal(significant(p, 0.1), stats.false_discovery_control(p) <= 0.1)
    p = np.array([0.001, np.nan, 0.03])
    assert significant(p).tolist() == [True, True, True]
    assert significant(p, n_tests=10).tolist() == [True, True, False]
    assert significant(p, n_tests=100).tolist() == [False, True, False]
    for level in (0, 1, True):
        with pytest.raises(InputError, match="level"):
            significant(p, level)


def test_independent_items_are_not_significant_whether_or_not_baskets_can_be_empty() -> None:
    """A data set has a false discovery with probability at most 5 %; more than 4 of 20 have one with probability 0.003.

    The negative control: if the test did not know that no basket can be empty, many pairs would seem to repel.
    """
    for nonempty in (False, True):
        drawn = [independent(np.linspace(0.02, 0.2, 12), 2000, seed, nonempty=nonempty) for seed in range(20)]
        found = [pair_tests(Baskets.from_matrix(X)) for X in drawn]
        assert sum(each.significant.any() for each in found) <= 4
        assert 0.005 < np.mean([(each.counts.p() <= 0.05).mean() for each in found]) < 0.06
    X = independent(np.full(12, 0.05), 2000, 0, nonempty=True)
    not_knowing = pair_tests(Baskets.from_matrix(np.vstack([X, np.zeros((1, 12), bool)])))
    assert not_knowing.fewer.sum() > 30


def test_integer_weights_are_counts_and_others_give_an_effective_number_of_baskets() -> None:
    sets, weights = [[0, 1], [0], [1], [2], []], [3, 40, 30, 20, 60]
    weighted = pair_tests(Baskets.from_lists(sets, weights=weights))
    repeated = pair_tests(Baskets.from_lists([each for each, w in zip(sets, weights, strict=True) for _ in range(w)]))
    np.testing.assert_array_equal(weighted.counts.observed, repeated.counts.observed)
    np.testing.assert_allclose(weighted.counts.p(), repeated.counts.p())
    fractions = np.random.default_rng(0).uniform(0.5, 3, 100)
    found = pair_tests(Baskets.from_lists(sets * 20, weights=fractions))
    same = Baskets.from_lists([*sets * 20, [0, 1]], weights=[*fractions * 7.7, 0.0])
    np.testing.assert_allclose(pair_tests(same).counts.p(), found.counts.p())


def test_where_pairs_cannot_vary_none_is_significant() -> None:
    for sets in ([[0], [0], []], [[], []], [[0], [1], [2], [0]], [[0, 1]], [[0, 1, 2], [0, 1], [0]]):
        found = pair_tests(Baskets.from_lists(sets, n_items=3))
        assert not found.significant.any()
        assert np.isfinite(found.counts.p()).all()
    with pytest.raises(InputError):
        pair_tests(Baskets.from_lists([[0]], weights=[0]))


def test_pairs_left_out_of_the_counts_may_have_the_largest_possible_count() -> None:
    few = Baskets.from_lists([[0, 1]] * 9 + [[0, 2]] * 2 + [[1, 2]] + [[0], [1], [2]] * 20)
    assert pair_tests(few).counts.observed.tolist() == [9, 2, 1]
    cut = pair_tests(few, max_pairs=1)
    assert (cut.counts.observed.tolist(), cut.counts.missed) == ([9, 0, 0], 2)
    np.testing.assert_allclose(cut.counts.p()[1], min(2 * stats.poisson.cdf(2, cut.counts.expected[1]), 1))


def test_pairs_that_co_occurred_or_were_expected_in_three_baskets_are_tested() -> None:
    X = independent(np.geomspace(0.004, 0.5, 30), 600, 1, nonempty=False)
    X[X[:, 29], 28] = False
    X[:, 10] = X[:, 9]
    found, counts = pair_tests(Baskets.from_matrix(X)), X.sum(axis=0)
    expected = {
        (i, j) for i, j in combinations(range(30), 2) if (X[:, i] & X[:, j]).any() or counts[i] * counts[j] >= 3 * 600
    }
    assert set(map(tuple, found.pairs.tolist())) == expected
    n = np.count_nonzero(counts)
    assert found.n_possible == n * (n - 1) // 2 > len(found.pairs)
    assert [28, 29] in found.pairs[found.fewer].tolist()
    assert [9, 10] in found.pairs[found.more].tolist()
