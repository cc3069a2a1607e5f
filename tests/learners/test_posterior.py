"""Posteriors of parametric kernels: samplers against known distributions, prediction by enumeration, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError
from dpplearn.data.features import read_features
from dpplearn.learners.posterior import NAMED, Density, importance_draws, mode_of, parametric, slice_draws, slice_move
from helpers import oracle

N = 6
FEATURES = read_features({"item": range(N), "x": [0.1, -1.0, 0.7, 2.0, 0.2, -0.4]}, list(range(N)))
X = np.asarray(FEATURES.matrix)
THETA = np.array([-0.8, 0.4, -0.3])
PRIOR = ([-1.0, 0.0, -0.3], [0.5, 0.5, 0.7])


def sets_of(theta: np.ndarray, n: int, rng: Any) -> Baskets:
    return Baskets.from_lists(DPP.from_L(NAMED["rbf"][0](theta, X)).sample(n, rng=rng), n_items=N)


def test_the_mode_is_where_no_slope_is_left_and_the_spread_is_the_curvature_there() -> None:
    of_data = Density(parametric("rbf", FEATURES, PRIOR), sets_of(THETA, 300, 0).deduplicated(), False, 1)
    mode, A = mode_of(of_data)
    assert np.abs(A.T @ of_data.with_gradient(mode)[1]).max() < 1e-2  # in standard deviations
    for z in np.eye(3):
        fall = of_data(mode) - of_data(mode + A @ (0.1 * z))
        assert fall == pytest.approx(0.005, rel=0.1)


MEAN, A = np.array([1.0, -2.0]), np.array([[0.5, 0.0], [0.3, 2.0]])


def gaussian(theta: np.ndarray) -> float:
    return -float((np.linalg.solve(A, theta - MEAN) ** 2).sum()) / 2


def test_importance_draws_have_the_moments_of_the_distribution_even_where_the_proposal_is_off() -> None:
    centre, spread = MEAN + np.array([0.1, -0.2]), 1.2 * A
    z, weights, pareto_k = importance_draws(lambda z: gaussian(centre + spread @ z), 2, 4000, np.random.default_rng(0))
    draws = centre + z @ spread.T
    mean = weights @ draws
    assert pareto_k < 0.7
    np.testing.assert_allclose(mean, MEAN, atol=0.1)
    np.testing.assert_allclose((draws - mean).T * weights @ (draws - mean), A @ A.T, atol=0.3)


def test_slice_draws_are_of_the_distribution() -> None:
    centre, spread = MEAN + np.array([0.5, 1.0]), 3 * A
    draws = slice_draws(lambda z: gaussian(centre + spread @ z), 2, 1500, np.random.default_rng(0))
    z = (centre + draws @ spread.T - MEAN) @ np.linalg.inv(A).T
    for column in z[::3].T:
        assert kstest(column, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z.T)[0, 1]) < 0.1


def test_a_slice_move_keeps_a_uniform_distribution_wider_than_its_interval() -> None:
    """Also near the edges, which the interval of few points reaches."""
    rng, width = np.random.default_rng(0), 100.0

    def flat(z: np.ndarray) -> float:
        return 0.0 if 0 <= z[0] <= width else -np.inf

    starts = rng.uniform(0, width, (6000, 1))
    ends = np.array([slice_move(flat, start, 0.0, np.ones(1), rng)[0][0] for start in starts])
    assert kstest(np.abs(ends - width / 2), "uniform", (0, width / 2)).pvalue > 1e-3
    assert np.abs(ends - starts[:, 0]).mean() > 10  # and moves


@pytest.mark.slow
def test_slices_take_over_where_few_draws_would_have_most_of_the_weight() -> None:
    """A sharp peak in a wide plain: around the peak are all draws, and in the plain is most of the posterior."""

    def peak(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.exp(-1 - 1 / (0.001 + theta[0] ** 2) ** 0.1) * np.eye(len(X))

    baskets = Baskets.from_lists([[0], [], [], []] * 2, n_items=N)
    found = dl.posterior(baskets, features=FEATURES, kernel=peak, prior=([0.01], [3.0]), draws=100, rng=0, threads=1)
    assert (found.sampler, found.names) == ("slice", ("parameter 0",))
    assert found.pareto_k > 0.7
    np.testing.assert_array_equal(found.weights, 0.01)


def found_in(baskets: Baskets, **options: Any) -> dl.Posterior:
    given = {"features": FEATURES, "prior": PRIOR, "draws": 400, "rng": 0, "threads": 1}
    return dl.posterior(baskets, **{**given, **options})


def test_quantiles_are_those_of_the_weighted_draws() -> None:
    found = found_in(sets_of(THETA, 80, 3))
    for column, quantiles in zip(found.draws.T, found.quantiles([0.1, 0.5]).T, strict=True):
        shares = [found.weights[column < quantile].sum() for quantile in quantiles]
        assert shares == pytest.approx([0.1, 0.5], abs=0.02)
    for probabilities in ([0.5, 1.5], 0.5, [np.nan]):
        with pytest.raises(InputError):
            found.quantiles(probabilities)


@pytest.mark.slow
def test_true_parameters_stand_anywhere_among_the_draws_alike() -> None:
    """Simulation-based calibration, in short; the same test rejects draws that are too near to each other."""
    rng, found = np.random.default_rng(7), []
    for _ in range(16):
        theta = np.array([-1.0, 0.0, -0.5]) + 0.3 * rng.standard_normal(3)
        prior = ([-1.0, 0.0, -0.5], [0.3] * 3)
        after = found_in(sets_of(theta, 500, rng), prior=prior, rng=rng, draws=300, nonempty=False)
        found.append([after.weights @ (after.mean + t * (after.draws - after.mean) < theta) for t in (1.0, 0.4)])
    as_they_are, too_near = np.array(found).swapaxes(0, 1)
    p_values = [min(kstest(column, "uniform").pvalue for column in each.T) for each in (as_they_are, too_near)]
    of_middle = [kstest(np.abs(2 * each - 1).ravel(), "uniform").pvalue for each in (as_they_are, too_near)]
    assert min(p_values[0], of_middle[0]) > 1e-3
    assert of_middle[1] < 1e-3


def test_invalid_options_are_rejected() -> None:
    for options in (
        {"kernel": "poly"},
        {"kernel": lambda theta, X: np.eye(len(X)), "prior": None},
        {"kernel": lambda theta, X: np.eye(2)},
        {"kernel": lambda theta, X: np.ones((len(X), len(X)))},
        {"kernel": lambda theta, X: np.eye(len(X)) + np.eye(len(X), k=1) / 2},
        {"prior": ([0.0] * 3, [1.0, 1.0, -1.0])},
        {"draws": 5},
        {"nonempty": True},
        {"kernel": np.eye(3)},
    ):
        with pytest.raises(InputError):
            found_in(Baskets.from_lists([[0, 1], [2], [], [3, 4]], n_items=N), **options)


@pytest.mark.parametrize("nonempty", [False, True])
def test_draws_of_very_different_laws_count_for_their_shares(nonempty: bool) -> None:
    """One of nearly empty sets, which given that they are not must not count against it; one in which no two meet."""
    found = found_in(sets_of(THETA, 40, 4))
    rare, alike = np.diag(np.full(N, 1e-3)), np.ones((N, N))

    draws = np.zeros((2, len(found.mode)))
    draws[0, 0] = 1
    of = {"kernel": found.kernel._replace(L=lambda theta: rare if theta[0] > 0 else alike), "draws": draws}
    law = type(found)(**{**vars(found), **of, "weights": np.array([0.25, 0.75]), "nonempty": nonempty}).predictive(400)
    P = np.array([oracle.probabilities_from_L(L) for L in (rare, alike)])
    P[:, 0] = 0 if nonempty else P[:, 0]
    expected = np.array([0.25, 0.75]) @ (P / P.sum(axis=1, keepdims=True))
    got = np.exp(law.log_prob(Baskets.from_lists(oracle.subsets(N)[1:], n_items=N)))
    np.testing.assert_allclose(got, expected[1:], rtol=1e-9)
