"""The learners of symmetric DPPs: one contract for all of them, and what each of them promises beyond it."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.data.baskets import Baskets
from dpplearn.datasets.registries import make_registries
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.em import LARGEST_ANGLE, e_step, natural_angles, rotated
from dpplearn.learners.symmetric.factor import factor_likelihood
from dpplearn.learners.symmetric.fixed_points import ACCELERATED_STEPS, acceleration
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.problems import PROBLEMS, random_kernel, sampled, shopping

fit_dpp = partial(dl.fit_dpp, shrinkage=0)

every_learner = pytest.mark.parametrize("learner", LEARNERS)
STARTS = [*((problem, "wishart") for problem in PROBLEMS), ("weighted", "moments")]


def first_steps(learner: str, kernel: SpectralDPP, baskets: Baskets, n: int = 12) -> list[Step]:
    return list(itertools.islice(LEARNERS[learner].steps(kernel, SymmetricProblem(baskets, 1)), n))


@every_learner
@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize(("problem", "init"), STARTS)
def test_every_step_ascends_and_reports_its_own_likelihood(learner: str, problem: str, init: str) -> None:
    baskets = PROBLEMS[problem]
    start = INITIALISERS[init](baskets, np.random.default_rng(0))
    steps = first_steps(learner, start, baskets)
    likelihoods = np.array([step.log_likelihood for step in steps])
    assert np.all(np.diff(likelihoods) >= -1e-12 * np.abs(likelihoods[:-1]))
    for step in steps:
        assert step.log_likelihood == pytest.approx(mean_log_likelihood(step.kernel, baskets), rel=1e-9, abs=1e-12)


def test_em_never_raises_an_eigenvalue_above_the_cap_nor_lowers_a_start_that_was() -> None:
    below = random_kernel(np.random.default_rng(11))
    above = SpectralDPP(np.linspace(0.5, 1, 6), below.eigenvectors)
    for start, largest in ((below, 0.999), (above, 1.0)):
        last = first_steps("em", start, PROBLEMS["an item that always occurs"], 60)[-1].kernel
        assert last.eigenvalues.max() == largest


def test_em_keeps_the_eigenvectors_where_no_step_ascends() -> None:
    """From a diagonal kernel, a saddle, the eigenvectors do not move, and the eigenvalues still do."""
    baskets = PROBLEMS["sampled from a DPP"]
    start = SpectralDPP(np.full(6, 0.5), np.eye(6))
    last = first_steps("em", start, baskets, 5)[-1]
    np.testing.assert_array_equal(last.kernel.eigenvectors, np.eye(6))
    np.testing.assert_allclose(last.kernel.eigenvalues, baskets.frequencies(), atol=1e-12)
    assert rotated(start, np.zeros((6, 6)), SymmetricProblem(baskets, 1)) == (start, 0.0, 0)


@pytest.mark.slow
@every_learner
def test_items_that_never_occur_get_probability_exactly_zero(learner: str) -> None:
    """Except from a Wishart start under the paper's learners, under which they only become ever less likely."""
    small = make_registries("carseats", 30, rng=3)
    never = small.frequencies() == 0
    assert never.sum() > 5
    for init in ("moments",) if learner in ("em", "k-ascent") else ("moments", "wishart"):
        dpp = fit_dpp(small, learner, init=init, rng=0).model
        np.testing.assert_array_equal(dpp.marginals() == 0, never)
        assert all(dpp.log_prob([item]) == -np.inf for item in np.array(dpp.items)[never])


WEIGHTED, ONE = PROBLEMS["weighted"], np.eye(6)


def mean_inverse(L: np.ndarray) -> np.ndarray:
    """Delta of the weighted baskets, one at a time."""
    delta = np.zeros_like(L)
    for row, weight in enumerate(WEIGHTED.weights / WEIGHTED.total_weight):
        Y = np.ix_(WEIGHTED.positions(row), WEIGHTED.positions(row))
        delta[Y] += weight * np.linalg.inv(L[Y])
    return delta


