"""Scaled DPPs with a dense and a low-rank interaction, against enumeration of all subsets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from distributions.contract import CHECKS, Case
from dpplearn import Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.compiled import few_answers
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank, repelling_and_attracting
from dpplearn.distributions.scaled import ScaledDPPs
from helpers.oracle import subsets

N = 6


def table_of(log_odds: Floats, X: Floats) -> Floats:
    """P_c(Y) ∝ Π o_i det(I + X)_Y, by determinants alone."""
    rows = []
    for c, g in enumerate(log_odds):
        C = np.eye(len(g)) + X[c if len(X) > 1 else 0]
        weights = np.array([np.exp(g[list(Y)].sum()) * np.linalg.det(C[np.ix_(Y, Y)]) for Y in subsets(len(g))])
        rows.append(weights / weights.sum())
    return np.array(rows)


def dense(m: int, g: int, spread: float = 1.0, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((g, N, 2)) / 2, rng.standard_normal((g, N, N)) / 2
    X = U @ U.transpose(0, 2, 1) + A - A.transpose(0, 2, 1)
    log_odds = spread * rng.standard_normal((m, N)) - 0.5
    return Case(ScaledDPPs.checked(log_odds, Dense.checked(X)), table_of(log_odds, X))


def low_rank(m: int, g: int, seed: int = 0) -> Case:
    """One item does not interact with the others."""
    rng = np.random.default_rng(seed)
    Z = (rng.standard_normal((N, 5)) / 1.5).astype(np.float32)
    Z[3] = 0
    twisted = rng.standard_normal((g, 5, 5)) / 3
    core = repelling_and_attracting(1, 2) + twisted - twisted.transpose(0, 2, 1)
    log_odds = (rng.standard_normal((m, N)) - 0.5).astype(np.float32).astype(float)
    X = Z.astype(float) @ core @ Z.astype(float).T
    return Case(ScaledDPPs.checked(log_odds, LowRank.checked(Z, core)), table_of(log_odds, X))


def independent(rank: int) -> Case:
    log_odds = np.random.default_rng(1).standard_normal((2, N)).astype(np.float32).astype(float)
    core = np.eye(rank)[None]
    components = ScaledDPPs.checked(log_odds, LowRank.checked(np.zeros((N, rank)), core))
    return Case(components, table_of(log_odds, np.zeros((1, N, N))))


def with_absent_items() -> Case:
    case = dense(2, 1)
    log_odds = case.components.log_odds.copy()
    log_odds[0, 2] = log_odds[1, 4] = log_odds[1, 2] = -np.inf
    X = case.components.interaction.X
    return Case(ScaledDPPs.checked(log_odds, Dense(X)), table_of(log_odds, X))


CASES: dict[str, Callable[[], Case]] = {
    "one dense component": lambda: dense(1, 1),
    "dense, shared interaction": lambda: dense(3, 1),
    "dense, an interaction each": lambda: dense(2, 2, seed=2),
    "dense, extreme odds": lambda: dense(2, 1, spread=5.0, seed=3),
    "one low-rank component": lambda: low_rank(1, 1),
    "low-rank, shared interaction": lambda: low_rank(3, 1),
    "low-rank, an interaction each": lambda: low_rank(2, 2),
    "low-rank, rank 0": lambda: independent(0),
    "low-rank, no interaction": lambda: independent(3),
    "items that are absent": with_absent_items,
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_contract(name: str, check: Callable[[Case], None]) -> None:
    check(CASES[name]())


@pytest.mark.parametrize("g", [1, 3])
def test_answers_without_compiled_loops_are_those_of_the_loops(g: int) -> None:
    """All pivots of I + X are at least 1 and entries are of order 1, so both have an error of at most 1e-12."""
    components, log_mass = dense(3, g).components, np.log([0.2, 0.5, 0.3])
    sets = Baskets.from_lists(subsets(N), n_items=N)
    for query in (components.next, components.next_inclusion):
        for items in (None, np.array([4, 1])):
            compiled = query(log_mass, sets, items)
            with few_answers():
                found = query(log_mass, sets, items)
            for one, other in zip(found, compiled, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_a_basket_whose_probability_underflows_has_next_items() -> None:
    components = ScaledDPPs.checked(np.array([[0.0, -1e4, 1.0]]), Dense.checked(np.zeros((1, 3, 3))))
    found = SetDistribution.mixture([1.0], components).top_next(Baskets.from_lists([[1], [0], [0, 1, 2]], n_items=3), 2)
    assert found.items.tolist() == [[2, 0], [2, -1], [-1, -1]]
    np.testing.assert_allclose(found.scores[0], np.exp([1.0, 0.0]), rtol=1e-12)
