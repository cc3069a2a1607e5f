"""Pairs against chance: exact tails and laws from scipy and by enumeration, error rates by counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpplearn import Baskets, InputError
from dpplearn.analysis import cooccurrence
from dpplearn.analysis.cooccurrence import PairTests, pair_tests
from dpplearn.arrays import Bools
from dpplearn.distributions.independent import before_truncation
from helpers import oracle


def independent(p: Any, n: int, seed: int, *, nonempty: bool) -> Bools:
    """n rows of independent items with chances p; with `nonempty`, given that none is empty."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, len(p))) < p
    while nonempty and (empty := ~X.any(axis=1)).any():
        X[empty] = rng.random((empty.sum(), len(p))) < p
    return np.asarray(X)


def some_data(nonempty: bool) -> Baskets:
    """Frequent and rare items, two that never meet, and two pairs that often do."""
    X = independent([0.4, 0.3, 0.2, 0.1, 0.05, 0.02], 250, 0, nonempty=False)
    X[X[:, 0], 1] = False
    X[:, 3] |= X[:, 2] & (np.arange(250) % 3 > 0)
    X[:, 5] |= X[:, 4]
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else np.vstack([X, np.zeros((1, 6), bool)]))


def enumerated_chance(m: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """P(both) and the odds ratio of every pair of the truncated independent law, by enumeration."""
    p = before_truncation(np.asarray(m))
    P = np.array([np.prod([p[i] if i in Y else 1 - p[i] for i in range(len(p))]) for Y in oracle.subsets(len(p))])
    P[0] = 0
    P /= P.sum()
    np.testing.assert_allclose(oracle.item_marginals(P), m, atol=1e-10)  # p is what makes these frequencies
    both, odds = np.zeros((len(p), len(p))), np.zeros((len(p), len(p)))
    for i in range(len(p)):
        for j in range(len(p)):
            cells = np.zeros((2, 2))
            for Y, mass in zip(oracle.subsets(len(p)), P, strict=True):
                cells[int(i in Y), int(j in Y)] += mass
            both[i, j] = cells[1, 1]
            odds[i, j] = cells[1, 1] * cells[0, 0] / (cells[1, 0] * cells[0, 1]) if i != j else 1
    return both, odds


def scipy_laws(baskets: Baskets, found: PairTests) -> list[Any]:
    """The frozen law of every pair's count, given how often each item occurs."""
    n, counts = len(baskets), np.rint(baskets.frequencies() * len(baskets)).astype(int)
    if not found.nonempty:
        return [stats.hypergeom(n, counts[i], counts[j]) for i, j in found.pairs]
    _, odds = enumerated_chance(baskets.frequencies())
    return [stats.nchypergeom_fisher(n, counts[i], counts[j], odds[i, j]) for i, j in found.pairs]


def table(both: float, first: float, second: float, n: float) -> np.ndarray[Any, Any]:
    return np.array([both, first - both, second - both, n - first - second + both])


@pytest.mark.parametrize("nonempty", [False, True])
def test_p_is_twice_the_smaller_tail_of_the_exact_distribution(nonempty: bool) -> None:
    baskets = some_data(nonempty)
    found, m = pair_tests(baskets), baskets.frequencies()
    assert found.nonempty == nonempty
    for law, observed, p in zip(scipy_laws(baskets, found), found.observed, found.p, strict=True):
        half = law.pmf(observed) / 2
        lower, upper = law.cdf(observed) - half, law.sf(observed) + half
        assert p == pytest.approx(min(2 * min(lower, upper), 1), rel=1e-6, abs=1e-12)
    both = enumerated_chance(m)[0] if nonempty else np.outer(m, m)
    np.testing.assert_allclose(found.expected, [len(baskets) * both[i, j] for i, j in found.pairs], rtol=1e-9)


@pytest.mark.parametrize("nonempty", [False, True])
def test_strength_is_the_information_beyond_what_chance_shows(nonempty: bool) -> None:
    """KL of every pair's table, less its expectation over all counts that chance can bring."""
    baskets = some_data(nonempty)
    found, n = pair_tests(baskets), len(baskets)
    counts = np.rint(baskets.frequencies() * n)
    excess, variance = np.zeros(2), np.zeros(2)
    for row, law in enumerate(scipy_laws(baskets, found)):
        i, j = found.pairs[row]
        expected = table(found.expected[row], counts[i], counts[j], n)

        def information(x: float, i: int = i, j: int = j, expected: Any = expected) -> float:
            return float(stats.entropy(table(x, counts[i], counts[j], n) / n, expected / n))

        low, high = law.support()
        xs = np.arange(low, high + 1)
        values, probabilities = np.array([information(x) for x in xs]), law.pmf(xs)
        assert found.information[row] == pytest.approx(information(found.observed[row]), abs=1e-12)
        for side, there in enumerate((xs < found.expected[row], xs >= found.expected[row])):
            mean = probabilities @ (values * there)
            excess[side] -= mean
            variance[side] += probabilities @ (values * there) ** 2 - mean**2
        excess[int(found.observed[row] >= found.expected[row])] += information(found.observed[row])
    np.testing.assert_allclose([found.repelling.nats, found.attracting.nats], excess, atol=1e-8)
    errors = [found.repelling.standard_error, found.attracting.standard_error]
    np.testing.assert_allclose(errors, np.sqrt(variance), rtol=1e-5)


def test_false_discoveries_are_controlled_by_benjamini_and_hochberg() -> None:
    found = pair_tests(some_data(nonempty=False), level=0.5)
    expected = stats.false_discovery_control(found.p) <= 0.5
    np.testing.assert_array_equal(found.repels | found.attracts, expected)
    assert not np.any(found.repels & found.attracts)
    assert 0 < expected.sum() < np.count_nonzero(found.p <= 0.5)  # or it would not matter


def test_could_repel_is_whether_no_co_occurrence_would_have_been_significant() -> None:
    baskets = some_data(nonempty=False)
    found = pair_tests(baskets)
    one_more = np.count_nonzero(found.repels | found.attracts) + 1
    least = np.array([law.pmf(law.support()[0]) for law in scipy_laws(baskets, found)])  # twice half of it
    np.testing.assert_array_equal(found.could_repel, least <= 0.05 * one_more / len(found))
    assert 0 < found.could_repel.sum() < len(found)


def test_items_that_never_meet_repel_and_items_that_mostly_meet_attract() -> None:
    found = pair_tests(some_data(nonempty=False))
    (repelling,) = found.strongest(found.repels, 5)
    assert (repelling.first, repelling.second, repelling.observed) == (0, 1, 0)
    assert repelling.ratio == 0
    attracting = found.strongest(found.attracts, 5)
    assert [(each.first, each.second) for each in attracting] == [(2, 3), (4, 5)]
    assert attracting[0].ratio > 1.5
    assert [each.information for each in attracting] == sorted((each.information for each in attracting), reverse=True)


def test_independent_items_are_called_neither_whether_or_not_empty_baskets_were_kept() -> None:
    """About 5 % of single tests err. A data set has a false discovery with probability at most 5 %.

    More than 4 of 20 data sets have one with probability 0.003. If the test did not know that no basket can be empty,
    many pairs would seem to repel.
    """
    for nonempty in (False, True):
        found = [
            pair_tests(Baskets.from_matrix(independent(np.linspace(0.02, 0.2, 12), 2000, seed, nonempty=nonempty)))
            for seed in range(20)
        ]
        assert 0.01 < np.mean([each.p <= 0.05 for each in found]) < 0.06
        assert sum((each.repels | each.attracts).any() for each in found) <= 4
        strengths = np.array([each.repelling.nats / each.repelling.standard_error for each in found])
        assert abs(strengths.mean()) < 0.5
        assert strengths.std() < 1.4
    X = independent(np.full(12, 0.05), 2000, 0, nonempty=True)
    not_knowing = pair_tests(Baskets.from_matrix(np.vstack([X, np.zeros((1, 12), bool)])))
    assert not_knowing.repels.sum() > 30


def test_integer_weights_are_counts_and_others_give_an_effective_number_of_baskets() -> None:
    sets = [[0, 1], [0], [1], [2], []]
    weights = [3, 40, 30, 20, 60]
    weighted = pair_tests(Baskets.from_lists(sets, weights=weights))
    repeated = pair_tests(Baskets.from_lists([each for each, w in zip(sets, weights, strict=True) for _ in range(w)]))
    assert weighted.n == repeated.n == 153
    np.testing.assert_array_equal(weighted.observed, repeated.observed)
    np.testing.assert_allclose(weighted.p, repeated.p)
    fractions = np.random.default_rng(0).uniform(0.5, 3, 100)
    found = pair_tests(Baskets.from_lists(sets * 20, weights=fractions))
    assert found.n == round(fractions.sum() ** 2 / (fractions**2).sum()) < 100
    same = Baskets.from_lists([*sets * 20, [0, 1]], weights=[*fractions * 7.7, 0.0])
    np.testing.assert_allclose(pair_tests(same).p, found.p)


def test_where_pairs_cannot_vary_they_are_called_neither() -> None:
    for sets in ([[0], [0], []], [[], []], [[0], [1], [2], [0]], [[0, 1]], [[0, 1, 2], [0, 1], [0]]):
        found = pair_tests(Baskets.from_lists(sets, n_items=3))
        assert not (found.repels | found.attracts).any()
        for each in (found.p, found.information, found.expected, np.array([*found.repelling, *found.attracting])):
            assert np.isfinite(each).all()
        assert np.all(found.p > 0.05)


def test_batches_give_the_whole_and_pairs_left_out_of_the_counts_the_largest_possible() -> None:
    baskets = some_data(nonempty=True)
    whole = pair_tests(baskets)
    parts = pair_tests(baskets, batch_size=40)
    np.testing.assert_allclose(parts.p, whole.p, rtol=1e-12)
    assert parts.repelling == pytest.approx(whole.repelling, rel=1e-9)
    few = Baskets.from_lists([[0, 1]] * 9 + [[0, 2]] * 2 + [[1, 2]] + [[0], [1], [2]] * 20)
    assert pair_tests(few).observed.tolist() == [9, 2, 1]
    assert pair_tests(few, max_pairs=1).observed.tolist() == [9, 2, 2]


@pytest.mark.parametrize("nonempty", [True, False])
def test_of_many_items_those_are_tested_that_co_occurred_or_were_expected_to(nonempty: bool) -> None:
    """Items of all frequencies, two frequent ones that never co-occur and two rare ones that always do."""
    X = independent(np.geomspace(0.004, 0.5, 30), 600, 1, nonempty=False)
    X[X[:, 29], 28] = False
    X[:, 1] = X[:, 0]
    baskets = Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)
    every = pair_tests(baskets)
    some = pair_tests(baskets, max_dense_items=10)
    known = {tuple(pair): row for row, pair in enumerate(every.pairs.tolist())}
    rows = np.array([known[tuple(pair)] for pair in some.pairs.tolist()])
    assert set(rows) == set(np.flatnonzero((every.observed > 0) | (every.expected >= cooccurrence.WORTH_TESTING)))
    for column in ("observed", "expected", "p", "repels", "attracts", "could_repel", "information"):
        np.testing.assert_allclose(getattr(some, column), getattr(every, column)[rows], rtol=1e-9, err_msg=column)
    assert some.n_possible == every.n_possible == len(every) > len(some)
    assert some.repels.any()
    assert some.attracts.any()


def test_of_many_independent_items_neither_side_has_strength() -> None:
    """Pairs that are tested because they met would by themselves seem to attract."""
    drawn = [independent(np.geomspace(0.005, 0.2, 60), 800, seed, nonempty=False) for seed in range(10)]
    found = [pair_tests(Baskets.from_matrix(X), max_dense_items=10) for X in drawn]
    assert max(len(each) for each in found) < found[0].n_possible
    for side in ("repelling", "attracting"):
        z = [getattr(each, side).nats / getattr(each, side).standard_error for each in found]
        assert abs(np.mean(z)) < 1


def test_invalid_levels_and_zero_total_weight_are_rejected() -> None:
    with pytest.raises(InputError, match=r"level.*\b0\b"):
        pair_tests(some_data(nonempty=False), level=0)
    with pytest.raises(InputError):
        pair_tests(Baskets.from_lists([[0]], weights=[0]))
