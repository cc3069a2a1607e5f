"""The default learner: where it starts, which columns it gives up, and that it ends where EM would have got to."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.symmetric.lbfgs import SMALL_ODDS, with_empty_probability, without_small_columns
from dpplearn.learners.symmetric.problem import FactorLikelihood, SymmetricProblem
from helpers.problems import random_kernel, sampled, shopping

fit_dpp = partial(dl.fit_dpp, shrinkage=0)

KERNEL = SpectralDPP(np.array([0.05, 0.1, 0.2, 0.3]), random_kernel(np.random.default_rng(0), 4).eigenvectors)


def test_the_empty_set_starts_with_the_share_of_the_data_and_no_eigenvalue_is_lowered() -> None:
    """Only the largest eigenvalue is raised, to no more than 1 − 1e-5."""
    assert np.prod(1 - KERNEL.eigenvalues) == pytest.approx(0.4788)
    for n_empty, expected in ((0, 0.95 * 0.9 * 0.8 * 1e-5), (1, 0.1), (4, 0.4), (9, 0.4788)):
        baskets = Baskets.from_lists([[]] * n_empty + [[row % 4] for row in range(10 - n_empty)], n_items=4)
        found = with_empty_probability(KERNEL, baskets)
        assert np.prod(1 - found.eigenvalues) == pytest.approx(expected, rel=1e-10)
        np.testing.assert_array_equal(found.eigenvalues[:3], KERNEL.eigenvalues[:3])
        np.testing.assert_array_equal(found.eigenvectors, KERNEL.eigenvectors)


@pytest.mark.parametrize(("n_empty", "largest"), [(0, 1 - 1e-5), (2, 0.9)])
def test_a_share_too_small_for_a_number_is_no_trouble(n_empty: int, largest: float) -> None:
    """Of 500 eigenvalues at 0.9, the product of 1 − λ is 1e-500."""
    kernel = SpectralDPP(np.full(500, 0.9), np.eye(500))
    baskets = Baskets.from_lists([[]] * n_empty + [[1], [2, 3]], n_items=500)
    assert with_empty_probability(kernel, baskets).eigenvalues.max() == pytest.approx(largest)


ODDS = np.array([2.0, 0.5, 0.1, SMALL_ODDS / 10, SMALL_ODDS / 20, SMALL_ODDS / 30])
AXES = random_kernel(np.random.default_rng(1)).eigenvectors


def turned_factor() -> np.ndarray:
    """With these odds along these axes, and columns that are mixtures of them."""
    return AXES * np.sqrt(ODDS) @ random_kernel(np.random.default_rng(2)).eigenvectors


def composed(odds: np.ndarray) -> np.ndarray:
    return AXES * odds @ AXES.T


def shrinking(B: np.ndarray) -> np.ndarray:
    """A gradient that wants less of every direction."""
    return -B


@pytest.mark.parametrize(("fewest", "n_left"), [(0, 3), (3, 3), (5, 5)])
def test_small_directions_that_the_likelihood_wants_less_of_are_given_up(fewest: int, n_left: int) -> None:
    B = turned_factor()
    Z, columns = without_small_columns(B, shrinking(B), fewest)
    assert Z.shape == (6, n_left)
    left = np.where(np.arange(6) < n_left, ODDS, 0)
    np.testing.assert_allclose((Z * columns) @ (Z * columns).T, composed(left), atol=1e-13)


def test_small_directions_that_the_likelihood_wants_more_of_stay() -> None:
    B = turned_factor()
    gradient = shrinking(B) + 2 * np.outer(AXES[:, 4], AXES[:, 4]) @ B
    Z, columns = without_small_columns(B, gradient, 0)
    left = np.where(np.isin(np.arange(6), [3, 5]), 0, ODDS)
    np.testing.assert_allclose((Z * columns) @ (Z * columns).T, composed(left), atol=1e-13)


@pytest.mark.parametrize("seed", [0, 6])
def test_it_finds_the_optimum_that_em_approaches(seed: int) -> None:
    baskets = sampled(seed, n=400, n_items=5)
    em = fit_dpp(baskets, "em", init="wishart", rng=0, tol=1e-8, max_iter=5000).log_likelihood
    assert em - 1e-4 <= fit_dpp(baskets, tol=1e-7, nonempty=False).log_likelihood <= em + 1e-3


@pytest.mark.parametrize(("seed", "init"), [(2, "moments"), (3, "wishart")])
def test_em_finds_nothing_to_gain_where_it_ends(seed: int, init: str) -> None:
    baskets = sampled(seed, n=400, n_items=5)
    found = fit_dpp(baskets, init=init, rng=0, tol=1e-7, nonempty=False)
    assert fit_dpp(baskets, "em", start=found, tol=0, max_iter=100).log_likelihood <= found.log_likelihood + 1e-6


SHOPPING = shopping()


@pytest.mark.parametrize("init", ["moments", "wishart"])
def test_the_basin_of_an_eigenvalue_at_one_is_avoided_where_another_is_better(init: str) -> None:
    result = fit_dpp(SHOPPING, init=init, rng=0, nonempty=False)
    assert result.log_likelihood > result.independent_log_likelihood + 0.02
    assert result.model.kernel.eigenvalues.max() < 0.99


@pytest.mark.slow
def test_the_default_is_above_independent_items_on_groceries(shared: Path) -> None:
    baskets = dl.read_baskets(shared / "data" / "baskets" / "groceries.csv", format="lines")
    train, _ = baskets.split(0.8, rng=0)
    for init in ("moments", "wishart"):
        result = fit_dpp(train, init=init, rng=0, nonempty=False)
        assert result.log_likelihood > result.independent_log_likelihood + 0.05


@pytest.mark.parametrize("n_zeros", [0, 4])
def test_a_basket_above_the_rank_is_impossible(n_zeros: int) -> None:
    B = np.hstack([random_kernel(np.random.default_rng(0)).L[:, :2], np.zeros((6, n_zeros))])
    problem = SymmetricProblem(Baskets.from_lists([[0, 1, 2], [1]], n_items=6), 1)
    assert FactorLikelihood(problem)(B)[0] == -np.inf
