"""The printed algorithms against enumeration of all subsets, and against the learners of dpplearn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

from dpplearn import DPP, Baskets, fit_dpp
from dpplearn.learners.starts import wishart
from golden.reference import elementary
from helpers import oracle
from helpers.problems import sampled
from reproduction import textbook
from reproduction.experiments import index_sets

FloatArray = NDArray[np.float64]
Data = tuple[list[NDArray[np.int64]], list[float]]

N = 5


def spectrum(seed: int) -> tuple[FloatArray, FloatArray]:
    """Random eigenvalues in (0.05, 0.95) and eigenvectors."""
    rng = np.random.default_rng(seed)
    V, _ = np.linalg.qr(rng.standard_normal((N, N)))
    return rng.uniform(0.05, 0.95, N), V


def draws(seed: int, n_draws: int = 30) -> Data:
    """Distinct sets drawn from a random DPP, with how often each was drawn."""
    P = oracle.probabilities_from_K(textbook.compose(*spectrum(seed)))
    counts = np.random.default_rng(seed).multinomial(n_draws, P / P.sum())
    seen = np.flatnonzero(counts)
    return [np.array(oracle.subsets(N)[m], dtype=np.int64) for m in seen], counts[seen].astype(float).tolist()


def remainder_slope(f: Callable[[float], float], derivative: float) -> float:
    """The power of η with which |f(η) − f(0) − η f'(0)| falls: 2 for the right derivative, 1 for a wrong one."""
    etas = 2.0 ** -np.arange(6, 11)
    remainders = [abs(f(eta) - f(0.0) - eta * derivative) for eta in etas]
    return float(np.polyfit(np.log(etas), np.log(remainders), 1)[0])


def test_the_e_step_is_that_of_the_enumerated_posterior_and_the_eigenvalue_update_its_weighted_mean() -> None:
    lam, V = spectrum(4)
    sets = [np.array(Y, dtype=np.int64) for Y in oracle.subsets(N)]
    weights = np.random.default_rng(4).random(len(sets))
    joint = elementary(lam, V)
    expected = [oracle.item_marginals(oracle.posterior(joint, Y)) for Y in sets]
    np.testing.assert_allclose([textbook.marginals_given(V, lam, Y) for Y in sets], expected, rtol=1e-8)
    updated = textbook.eigenvalue_update(V, lam, sets, weights)
    np.testing.assert_allclose(updated, np.average(expected, axis=0, weights=weights), rtol=1e-9)


def test_both_likelihoods_equal_the_enumerated_one_and_reject_negative_determinants() -> None:
    lam, V = spectrum(5)
    sets, weights = draws(6)
    K = textbook.compose(lam, V)
    expected = oracle.log_likelihood(oracle.probabilities_from_K(K), sets, weights)
    assert textbook.log_likelihood(V, lam, sets, weights) == pytest.approx(expected, rel=1e-10)
    assert textbook.log_likelihood_of_K(K, sets, weights) == pytest.approx(expected, rel=1e-10)
    assert textbook.log_likelihood_of_K(np.diag([1.2, 0.5]), [np.array([1])], [1.0]) == -np.inf
    assert textbook.log_likelihood_of_K(np.diag([0.8, 0.5]), [np.array([1])], [1.0]) == pytest.approx(np.log(0.1))


def test_a_determinant_that_is_rounding_error_is_zero() -> None:
    eps = np.finfo(np.float64).eps
    assert textbook.log_det(np.array([[1.0, 1.0], [1.0, 1.0 + eps]])) == -np.inf
    assert textbook.log_det(np.array([[1.0, 1.0], [1.0, 1.0 + 2**20 * eps]])) == pytest.approx(np.log(2**20 * eps))
    assert textbook.log_det(np.array([[1.0, 2.0], [2.0, 1.0]])) == -np.inf


def test_gap_of_the_bound_is_the_divergence_from_the_posterior_and_zero_at_it() -> None:
    lam, V = spectrum(8)
    sets, weights = draws(8)
    joint = elementary(lam, V)
    posterior = [oracle.posterior(joint, Y) for Y in sets]
    likelihood = textbook.log_likelihood(V, lam, sets, weights)
    assert oracle.bound(posterior, V, lam, sets, weights) == pytest.approx(likelihood, rel=1e-10)
    # Distributions over the J that could have given Y: those of its size.
    of_size = [[len(J) == len(Y) for J in oracle.subsets(N)] for Y in sets]
    q = [oracle.normalised(each) for each in np.random.default_rng(8).exponential(size=(len(sets), 2**N)) * of_size]
    divergence = np.average([oracle.kl(*pair) for pair in zip(q, posterior, strict=True)], weights=weights)
    assert divergence > 0.1
    assert likelihood - oracle.bound(q, V, lam, sets, weights) == pytest.approx(divergence, rel=1e-9)


def test_eigenvector_gradient_is_that_of_the_bound_at_the_posterior() -> None:
    lam, V = spectrum(0)
    sets, weights = draws(10)
    joint = elementary(lam, V)
    q = [oracle.posterior(joint, Y) for Y in sets]
    G = textbook.eigenvector_gradient(V, lam, sets, weights)
    A = np.random.default_rng(0).standard_normal((N, N))
    S = A - A.T
    slope = remainder_slope(lambda eta: oracle.bound(q, V @ expm(eta * S), lam, sets, weights), np.sum(G * (V @ S)))
    assert slope == pytest.approx(2, abs=0.1)


