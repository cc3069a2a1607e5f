"""The learners of symmetric DPPs: one contract for all, and what each promises beyond it; the authors' own runs."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError
from dpplearn.datasets.registries import make_registries
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood, statistics
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import CAP, INITIALISERS, moments
from dpplearn.learners.symmetric.em import LARGEST_ANGLE, e_step, natural_angles, rotated
from dpplearn.learners.symmetric.factor import factor_likelihood
from dpplearn.learners.symmetric.fixed_points import ACCELERATED_STEPS, acceleration
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.problems import PROBLEMS, random_kernel, sampled, shopping
from reproduction.data import Source
from reproduction.experiments import recorded_run

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


# Given nonempty sets.

ABLE = [name for name, each in LEARNERS.items() if each.can_be_nonempty]


def test_the_probability_of_not_being_empty_is_exact_however_small() -> None:
    V = random_kernel(np.random.default_rng(0), 3).eigenvectors
    for scale in (0.5, 1e-3, 1e-12, 1e-200):
        lam = scale * np.array([0.2, 0.5, 1.0])
        exact = float(lam.sum() - lam[0] * lam[1] - lam[0] * lam[2] - lam[1] * lam[2] + np.prod(lam))
        found = -distribution_of(SpectralDPP(lam, V), nonempty=True).log_mass
        assert found == pytest.approx(np.log(exact), rel=1e-14, abs=1e-14)
    assert distribution_of(SpectralDPP(np.array([0.0, 0.3, 1.0]), V), nonempty=True).log_mass == 0


def test_a_factor_of_nearly_nothing_is_not_taken_for_a_perfect_model() -> None:
    """Rounding must not raise the likelihood of single items above their negative entropy."""
    single = Baskets.from_lists([[0], [1], [1]], n_items=2)
    for scale in (1e-3, 1e-6, 1e-8, 1e-9, 1e-12):
        value, _ = factor_likelihood(SymmetricProblem(single, 1, nonempty=True), scale * np.diag([1.0, np.sqrt(2)]))
        assert not value > np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3 + 1e-4, scale


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("learner", ABLE)
@pytest.mark.parametrize("problem", ["sampled from a DPP", "weighted", "attracting", "one item"])
def test_a_fit_is_at_least_as_good_as_the_plain_fit_and_reports_its_likelihood(problem: str, learner: str) -> None:
    baskets = PROBLEMS[problem].subset(PROBLEMS[problem].sizes > 0)
    tol, short = (1e-4, 1e-3) if learner == "adam" else (1e-6, 1e-4)
    plain, result = (fit_dpp(baskets, learner, tol=tol, nonempty=nonempty) for nonempty in (False, True))
    reached = result.model.log_likelihood(baskets)
    assert reached >= DPP(plain.model.kernel, baskets.items, nonempty=True).log_likelihood(baskets) - short
    assert result.log_likelihood == pytest.approx(reached, abs=1e-6)
    assert np.all(np.diff(result.history.log_likelihood) >= -1e-9)
    assert result.model.learned.nonempty is True
    assert plain.model.learned.nonempty is False


def test_empty_baskets_are_refused_unless_they_weigh_nothing() -> None:
    with pytest.raises(InputError, match=r"1 of 2"):
        fit_dpp([[0], []], nonempty=True)
    silent = Baskets.from_lists([[0], [1], [0, 1], []], weights=[1, 2, 1, 0])
    without = silent.subset(silent.sizes > 0)
    np.testing.assert_array_equal(*(fit_dpp(each, nonempty=True).model.kernel.K for each in (silent, without)))


@pytest.mark.slow
def test_baskets_of_one_item_reach_their_entropy_and_no_more() -> None:
    single = Baskets.from_lists([[0], [1], [1], [2]], n_items=3)
    entropy = float(-(np.array([0.25, 0.5, 0.25]) @ np.log([0.25, 0.5, 0.25])))
    for learner in ABLE:
        result = fit_dpp(single, learner, init="wishart", nonempty=True, rng=0, tol=1e-7, max_iter=3000)
        assert result.log_likelihood == pytest.approx(-entropy, abs=1e-4)
        assert result.log_likelihood <= -entropy + 1e-9
        assert result.independent_log_likelihood == pytest.approx(-entropy, abs=1e-4)


# The authors' own program, iteration by iteration, on the real registries.

RUNS = [
    f"{category}_{start}"
    for category in ("carseats", "furniture", "safety", "strollers")
    for start in ("wishart_0", "wishart_1", "moments_0")
]


def test_every_run_that_is_there_is_tested(shared: Path) -> None:
    there = {path.stem for path in (shared / "reference" / "authors_runs").glob("*.npz")}
    assert there == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("learner", "prefix", "rtol"), [("em", "em", 1e-12), ("k-ascent", "ka", 1e-9)])
def test_every_iteration_is_the_authors(shared: Path, name: str, learner: str, prefix: str, rtol: float) -> None:
    (train, test, start), recorded = recorded_run(Source(shared / "data" / "registries"), name)
    fit = fit_dpp(train, learner, start=start)
    objective = recorded[f"{prefix}_objective"]
    assert len(fit.history) == len(objective)
    np.testing.assert_allclose(fit.history.log_likelihood, objective, rtol=rtol)
    kernel = fit.model.kernel
    if learner == "em":  # the authors' program raises capped eigenvalues at the end
        kernel = SpectralDPP(np.where(kernel.eigenvalues >= CAP, 1.0, kernel.eigenvalues), kernel.eigenvectors)
    else:
        np.testing.assert_allclose(kernel.K, recorded["ka_K"], atol=1e-9)
    final = DPP(kernel, train.items)
    assert final.log_likelihood(test) == pytest.approx(float(recorded[f"{prefix}_test"]), abs=1e-6)
    if learner == "em":
        assert final.log_likelihood(train) == pytest.approx(float(recorded["em_train"]), abs=1e-6)


@pytest.mark.parametrize("name", [name for name in RUNS if "moments" in name])
def test_the_moments_start_is_the_authors(shared: Path, name: str) -> None:
    (train, _, _), recorded = recorded_run(Source(shared / "data" / "registries"), name)
    np.testing.assert_allclose(moments(train, np.random.default_rng(0)).K, recorded["K_start"], atol=1e-12)
