"""Segments by EM in closed form: one segment is independent items, and known segments are found."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.low_rank.e_step import e_step
from dpplearn.learners.low_rank.learner import low_rank
from dpplearn.learners.low_rank.problem import EM_PASSES, LowRankProblem

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


@pytest.mark.parametrize("nonempty", [False, True])
def test_known_segments_are_found(nonempty: bool) -> None:
    baskets = drawn(5000, empty=not nonempty)
    problem = LowRankProblem(baskets, None, nonempty, 2, 0, 0)
    *_, last = low_rank(problem.initial("random", np.random.default_rng(1)), problem)
    order = np.argsort(last.kernel.weights)
    np.testing.assert_allclose(last.kernel.weights[order], [0.4, 0.6], atol=0.04)
    first, second = last.kernel.components.marginals()[order]
    np.testing.assert_allclose(first[: N // 2], 0.12, atol=0.04)
    np.testing.assert_allclose(second[: N // 2], 0.01, atol=0.02)


def test_what_is_told_is_the_likelihood_of_the_kernel() -> None:
    baskets = drawn(300, empty=False)
    problem = LowRankProblem(baskets, None, True, 3, 2, 2)
    steps = list(low_rank(problem.initial("random", RNG), problem))
    for step in (*steps[: EM_PASSES + 1 : 12], *steps[EM_PASSES + 1 :: 3], steps[-1]):
        law = distribution_of(step.kernel, nonempty=True)
        assert step.log_likelihood == pytest.approx(law.mean_log_likelihood(baskets), abs=1e-5)
    assert [steps[0].share, steps[-1].share] == [0, 1]


def test_baskets_that_would_have_been_empty_are_counted_to_their_segments() -> None:
    """Of a segment that takes little more are missing: its weight is larger than its share of those that came."""
    baskets = drawn(2000, empty=False)
    p = (baskets.frequencies() * len(baskets) + 0.5) / (len(baskets) + 1)
    log_odds = np.log(p / (1 - p)) + np.array([[-2.0], [1.0]])
    norms = np.logaddexp(0, log_odds).sum(axis=1)
    with_them, without = (
        e_step(log_odds, np.array([0.5, 0.5]), norms, baskets, p, nonempty=nonempty) for nonempty in (True, False)
    )
    assert with_them.weights[0] > without.weights[0] + 0.1