def test_eigenvectors_move_along_the_gradient_at_the_old_eigenvalues() -> None:
    lam, V = spectrum(3)
    sets, weights = draws(3)
    new_lam = textbook.eigenvalue_update(V, lam, sets, weights)
    G = textbook.eigenvector_gradient(V, lam, sets, weights)

    def moved(eta: float) -> FloatArray:
        return np.asarray(V @ expm(eta * (V.T @ G - G.T @ V)))

    def likelihood(eta: float) -> float:
        kernel = textbook.compose(new_lam, moved(eta))
        return oracle.log_likelihood(oracle.probabilities_from_K(kernel), sets, weights)

    first_increase = next(eta for eta in 2.0 ** -np.arange(20) if likelihood(eta) > likelihood(0))
    new_V, eta = textbook.eigenvector_update(V, lam, new_lam, sets, weights)
    assert eta == first_increase
    np.testing.assert_allclose(new_V, moved(eta), atol=1e-12)
    one_iteration = textbook.em(textbook.compose(lam, V), sets, weights, max_iter=1, cap=1)
    np.testing.assert_allclose(one_iteration.K, textbook.compose(new_lam, new_V), atol=1e-12)


def test_kernel_gradient_is_that_of_the_likelihood() -> None:
    K = textbook.compose(*spectrum(0))
    sets, weights = draws(20)
    H = np.random.default_rng(0).standard_normal((N, N))
    H = 0.02 * (H + H.T)
    derivative = np.sum(textbook.kernel_gradient(K, sets, weights) * H)
    slope = remainder_slope(lambda eta: textbook.log_likelihood_of_K(K + eta * H, sets, weights), derivative)
    assert slope == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("algorithm", [textbook.em, textbook.k_ascent])
def test_every_iteration_ascends_until_the_first_change_below_the_tolerance(
    algorithm: Callable[..., textbook.Trace],
) -> None:
    sets, weights = draws(30, 200)
    start = textbook.compose(*spectrum(0))
    trace = algorithm(start, sets, weights, tol=1e-3, max_iter=100)
    assert trace.converged
    assert len(trace.objective) == len(trace.step) > 3
    assert np.all(np.diff(trace.objective) >= 0)
    assert (trace.step[0], trace.step[1] > 0) == (0, True)
    changes = np.abs(np.diff(trace.objective)) / np.abs(trace.objective[:-1])
    assert np.all(changes[:-1] >= 1e-3)
    assert changes[-1] < 1e-3
    for kernel, objective in [(start, trace.objective[0]), (trace.K, trace.objective[-1])]:
        expected = oracle.log_likelihood(oracle.probabilities_from_K(kernel), sets, weights)
        assert objective == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(trace.eigenvectors.T @ trace.eigenvectors, np.eye(N), atol=1e-12)
    cut = algorithm(start, sets, weights, tol=1e-3, max_iter=2)
    assert not cut.converged
    np.testing.assert_allclose(cut.objective, trace.objective[:3], rtol=1e-12)


def test_em_keeps_eigenvalues_at_the_cap_and_raise_capped_lifts_those_alone() -> None:
    sets = [np.array([i, j]) for i in range(N) for j in range(i)]
    trace = textbook.em(textbook.compose(*spectrum(0)), sets, np.ones(len(sets)), tol=1e-6, max_iter=100, cap=0.9)
    lam = trace.eigenvalues
    assert lam.max() == 0.9
    raised = textbook.raise_capped(lam, 0.9)
    np.testing.assert_array_equal(raised, np.where(lam == 0.9, 1.0, lam))
    assert np.any(raised < 0.9)


def test_line_search_halves_from_one_and_stops_at_the_smallest_step() -> None:
    tried: list[float] = []

    def move(eta: float) -> float:
        tried.append(eta)
        return eta

    assert textbook.line_search(0.0, move, lambda x: 0.3 * x - x**2) == (0.25, 0.25)
    assert tried == [1, 0.5, 0.25]
    assert textbook.line_search(0.0, move, lambda x: -x) == (0.0, 0.0)
    assert 1e-8 <= tried[-1] < 2e-8


def test_an_initial_kernel_without_a_finite_likelihood_is_an_error() -> None:
    sets = [np.array([0, 1, 2])]
    rank_two = np.diag([0.5, 0.5, 0.0, 0.0, 0.0])
    for algorithm in (textbook.em, textbook.k_ascent):
        with pytest.raises(ValueError, match="-inf"):
            algorithm(rank_two, sets, [1.0])
    with pytest.raises(ValueError, match=r"1\.0"):
        textbook.em(np.eye(N), sets, [1.0])


@pytest.mark.parametrize(("learner", "algorithm"), [("em", textbook.em), ("k-ascent", textbook.k_ascent)])
def test_the_learners_of_dpplearn_follow_the_printed_algorithms_step_by_step(
    learner: str, algorithm: Callable[..., textbook.Trace]
) -> None:
    sets = sampled(0, 25)
    weights = np.random.default_rng(0).random(len(sets))
    train = Baskets.from_lists(list(sets), n_items=sets.n_items, weights=weights)
    start = wishart(train, np.random.default_rng(0))
    trace = algorithm(start.K, index_sets(train), train.weights)
    ours = fit_dpp(train, learner, start=DPP(start, train.items))
    np.testing.assert_allclose(ours.history.log_likelihood, trace.objective, rtol=1e-9)
    np.testing.assert_allclose(ours.model.K, trace.K, atol=1e-7)