def test_a_picard_step_is_the_printed_one() -> None:
    kernel = random_kernel(np.random.default_rng(0))
    _, step = first_steps("picard", kernel, WEIGHTED, 2)
    assert step.step_size == 1.3
    L = kernel.L
    expected = L + 1.3 * L @ (mean_inverse(L) - np.linalg.inv(ONE + L)) @ L
    np.testing.assert_allclose(step.kernel.L, expected, atol=1e-10)


def test_an_mm_step_solves_the_printed_equation() -> None:
    """With both terms in the accelerated steps at the start, and with μ = 0 after them."""
    steps = first_steps("mm", random_kernel(np.random.default_rng(0)), WEIGHTED, ACCELERATED_STEPS + 2)
    for before, step, accelerated in ((steps[0], steps[1], True), (steps[-2], steps[-1], False)):
        L, X = before.kernel.L, step.kernel.L
        delta = mean_inverse(L)
        mu = acceleration(np.array(L), delta) if accelerated else 0.0
        assert (mu < 0) == accelerated
        assert step.step_size == pytest.approx(1 - mu, rel=1e-12)  # an eigenvalue of 6 by 6, found twice
        left = X @ (np.linalg.inv(ONE + L) + mu * delta) @ X
        np.testing.assert_allclose(left, (1 + mu) * L @ delta @ L, atol=1e-10)


def test_angles_are_score_over_information_and_bounded() -> None:
    """Of natural EM: Θ_ba = s_ab / I_ab, and 0 where there is no information."""
    baskets = PROBLEMS["sampled from a DPP"].subset(PROBLEMS["sampled from a DPP"].sizes <= 4)
    for lam in (np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), np.array([0, 0, 0.4, 0.5, 0.6, 0.9])):
        kernel = SpectralDPP(lam, random_kernel(np.random.default_rng(7)).eigenvectors)
        stats, odds, V = statistics(kernel, baskets), kernel.odds, kernel.eigenvectors
        score = 2 * (V.T @ (stats.delta / stats.weight) @ V) * (odds[:, None] - odds)
        information = 4 * (np.outer(lam, 1 - lam) + np.outer(1 - lam, lam))
        expected = np.divide(score, information, out=np.zeros_like(score), where=information > 0).T
        angles = natural_angles(lam, e_step(kernel, stats))
        np.testing.assert_allclose(angles, expected * min(1, LARGEST_ANGLE / np.abs(expected).max()), atol=1e-12)
        np.testing.assert_array_equal(angles, -angles.T)
        assert np.abs(angles).max() > 0.01


@pytest.mark.parametrize(("seed", "init"), [(0, "moments"), (6, "moments"), (6, "wishart")])
def test_the_default_learner_ends_where_em_gets_to_and_finds_nothing_to_gain(seed: int, init: str) -> None:
    baskets = sampled(seed, n=400, n_items=5)
    em = fit_dpp(baskets, "em", init="wishart", rng=0, tol=1e-8, max_iter=5000).log_likelihood
    found = fit_dpp(baskets, init=init, rng=0, tol=1e-7, nonempty=False)
    assert em - 1e-4 <= found.log_likelihood <= em + 1e-3
    assert fit_dpp(baskets, "em", start=found, tol=0, max_iter=100).log_likelihood <= found.log_likelihood + 1e-6


@pytest.mark.parametrize("init", ["moments", "wishart"])
def test_the_basin_of_an_eigenvalue_at_one_is_avoided_where_another_is_better(init: str) -> None:
    result = fit_dpp(shopping(), init=init, rng=0, nonempty=False)
    assert result.log_likelihood > result.independent_log_likelihood + 0.02
    assert result.model.kernel.eigenvalues.max() < 0.99


@pytest.mark.parametrize("n_zeros", [0, 4])
def test_a_basket_above_the_rank_is_impossible(n_zeros: int) -> None:
    B = np.hstack([random_kernel(np.random.default_rng(0)).L[:, :2], np.zeros((6, n_zeros))])
    problem = SymmetricProblem(Baskets.from_lists([[0, 1, 2], [1]], n_items=6), 1)
    assert factor_likelihood(problem, B)[0] == -np.inf
