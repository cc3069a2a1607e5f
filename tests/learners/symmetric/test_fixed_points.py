"""Picard and MM: each step solves the equation it is named after, computed here by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.learners.loop import Step
from dpplearn.learners.symmetric.fixed_points import ACCELERATED_STEPS, acceleration
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.problems import PROBLEMS, random_kernel

PROBLEM = PROBLEMS["weighted"]
START = random_kernel(np.random.default_rng(0))
L, ONE = START.L, np.eye(START.n_items)


def first_steps(learner: str, n: int = 2) -> list[Step]:
    return list(itertools.islice(LEARNERS[learner].steps(START, SymmetricProblem(PROBLEM, 1)), n))


def mean_inverse(L: np.ndarray, baskets: Baskets) -> np.ndarray:
    """Delta, one basket at a time."""
    delta = np.zeros_like(L)
    for basket, weight in zip(baskets, baskets.weights, strict=True):
        Y = np.array(list(basket), dtype=int)
        delta[np.ix_(Y, Y)] += weight / baskets.weights.sum() * np.linalg.inv(L[np.ix_(Y, Y)])
    return delta


def test_a_picard_step_is_the_printed_one() -> None:
    start, step = first_steps("picard")
    np.testing.assert_allclose(start.kernel.L, L, atol=1e-12)
    assert step.step_size == 1.3
    np.testing.assert_allclose(
        step.kernel.L, L + 1.3 * L @ (mean_inverse(L, PROBLEM) - np.linalg.inv(ONE + L)) @ L, atol=1e-10
    )


def test_an_mm_step_solves_the_printed_equation() -> None:
    """With both terms in the accelerated steps at the start, and with μ = 0 after them."""
    steps = first_steps("mm", ACCELERATED_STEPS + 2)
    for before, step, accelerated in ((steps[0], steps[1], True), (steps[-2], steps[-1], False)):
        L, X = before.kernel.L, step.kernel.L
        delta = mean_inverse(L, PROBLEM)
        mu = acceleration(np.array(L), delta) if accelerated else 0.0
        assert (mu < 0) == accelerated
        assert step.step_size == pytest.approx(1 - mu, rel=1e-12)  # an eigenvalue of 6 by 6, found twice
        left = X @ (np.linalg.inv(ONE + L) + mu * delta) @ X
        np.testing.assert_allclose(left, (1 + mu) * L @ delta @ L, atol=1e-10)
