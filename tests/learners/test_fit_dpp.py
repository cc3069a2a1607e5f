"""fit_dpp: likelihoods and history, starts, restarts, limits, the promise not to be worse; and fits over parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import dpplearn as dl
from dpplearn import DPP, Baskets, FitProgress, InputError, Parts, Stop
from dpplearn.arrays import Seed
from dpplearn.datasets.registries import make_registries
from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.learners.loop import Step
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.utils import memory
from helpers.parts import in_parts
from helpers.problems import PROBLEMS, random_kernel, sampled, shopping
from helpers.registries import registry

fit_dpp = partial(dl.fit_dpp, shrinkage=0, nonempty=False)  # maximum likelihood

BASKETS = sampled(0, n=300)
DATA = {**PROBLEMS, "shopping": shopping(n=300)}
FOLLOW_THE_PAPER = {"em", "k-ascent"}
OTHERS = sorted(set(LEARNERS) - FOLLOW_THE_PAPER)

pytestmark = pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")


def same_model(a: dl.FitResult, b: dl.FitResult) -> None:
    np.testing.assert_array_equal(a.model.kernel.eigenvalues, b.model.kernel.eigenvalues)
    np.testing.assert_array_equal(a.model.kernel.eigenvectors, b.model.kernel.eigenvectors)
    np.testing.assert_array_equal(a.history.log_likelihood, b.history.log_likelihood)


@pytest.mark.parametrize("learner", LEARNERS)
def test_likelihoods_and_evaluations_of_the_result_are_those_of_its_models(learner: str) -> None:
    seen: list[FitProgress] = []
    result = fit_dpp(BASKETS, learner, rng=0, max_iter=6, tol=0, callback=seen.append)
    found = [now.model.log_likelihood(BASKETS) for now in seen]
    np.testing.assert_allclose(found, result.history.log_likelihood, rtol=1e-9)
    assert result.log_likelihood == pytest.approx(result.model.log_likelihood(BASKETS), rel=1e-10)
    evaluations = [now.evaluations for now in seen]
    assert evaluations[0] == 1
    assert np.all(np.diff(evaluations) >= 1)
    assert result.history.evaluations.tolist() == evaluations
    assert result.model.learned.evaluations == evaluations[-1]


def test_no_iteration_returns_the_start_even_below_independent_items() -> None:
    start = DPP(random_kernel(np.random.default_rng(1)))
    result = fit_dpp(BASKETS, "em", start=start, max_iter=0)
    np.testing.assert_array_equal(result.model.kernel.eigenvalues, start.kernel.eigenvalues)
    assert len(result.history) == 1
    again = dl.fit_dpp(BASKETS, start=start, max_iter=0)
    assert again.shrinkage == 0
    np.testing.assert_allclose(again.model.kernel.K, start.kernel.K, atol=1e-12)
    for learner in OTHERS:
        result = fit_dpp(DATA["shopping"], learner, init="wishart", rng=0, max_iter=0)
        assert (result.n_iter, result.stop, result.model.learned.start) == (0, Stop.MAX_ITER, "wishart")
        assert result.log_likelihood < result.independent_log_likelihood


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    def of(seed: Seed) -> dl.FitResult:
        return fit_dpp(BASKETS, init="wishart", rng=seed, max_iter=5)

    same_model(of(3), of(3))
    same_model(of(3), of(np.random.default_rng(3)))
    assert of(3).log_likelihood != of(4).log_likelihood
    assert of(None).log_likelihood != of(None).log_likelihood


def test_row_order_repetition_instead_of_weights_and_baskets_of_weight_zero_change_nothing() -> None:
    order = np.random.default_rng(5).permutation(len(BASKETS))
    expected = fit_dpp(BASKETS, rng=0, max_iter=5)
    for other in (BASKETS.subset(order), BASKETS.deduplicated()):
        same_model(expected, fit_dpp(other, rng=0, max_iter=5))
    lists = [[1, 3], [0, 2], [0, 2]]
    without = Baskets.from_lists(lists, n_items=5)
    extra = Baskets.from_lists([*lists, range(5)], n_items=5, weights=[1, 1, 1, 0])
    same_model(fit_dpp(without, rng=0, max_iter=4), fit_dpp(extra, rng=0, max_iter=4))


def test_the_best_of_several_restarts_is_returned_and_each_has_a_line() -> None:
    result = fit_dpp(BASKETS, "em", init="wishart", rng=0, restarts=4)
    assert {line.start for line in result.restarts} == {"wishart"}
    assert result.log_likelihood == pytest.approx(max(line.log_likelihood for line in result.restarts))
    assert len({line.log_likelihood for line in result.restarts}) == 4
    for options, first in (({}, "moments"), ({"start": DPP(random_kernel(np.random.default_rng(1)))}, "given")):
        runs = fit_dpp(BASKETS, **options, rng=0, restarts=2, max_iter=2).restarts
        assert [line.start for line in runs] == [first, "wishart"]  # a deterministic start is used once


def test_a_start_with_impossible_baskets_is_refused_by_em_and_repaired_by_lbfgs() -> None:
    flat = DPP(SpectralDPP(np.array([0.5, 0, 0, 0, 0, 0]), np.eye(6)))
    with pytest.raises(InputError):
        fit_dpp(BASKETS, "em", start=flat)
    assert fit_dpp(BASKETS, start=flat).log_likelihood == pytest.approx(fit_dpp(BASKETS).log_likelihood, abs=0.01)


def test_the_callback_sees_every_iteration_and_can_stop() -> None:
    seen: list[FitProgress] = []

    def callback(now: FitProgress) -> bool:
        seen.append(now)
        return now.restart == 1 and now.iteration == 2

    result = fit_dpp(BASKETS, rng=0, restarts=3, max_iter=4, tol=0, callback=[callback, lambda now: None])
    assert [(now.restart, now.iteration) for now in seen] == [*((0, i) for i in range(5)), (1, 0), (1, 1), (1, 2)]
    assert result.stop is Stop.CALLBACK
    assert len(result.restarts) == 2


def test_the_time_limit_counts_the_whole_fit() -> None:
    result = fit_dpp(BASKETS, rng=0, restarts=1000, max_seconds=0.3, tol=0)
    assert result.stop is Stop.MAX_SECONDS
    assert len(result.restarts) < 1000
    for learner in LEARNERS:
        result = fit_dpp(BASKETS, learner, restarts=2, max_seconds=1e-9)
        assert (result.stop, len(result.restarts), result.converged) == (Stop.MAX_SECONDS, 1, False)
        assert result.restarts[0].n_iter == 0
        if learner not in FOLLOW_THE_PAPER:
            assert result.log_likelihood >= result.independent_log_likelihood - 1e-9


def test_invalid_options_and_data_are_refused() -> None:
    """A matrix is not taken for lists of the items 0 and 1."""
    for name, value in (
        ("learner", "guess"),
        ("init", "zeros"),
        *(("restarts", value) for value in (0, 2.5)),
        *(("tol", value) for value in ("a", -1.0, float("nan"))),
        *(("validation", value) for value in (-0.1, 1, 1.5, np.nan, "a", True)),
        ("max_iter", -1),
        ("max_seconds", 0.0),
        *(("threads", value) for value in (0, 1.5)),
        ("nonempty", "maybe"),
        *(("shrinkage", value) for value in (-0.1, 1.5, np.inf, np.nan, True, "strong", [0.1])),
        ("start", np.eye(6)),
    ):
        with pytest.raises(InputError, match=name):
            dl.fit_dpp(BASKETS, **{name: value})
    nothing = [Baskets.from_lists([], n_items=3), Baskets.from_lists([[0], [1]], weights=[0, 0])]
    for baskets in (*nothing, *(kind(np.eye(4, dtype=int)) for kind in (np.asarray, csr_array, pd.DataFrame))):
        with pytest.raises(InputError):
            fit_dpp(baskets)


def test_all_baskets_empty_gives_the_model_that_is_always_empty() -> None:
    result = fit_dpp(PROBLEMS["all empty"], rng=0)
    assert result.model.kernel.rank == 0
    assert result.log_likelihood == 0
    assert result.model.sample(3, rng=0) == [[], [], []]
    assert result.model.log_prob([1]) == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("category", ["safety", "carseats", "furniture"])
def test_the_default_is_near_the_best_model_of_the_registries_in_40_evaluations(shared: Path, category: str) -> None:
    train, _ = registry(shared, category).split(0.7, rng=0)
    best = fit_dpp(train, tol=1e-7, max_iter=5000).log_likelihood
    result = fit_dpp(train)
    near = result.history.log_likelihood >= best - 0.003
    assert result.history.evaluations[near.argmax()] <= 40
    assert near[-1]
    assert result.log_likelihood >= best - 2e-4


# The returned model is never worse on the training objective than independent items or `start`.


@pytest.mark.slow
@pytest.mark.parametrize("learner", OTHERS)
def test_no_fit_ends_below_independent_items(learner: str) -> None:
    for name, baskets in DATA.items():
        for nonempty in (False, True) if name == "shopping" and LEARNERS[learner].can_be_nonempty else (False,):
            for init, max_iter in (("wishart", 1), ("moments", 200)):
                result = fit_dpp(baskets, learner, init=init, nonempty=nonempty, rng=0, max_iter=max_iter)
                problem = SymmetricProblem(baskets.deduplicated(), None, nonempty)
                baseline = problem.log_likelihood(independent(baskets, nonempty=nonempty))
                certain = np.count_nonzero(baskets.frequencies() > 1 - BORDER)  # a fit leaves these at 1 − 1e-5
                least = baseline + certain * np.log1p(-BORDER) - 1e-11 * max(1, abs(baseline))
                assert result.history.log_likelihood[-1] >= least


def test_an_item_in_every_basket_is_not_made_certain() -> None:
    result = fit_dpp(PROBLEMS["an item that always occurs"], "mm", init="wishart", rng=0, max_iter=1)
    assert result.model.learned.start == "independent"
    assert result.model.log_prob([1]) > -20


def test_a_fit_from_a_start_is_never_below_it() -> None:
    """L-BFGS raises eigenvalues at zero first, which lowers the likelihood."""
    data = make_registries("safety", 300, rng=0)
    best = fit_dpp(data)
    for max_iter in (0, 2, 1000):
        again = fit_dpp(data, start=best, max_iter=max_iter)
        assert again.log_likelihood >= best.log_likelihood - 1e-9
        assert again.log_likelihood == pytest.approx(again.model.log_likelihood(data), abs=1e-9)


def test_where_learning_converges_to_less_the_better_of_start_and_independent_items_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best, poor = fit_dpp(BASKETS), DPP(random_kernel(np.random.default_rng(9)))
    worst = SpectralDPP(np.full(6, 0.9), np.eye(6))

    def stuck(start: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
        return itertools.repeat(Step(worst, problem.log_likelihood(worst), 0.0, 1))

    monkeypatch.setitem(LEARNERS, "lbfgs", replace(LEARNERS["lbfgs"], steps=stuck))
    for start, name, expected in (
        (None, "independent", best.independent_log_likelihood),
        (best, "given", best.log_likelihood),
        (poor, "independent", best.independent_log_likelihood),
    ):
        result = fit_dpp(BASKETS, start=start)
        assert (result.stop, result.converged, result.model.learned.start) == (Stop.NOT_BETTER, False, name)
        assert result.log_likelihood == pytest.approx(expected, abs=1e-6)
        assert result.model.log_likelihood(BASKETS) == pytest.approx(expected, abs=1e-6)
        assert result.restarts[0].stop is Stop.TOLERANCE


def test_work_that_exceeds_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of 100,000 items alone takes 80 GB."""
    monkeypatch.setattr(memory, "memory_limit", lambda: 64e9)
    large, all_items = Baskets.from_lists([[0, 1], [1, 99_999], [2]]), Baskets.from_lists([range(100_000)])
    for work in (
        lambda: dl.fit_dpp(large),
        lambda: dl.fit_dpp(large, "em"),
        lambda: dl.fit_quality(large),
        lambda: dl.diagnose(Baskets.together([large, all_items]), most_items=100_000),
        lambda: dl.cross_validate(large, {"dpp": {"learner": "em"}}, folds=2),
    ):
        with pytest.raises(InputError):
            work()


