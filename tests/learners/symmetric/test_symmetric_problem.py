"""The likelihood of a factor: its value is that of the kernel, and its gradient is its slope."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood
from dpplearn.learners.symmetric.problem import FactorLikelihood, SymmetricProblem, in_L
from helpers.problems import random_kernel
from helpers.slopes import assert_slope_two

N_ITEMS = 6
BASKETS = Baskets.from_lists(
    [[0, 1, 2], [1, 2, 4], [0, 3], [2, 5], [1], []], n_items=N_ITEMS, weights=[1, 2, 1, 1, 3, 1]
)
widths = pytest.mark.parametrize("n_columns", [6, 3], ids=["square", "narrow"])


def random_factor(n_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N_ITEMS, n_columns))


@widths
def test_the_value_is_the_likelihood_of_the_kernel(n_columns: int) -> None:
    B = random_factor(n_columns)
    value, _ = FactorLikelihood(SymmetricProblem(BASKETS, 1))(B)
    assert value == pytest.approx(mean_log_likelihood(SpectralDPP.from_factor(B), BASKETS), rel=1e-12)


@widths
def test_the_gradient_has_the_slope_of_the_likelihood(n_columns: int) -> None:
    B, direction = random_factor(n_columns), random_factor(n_columns, seed=1)
    likelihood = FactorLikelihood(SymmetricProblem(BASKETS, 1))
    before, gradient = likelihood(B)
    slope = float((gradient * direction).sum())
    assert_slope_two(lambda eta: abs(likelihood(B + eta * direction)[0] - before - eta * slope), first=1e-3)


@pytest.mark.parametrize("n_zeros", [0, 4])
def test_a_basket_above_the_rank_is_impossible(n_zeros: int) -> None:
    B = np.hstack([random_factor(2), np.zeros((N_ITEMS, n_zeros))])
    assert FactorLikelihood(SymmetricProblem(BASKETS, 1))(B)[0] == -np.inf


def test_the_gradient_in_L_is_the_mean_inverse_less_that_of_I_plus_L() -> None:
    L = random_kernel(np.random.default_rng(2)).L
    value, delta, inverse = in_L(np.array(L), SymmetricProblem(BASKETS, 1))
    expected = np.zeros((N_ITEMS, N_ITEMS))
    for basket, weight in zip(BASKETS, BASKETS.weights, strict=True):
        Y = np.array(list(basket), dtype=int)
        expected[np.ix_(Y, Y)] += weight / BASKETS.total_weight * np.linalg.inv(L[np.ix_(Y, Y)])
    assert value == pytest.approx(mean_log_likelihood(SpectralDPP.from_L(L), BASKETS), rel=1e-12)
    np.testing.assert_allclose(delta, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(inverse, np.linalg.inv(np.eye(N_ITEMS) + L), rtol=1e-10, atol=1e-12)
