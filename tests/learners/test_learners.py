"""One contract for every learner, and the paper's two against the algorithms as printed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import expm

import dpplearn as dl
from dpplearn.data.baskets import Baskets
from dpplearn.datasets.registries import make_registries
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.em import e_step, rotated
from dpplearn.learners.symmetric.k_ascent import gradient, projected
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers import oracle
from helpers.problems import PROBLEMS, random_kernel, sampled
from helpers.slopes import assert_slope_two
from reproduction import textbook

every_learner = pytest.mark.parametrize("learner", LEARNERS)
THE_PAPER_S = {"em", "k-ascent"}
# every problem from a Wishart start, and every start on one problem
STARTS = [
    *((problem, "wishart") for problem in PROBLEMS),
    *(("weighted", init) for init in INITIALISERS if init != "wishart"),
]


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


@every_learner
def test_eigenvectors_stay_orthonormal_over_many_steps(learner: str) -> None:
    baskets = PROBLEMS["sampled from a DPP"]
    last = first_steps(learner, random_kernel(np.random.default_rng(3)), baskets, 150)[-1].kernel
    np.testing.assert_allclose(last.eigenvectors.T @ last.eigenvectors, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("problem", ["sampled from a DPP", "weighted", "attracting"])
def test_em_is_the_paper_s_step_for_step(problem: str) -> None:
    baskets = PROBLEMS[problem]
    start = random_kernel(np.random.default_rng(5))
    sets = [baskets.indices[a:b] for a, b in itertools.pairwise(baskets.offsets)]
    printed = textbook.em(start.K, sets, baskets.weights, tol=1e-4)
    ours = dl.fit_dpp(baskets, "em", start=dl.DPP(start))
    assert len(printed.objective) == len(ours.history) > 5
    np.testing.assert_allclose(ours.history.log_likelihood, printed.objective, rtol=1e-9)
    np.testing.assert_allclose(ours.history.step_size, printed.step)
    np.testing.assert_allclose(
        ours.model.kernel.K, textbook.compose(printed.eigenvalues, printed.eigenvectors), atol=1e-9
    )


@pytest.mark.parametrize("problem", ["sampled from a DPP", "without empty baskets", "an item that always occurs"])
def test_k_ascent_is_the_paper_s_step_for_step(problem: str) -> None:
    baskets = PROBLEMS[problem]
    start = random_kernel(np.random.default_rng(6))
    sets = [baskets.indices[a:b] for a, b in itertools.pairwise(baskets.offsets)]
    printed = textbook.k_ascent(start.K, sets, baskets.weights, tol=1e-4)
    ours = dl.fit_dpp(baskets, "k-ascent", start=dl.DPP(start))
    assert len(printed.objective) == len(ours.history) > 2
    np.testing.assert_allclose(ours.history.log_likelihood, printed.objective, rtol=1e-9)
    np.testing.assert_allclose(
        ours.model.kernel.K, textbook.compose(printed.eigenvalues, printed.eigenvectors), atol=1e-9
    )


def with_eigenvalues(*last: float) -> SpectralDPP:
    kernel = random_kernel(np.random.default_rng(7))
    lam = np.concatenate([np.linspace(0.1, 0.8, 6 - len(last)), last])
    return SpectralDPP(lam, kernel.eigenvectors)


kernels_up_to_one = pytest.mark.parametrize(
    "kernel",
    [with_eigenvalues(0.9), with_eigenvalues(1 - 1e-7), with_eigenvalues(1.0), with_eigenvalues(1 - 1e-9, 1.0)],
    ids=["inside", "1 - 1e-7", "1", "1 - 1e-9 and 1"],
)
LARGE_SETS = Baskets.from_lists([[0, 1, 2], [1, 2, 4], [0, 3, 4, 5], [2, 5], [1, 3]], n_items=6)


@kernels_up_to_one
def test_e_step_marginals_are_those_of_enumeration(kernel: SpectralDPP) -> None:
    """The diagonal of T is the mean posterior of each eigenvector (Lemma 1), also where λ reaches 1."""
    found = e_step(kernel, statistics(kernel, LARGE_SETS)).diagonal()
    each = [oracle.e_step_marginals(kernel.eigenvectors, kernel.eigenvalues, Y) for Y in LARGE_SETS]
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-9, atol=1e-9)


@kernels_up_to_one
def test_the_rotation_s_gradient_has_the_slope_of_the_likelihood(kernel: SpectralDPP) -> None:
    """Along V exp(ηS) the remainder of the first-order expansion falls like η²."""
    T = e_step(kernel, statistics(kernel, LARGE_SETS))
    S = expm_direction(6)
    slope = float((2 * T * S).sum())  # ⟨VᵀG, S⟩
    before = mean_log_likelihood(kernel, LARGE_SETS)

    def remainder(eta: float) -> float:
        moved = SpectralDPP(kernel.eigenvalues, kernel.eigenvectors @ expm(eta * S))
        return abs(mean_log_likelihood(moved, LARGE_SETS) - before - eta * slope)

    assert_slope_two(remainder, first=1e-3)


@pytest.mark.parametrize("kernel", [with_eigenvalues(0.9), with_eigenvalues(0.7, 0.95)])
def test_the_k_gradient_has_the_slope_of_the_likelihood(kernel: SpectralDPP) -> None:
    """Along the projected move that K-Ascent makes, from inside where nothing is clipped."""
    G = gradient(kernel, statistics(kernel, LARGE_SETS))
    direction = np.random.default_rng(8).standard_normal((6, 6))
    direction = direction + direction.T
    before = mean_log_likelihood(kernel, LARGE_SETS)
    slope = float((G * direction).sum())

    def remainder(eta: float) -> float:
        return abs(mean_log_likelihood(projected(kernel, eta * direction), LARGE_SETS) - before - eta * slope)

    assert_slope_two(remainder, first=2e-3)


@kernels_up_to_one
def test_the_k_gradient_is_the_mean_inverse(kernel: SpectralDPP) -> None:
    """∂ log|det(K − I_Ȳ)| / ∂K = (K − I_Ȳ)⁻¹, exactly also where λ is 1."""
    each = []
    for Y in LARGE_SETS:
        absent = np.diag([0.0 if item in Y else 1.0 for item in range(6)])
        each.append(np.linalg.inv(kernel.K - absent))
    V = kernel.eigenvectors
    found = V @ gradient(kernel, statistics(kernel, LARGE_SETS)) @ V.T
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-8, atol=1e-8)


def expm_direction(n: int) -> np.ndarray:
    S = np.random.default_rng(9).standard_normal((n, n))
    return S - S.T


def test_k_ascent_clips_eigenvalues_to_exactly_zero_and_one() -> None:
    baskets = PROBLEMS["an item that always occurs"]
    last = first_steps("k-ascent", random_kernel(np.random.default_rng(10)), baskets, 30)[-1].kernel
    assert np.any(last.eigenvalues == 1)
    assert np.any(last.eigenvalues == 0)


def test_em_never_raises_an_eigenvalue_above_the_cap_nor_lowers_a_start_that_was() -> None:
    baskets = PROBLEMS["an item that always occurs"]
    for start, largest in ((random_kernel(np.random.default_rng(11)), 0.999), (with_eigenvalues(1.0), 1.0)):
        last = first_steps("em", start, baskets, 60)[-1].kernel
        assert last.eigenvalues.max() == largest


def test_em_keeps_the_eigenvectors_where_no_step_ascends() -> None:
    """From a diagonal kernel, a saddle, the eigenvectors do not move, and the eigenvalues still do."""
    baskets = PROBLEMS["sampled from a DPP"]
    start = SpectralDPP(np.full(6, 0.5), np.eye(6))
    last = first_steps("em", start, baskets, 5)[-1]
    np.testing.assert_array_equal(last.kernel.eigenvectors, np.eye(6))
    np.testing.assert_allclose(last.kernel.eigenvalues, baskets.frequencies(), atol=1e-12)
    assert rotated(start, np.zeros((6, 6)), SymmetricProblem(baskets, 1)) == (start, 0.0, 0)


def test_zero_eigenvalues_stay_zero_under_em() -> None:
    baskets = Baskets.from_lists([[0], [1, 2], [3], [4, 5]], n_items=6)
    start = with_eigenvalues(0.0, 0.0)
    last = first_steps("em", start, baskets, 10)[-1].kernel
    assert last.rank == start.rank == 4


def test_larger_problems_ascend_on_two_threads_as_on_one() -> None:
    baskets = sampled(12, n=3000, n_items=12)
    start = random_kernel(np.random.default_rng(13), 12)
    one, two = (
        dl.fit_dpp(baskets, start=dl.DPP(start), shrinkage=0, max_iter=20, threads=threads, nonempty=False)
        for threads in (1, 2)
    )
    np.testing.assert_allclose(one.history.log_likelihood, two.history.log_likelihood, rtol=1e-12)


def assert_zero_exactly_where_items_never_occur(learner: str, init: str) -> None:
    small = make_registries("carseats", 30, rng=3)
    never = small.frequencies() == 0
    assert never.sum() > 5
    dpp = dl.fit_dpp(small, learner, init=init, shrinkage=0, rng=0).model
    np.testing.assert_array_equal(dpp.marginals() == 0, never)
    np.testing.assert_array_equal([dpp.log_prob([item]) == -np.inf for item in np.array(dpp.items)[never]], True)


@pytest.mark.slow
@every_learner
def test_items_that_never_occur_get_probability_exactly_zero_from_moments(learner: str) -> None:
    """A decomposition that mixes them with the others leaves 1e-30, and log-probabilities near −80 for −inf."""
    assert_zero_exactly_where_items_never_occur(learner, "moments")


@pytest.mark.slow
@pytest.mark.parametrize("learner", sorted(set(LEARNERS) - THE_PAPER_S))
def test_items_that_never_occur_get_probability_exactly_zero_from_anywhere(learner: str) -> None:
    """Except under the paper's learners, under which they only become ever less likely."""
    assert_zero_exactly_where_items_never_occur(learner, "wishart")