# Baskets in parts give the same model as in one piece.

PARTS = in_parts(BASKETS)


@pytest.mark.parametrize("learner", [*LEARNERS, "mixture"])
def test_every_learner_takes_the_same_steps_over_parts(learner: str) -> None:
    fit = partial(dl.fit_dpp, learner=learner, shrinkage=0, max_iter=4)
    if learner == "mixture":
        fit = partial(dl.fit, segments=2, max_iter=125)
    parts, whole = (fit(data, rng=0) for data in (PARTS, BASKETS))
    np.testing.assert_allclose(parts.history.log_likelihood, whole.history.log_likelihood, atol=1e-7)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-7)
    assert parts.independent_log_likelihood == pytest.approx(whole.independent_log_likelihood, abs=1e-12)
    assert (parts.model.learned.n_baskets, parts.model.learned.weight) == (300, 300.0)
    for name in ("item_weights", "pairs", "pair_weights"):
        np.testing.assert_array_equal(*(getattr(each.model.training, name) for each in (parts, whole)))


def test_shrinkage_uses_the_frequencies_of_all_parts() -> None:
    parts, whole = (dl.fit_dpp(data, "em", shrinkage=0.5, max_iter=5) for data in (PARTS, BASKETS))
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-9)
    independent = [dl.fit_dpp(data, "em", shrinkage=1).model.kernel.eigenvalues for data in (PARTS, BASKETS)]
    np.testing.assert_allclose(*independent, rtol=1e-12)

    default = dl.fit_dpp(PARTS, max_iter=3)
    assert (default.shrinkage, default.model.learned.shrinkage_chosen) == (0, False)


def test_the_validation_set_is_a_fraction_of_every_part() -> None:
    result = dl.fit_dpp(PARTS, "em", rng=1, validation=0.2, max_iter=4)
    assert result.model.training is not None
    assert result.model.training.weight == 300
    assert len(result.history) > 1
    assert result.model.learned.validation_log_likelihood is not None
    single = Parts.of([Baskets.from_lists([[0]], n_items=2)] * 3)
    with pytest.raises(InputError, match=r"0.*3"):
        dl.fit_dpp(single, "em", validation=0.2)


def test_options_that_need_all_baskets_in_one_piece_are_refused() -> None:
    with pytest.raises(InputError, match="'auto'"):
        dl.fit_dpp(PARTS, shrinkage="auto")
    many = Parts.of([Baskets.from_lists([[0, 1]], n_items=301)])
    with pytest.raises(InputError, match=r"300.*301"):
        dl.fit(many)
    with pytest.raises(InputError):
        dl.fit(Parts.of([Baskets.from_lists([], n_items=2)]))
