"""L-BFGS: the recursion is the BFGS update, and the line search keeps its promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpplearn.learners.lbfgs import MIN_STEP_SIZE, PAIRS, Curvature, Point, ascend, line_search

SHAPE = (5, 4)


@pytest.mark.parametrize("n", [1, 3, PAIRS + 5])
def test_the_recursion_is_the_product_with_the_matrix_of_the_last_pairs(n: int) -> None:
    """H ← (I − s yᵀ/sᵀy) H (I − y sᵀ/sᵀy) + s sᵀ/sᵀy, from sᵀy/yᵀy of the last pair."""
    rng, curvature = np.random.default_rng(0), Curvature()
    X = rng.standard_normal((20, 20))
    steps = rng.standard_normal((n, 20))
    changes = steps @ (X @ X.T / 20 + np.eye(20))  # of the gradient of a quadratic function
    for s, y in zip(steps, changes, strict=True):
        curvature.learn(s.reshape(SHAPE), y.reshape(SHAPE))
    H = (s @ y) / (y @ y) * np.eye(20)
    for s, y in zip(steps[-PAIRS:], changes[-PAIRS:], strict=True):
        left = np.eye(20) - np.outer(s, y) / (s @ y)
        H = left @ H @ left.T + np.outer(s, s) / (s @ y)
    gradient = rng.standard_normal(SHAPE)
    np.testing.assert_allclose(curvature.times(gradient).ravel(), H @ gradient.ravel(), rtol=1e-9)


def test_the_line_search_comes_back_from_impossible_points() -> None:
    def edge(x: np.ndarray) -> tuple[float, np.ndarray]:
        return (-np.inf, x) if x[0] > 1e-3 else (float(x[0]), np.ones(1))

    found = line_search(edge, Point(np.zeros(1), 0.0, np.ones(1)), np.ones(1), 1e-15)
    assert found.value == found.step_size
    assert MIN_STEP_SIZE < found.step_size <= 1e-3


def test_the_search_ends_at_the_maximum_and_stays_there() -> None:
    scale = np.geomspace(1, 100, 20)

    def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -float((scale * x**2).sum()) / 2, -scale * x

    start = Point(np.ones(20), *bowl(np.ones(20)))
    points = list(itertools.islice(ascend(bowl, start, lambda g: 0.01 * g, lambda at: 1e-9), 80))
    assert np.all(np.diff([each.value for each in points]) >= 0)
    assert points[-1].value == pytest.approx(0, abs=1e-8)
    assert (points[-1].step_size, points[-1].evaluations) == (0, 0)
