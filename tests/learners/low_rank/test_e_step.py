"""Segments by EM in closed form: one segment is independent items, and known segments are found."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.learners.low_rank.learner import low_rank
from dpplearn.learners.low_rank.problem import LowRankProblem

RNG = np.random.default_rng(0)
N = 40


def drawn(n: int, *, empty: bool) -> Baskets:
    """Two segments, each with 20 items of its own."""
    kind = RNG.random(n) < 0.4
    p = np.where((np.arange(N) < N // 2) == kind[:, None], 0.12, 0.01)
    X = RNG.random((n, N)) < p
    return Baskets.from_matrix(X if empty else X[X.any(axis=1)])


@pytest.mark.parametrize("nonempty", [False, True])
def test_one_segment_is_independent_items(nonempty: bool) -> None:
    baskets = drawn(500, empty=not nonempty)
    problem = LowRankProblem(baskets, None, nonempty, 1, 0, 0)
    *_, last = low_rank(problem.initial("random", RNG), problem)
    same = problem.log_likelihood(problem.baseline())
    assert last.log_likelihood == pytest.approx(same, abs=1e-5)  # what shrinks segments has nothing to do
