"""Scaled DPPs with a dense and a low-rank interaction, against enumeration of all subsets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from distributions.contract import CHECKS, Case
from distributions.examples import N, dense, low_rank, without_interaction
from dpplearn.arrays import Floats
from dpplearn.distributions.compiled import few_answers
from dpplearn.distributions.components import TopQuery, sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank
from dpplearn.distributions.scaled import ScaledDPPs
from helpers.oracle import subsets


def table_of(log_odds: Floats, X: Floats) -> Floats:
    """P_c(Y) ∝ Π o_i det(I + X)_Y, by determinants alone."""
    rows = []
    for c, g in enumerate(log_odds):
        C = np.eye(len(g)) + X[c if len(X) > 1 else 0]
        weights = np.array([np.exp(g[list(Y)].sum()) * np.linalg.det(C[np.ix_(Y, Y)]) for Y in subsets(len(g))])
        rows.append(weights / weights.sum())
    return np.array(rows)


def case_of(components: ScaledDPPs) -> Case:
    return Case(components, table_of(components.log_odds.astype(float), components.interaction.X))


def with_absent_items() -> Case:
    components = dense(2, 1)
    log_odds = components.log_odds.copy()
    log_odds[0, 2] = log_odds[1, 4] = log_odds[1, 2] = -np.inf
    return case_of(ScaledDPPs.checked(log_odds, components.interaction))


CASES: dict[str, Callable[[], Case]] = {
    "one dense component": lambda: case_of(dense(1, 1)),
    "dense, shared interaction": lambda: case_of(dense(3, 1)),
    "dense, an interaction each": lambda: case_of(dense(2, 2, seed=2)),
    "dense, extreme odds": lambda: case_of(dense(2, 1, seed=3, spread=5.0)),
    "one low-rank component": lambda: case_of(low_rank(1, 1)),
    "low-rank, shared interaction": lambda: case_of(low_rank(3, 1)),
    "low-rank, an interaction each": lambda: case_of(low_rank(2, 2)),
    "low-rank, rank 0": lambda: case_of(without_interaction(0)),
    "low-rank, no interaction": lambda: case_of(without_interaction(3)),
    "items that are absent": with_absent_items,
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_contract(name: str, check: Callable[[Case], None]) -> None:
    check(CASES[name]())


@pytest.mark.parametrize("g", [1, 3])
def test_the_best_items_without_compiled_loops_are_those_of_the_loops(g: int) -> None:
    """All pivots of I + X are at least 1 and entries are of order 1, so both have an error of at most 1e-12."""
    sets = sets_of(subsets(N), N)
    query = TopQuery(np.log([0.2, 0.5, 0.3]), sets, 3, np.arange(N) != 1, inclusion=True)
    compiled = dense(3, g).top(query)
    with few_answers():
        found = dense(3, g).top(query)
    for one, other in zip(found, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_a_basket_whose_probability_underflows_has_next_items() -> None:
    components = ScaledDPPs.checked(np.array([[0.0, -1e4, 1.0]]), Dense.checked(np.zeros((1, 3, 3))))
    found = SetDistribution.mixture([1.0], components).top_next(sets_of([[1], [0], [0, 1, 2]], 3), 2)
    assert found.items.tolist() == [[2, 0], [2, -1], [-1, -1]]
    np.testing.assert_allclose(found.scores[0], np.exp([1.0, 0.0]), rtol=1e-12)


def test_an_empty_set_whose_probability_underflows_is_not_excluded() -> None:
    """log P(∅) = −log(1 + e^700) − log(1 + e^700) = −1400."""
    distribution = SetDistribution.mixture([1.0], ScaledDPPs(np.full((1, 2), 700.0), Dense(np.zeros((1, 2, 2)))))
    assert not distribution.nonempty
    assert distribution.size_range == range(3)


def test_the_sizes_of_many_components_leave_no_copies_of_the_factors() -> None:
    Z, core = np.full((2000, 20), 0.01), np.stack([np.eye(20)] * 8)
    components = ScaledDPPs.checked(np.full((8, 2000), -6.0), LowRank.checked(Z, core))
    tracemalloc.start()
    components.log_sizes()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2 * Z.nbytes
