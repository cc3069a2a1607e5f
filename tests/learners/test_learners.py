"""One contract for every learner, and the edge cases of the paper's two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.data.baskets import Baskets
from dpplearn.datasets.registries import make_registries
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.em import rotated
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.problems import PROBLEMS, random_kernel

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


def with_eigenvalues(*last: float) -> SpectralDPP:
    kernel = random_kernel(np.random.default_rng(7))
    lam = np.concatenate([np.linspace(0.1, 0.8, 6 - len(last)), last])
    return SpectralDPP(lam, kernel.eigenvectors)


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


@pytest.mark.slow
@every_learner
def test_items_that_never_occur_get_probability_exactly_zero(learner: str) -> None:
    """Except from a Wishart start under the paper's learners, under which they only become ever less likely."""
    small = make_registries("carseats", 30, rng=3)
    never = small.frequencies() == 0
    assert never.sum() > 5
    for init in ("moments",) if learner in THE_PAPER_S else ("moments", "wishart"):
        dpp = dl.fit_dpp(small, learner, init=init, shrinkage=0, rng=0).model
        np.testing.assert_array_equal(dpp.marginals() == 0, never)
        assert all(dpp.log_prob([item]) == -np.inf for item in np.array(dpp.items)[never])
