"""The returned model is never worse on the training objective than independent items or `start`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, FitResult, Kernel, Stop
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import BORDER
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.symmetric.table import LEARNERS, learners_of
from helpers.problems import PROBLEMS, random_kernel, sampled, shopping

THE_PAPER_S = {"em", "k-ascent"}
OURS = sorted(set(learners_of("dpp", whole_kernel=True)) - THE_PAPER_S)
DATA = {**PROBLEMS, "shopping": shopping(n=300)}

pytestmark = pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")


def assert_not_below(result: FitResult, learned_from: Baskets, nonempty: bool = False) -> None:
    yardstick = Problem(learned_from, None, nonempty).log_likelihood(independent(learned_from, nonempty=nonempty))
    certain = np.count_nonzero(learned_from.frequencies() > 1 - BORDER)  # a fit leaves these at 1 − 1e-5
    assert result.history.log_likelihood[-1] >= yardstick + certain * np.log1p(-BORDER) - 1e-11 * max(1, abs(yardstick))


@pytest.mark.slow
@pytest.mark.parametrize("learner", OURS)
def test_no_fit_ends_below_independent_items(learner: str) -> None:
    for baskets in DATA.values():
        for init, max_iter in (("wishart", 1), ("wishart", 3), ("moments", 200)):
            result = dl.fit_dpp(baskets, learner, init=init, shrinkage=0, rng=0, max_iter=max_iter)
            assert_not_below(result, baskets.deduplicated())
            assert result.log_likelihood == pytest.approx(result.model.log_likelihood(baskets), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [name for name in OURS if LEARNERS[name].learns_nonempty])
def test_no_fit_to_nonempty_baskets_ends_below_independent_items(learner: str) -> None:
    for data in ("attracting", "shopping"):
        baskets = DATA[data].subset(DATA[data].sizes > 0)
        for max_iter in (3, 200):
            result = dl.fit_dpp(baskets, learner, shrinkage=0, nonempty=True, rng=0, max_iter=max_iter)
            assert_not_below(result, baskets.deduplicated(), nonempty=True)


def test_an_item_in_every_basket_is_not_made_certain() -> None:
    result = dl.fit_dpp(PROBLEMS["an item that always occurs"], "mm", init="wishart", shrinkage=0, rng=0, max_iter=1)
    assert result.model.learned.start == "independent"
    assert result.model.log_prob([1]) > -20


def test_without_iterations_the_start_is_returned_even_below_independent_items() -> None:
    for learner in OURS:
        result = dl.fit_dpp(DATA["shopping"], learner, init="wishart", shrinkage=0, rng=0, max_iter=0, nonempty=False)
        assert (result.n_iter, result.stop, result.model.learned.start) == (0, Stop.MAX_ITER, "wishart")
        assert result.log_likelihood < result.independent_log_likelihood


def test_a_fit_cut_short_below_independent_items_returns_them_and_says_so() -> None:
    result = dl.fit_dpp(DATA["shopping"], init="wishart", shrinkage=0, rng=0, max_iter=1, nonempty=False)
    assert (result.stop, result.converged) == (Stop.MAX_ITER, False)
    assert result.model.learned.start == "independent"
    np.testing.assert_allclose(result.model.marginals(), DATA["shopping"].frequencies())
    assert result.restarts[0].start == "wishart"
    assert result.restarts[0].log_likelihood < result.log_likelihood
    assert len(result.history) == result.restarts[0].n_iter + 2  # the run as it was, and then what is returned


@pytest.mark.parametrize("learner", sorted(THE_PAPER_S))
def test_the_learners_of_the_paper_may_end_below_independent_items(learner: str) -> None:
    result = dl.fit_dpp(DATA["shopping"], learner, init="wishart", rng=0, max_iter=3)
    assert result.n_iter == 3
    assert result.log_likelihood < result.independent_log_likelihood


BASKETS = sampled(0)


def stuck_at(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make "lbfgs" a learner that converges to this kernel, whatever it starts from."""

    def steps(start: Kernel, problem: Problem) -> Iterator[Step]:
        return itertools.repeat(Step(kernel, problem.log_likelihood(kernel), 0.0, 1))

    monkeypatch.setitem(LEARNERS, "lbfgs", replace(LEARNERS["lbfgs"], steps=steps))


def test_where_learning_converges_to_less_the_better_of_start_and_independent_items_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best, poor = dl.fit_dpp(BASKETS, shrinkage=0), random_kernel(np.random.default_rng(9))
    worst = Kernel(np.full(6, 0.9), np.eye(6))
    stuck_at(worst, monkeypatch)
    for start, name, expected in (
        (None, "independent", best.independent_log_likelihood),
        (best, "given", best.log_likelihood),
        (poor, "independent", best.independent_log_likelihood),
    ):
        result = dl.fit_dpp(BASKETS, shrinkage=0, start=start)
        assert (result.stop, result.converged, result.model.learned.start) == (Stop.NOT_BETTER, False, name)
        assert result.log_likelihood == pytest.approx(expected, abs=1e-6)
        assert result.model.log_likelihood(BASKETS) == pytest.approx(expected, abs=1e-6)
        assert result.restarts[0].stop is Stop.TOLERANCE
