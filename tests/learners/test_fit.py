"""fit: likelihoods and history of the result, starts, restarts, limits and options."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dpplearn.learners.registry import learners_of
from scipy.sparse import csr_array

import dpplearn as dl
from dpplearn import DPP, Baskets, FitProgress, InputError, Kernel, Stop, fit_dpp
from dpplearn.arrays import Seed
from dpplearn.datasets.registries import make_registries
from dpplearn.learners.loop import still_to_gain
from helpers.problems import PROBLEMS, random_kernel, sampled
from helpers.registries import registry

fit = partial(dl.fit, shrinkage=0)  # maximum likelihood
fit_dpp = partial(fit, model="dpp", nonempty=False)

BASKETS = sampled(0, n=300)
NAMED = Baskets.from_lists(
    [[f"item {i}" for i in basket] for basket in BASKETS], items=[f"item {i}" for i in range(BASKETS.n_items)]
)


def same_model(a: dl.FitResult, b: dl.FitResult) -> None:
    np.testing.assert_array_equal(a.kernel.eigenvalues, b.kernel.eigenvalues)
    np.testing.assert_array_equal(a.kernel.eigenvectors, b.kernel.eigenvectors)
    np.testing.assert_array_equal(a.history.log_likelihood, b.history.log_likelihood)
    np.testing.assert_array_equal(a.history.step_size, b.history.step_size)


@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_likelihoods_and_evaluations_of_the_result_are_those_of_its_kernels(learner: str) -> None:
    for baskets in PROBLEMS.values():
        result = fit_dpp(baskets, learner, rng=0, max_iter=15)
        assert result.log_likelihood == pytest.approx(result.model.log_likelihood(baskets), rel=1e-10, abs=1e-12)
        assert result.log_likelihood == result.history.log_likelihood[-1]
    seen: list[FitProgress] = []
    result = fit_dpp(BASKETS, learner, rng=0, max_iter=6, tol=0, callback=seen.append)
    found = [DPP(now.kernel).log_likelihood(BASKETS) for now in seen]
    np.testing.assert_allclose(found, result.history.log_likelihood, rtol=1e-9)
    evaluations = [now.evaluations for now in seen]
    assert evaluations[0] == 1
    assert np.all(np.diff(evaluations) >= 1)
    assert result.history.evaluations.tolist() == evaluations
    assert result.model.learned.evaluations == evaluations[-1]


def test_history_starts_with_the_start_and_has_one_entry_an_iteration() -> None:
    start = random_kernel(np.random.default_rng(1))
    result = fit_dpp(BASKETS, start=start, max_iter=7, tol=0)
    assert result.history.log_likelihood[0] == pytest.approx(DPP(start).log_likelihood(BASKETS))
    assert result.history.step_size[0] == 0
    assert {len(result.history.log_likelihood), len(result.history.seconds), len(result.history.step_size)} == {8}
    assert np.all(np.diff(result.history.seconds) > 0)
    assert result.n_iter == 7
    assert result.stop is Stop.MAX_ITER
    assert not result.converged


def test_converged_means_the_tolerance_was_met() -> None:
    result = fit_dpp(BASKETS, "em", init="wishart", rng=0)
    assert result.stop is Stop.TOLERANCE
    assert result.converged
    before, after = result.history.log_likelihood[-2:]
    assert abs(after - before) <= 1e-4 * abs(before)
    result = fit_dpp(BASKETS)
    assert result.converged
    assert still_to_gain(result.history.log_likelihood) <= 1e-4 < still_to_gain(result.history.log_likelihood[:-1])


def test_no_iteration_returns_the_start() -> None:
    start = random_kernel(np.random.default_rng(1))
    result = fit_dpp(BASKETS, "em", start=start, max_iter=0)
    np.testing.assert_array_equal(result.model.kernel.eigenvalues, start.eigenvalues)
    assert len(result.history) == 1
    np.testing.assert_allclose(fit_dpp(BASKETS, start=start, max_iter=0).kernel.K, start.K, atol=1e-12)


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    def of(seed: Seed) -> dl.FitResult:
        return fit_dpp(BASKETS, init="wishart", rng=seed, max_iter=5, nonempty=False)

    same_model(of(3), of(3))
    same_model(of(3), of(np.random.default_rng(3)))
    assert of(3).log_likelihood != of(4).log_likelihood
    assert of(None).log_likelihood != of(None).log_likelihood


def test_global_random_state_is_neither_used_nor_moved() -> None:
    np.random.seed(0)  # noqa: NPY002  # the state whose use would be a defect
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fit_dpp(BASKETS, rng=0, max_iter=2).dpp.sample(5)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_row_order_and_repetition_instead_of_weights_change_nothing() -> None:
    order = np.random.default_rng(5).permutation(len(BASKETS))
    expected = fit_dpp(BASKETS, rng=0, max_iter=5)
    for other in (BASKETS.subset(order), BASKETS.deduplicated()):
        same_model(expected, fit_dpp(other, rng=0, max_iter=5))


def test_the_likelihood_of_independent_items_is_reported() -> None:
    m = BASKETS.frequencies()
    result = fit_dpp(BASKETS, rng=0, max_iter=3)
    expected = float((m * np.log(m) + (1 - m) * np.log1p(-m)).sum())
    assert result.independent_log_likelihood == pytest.approx(expected)


def test_the_best_of_several_restarts_is_returned_and_each_has_a_line() -> None:
    result = fit_dpp(BASKETS, "em", init="wishart", rng=0, restarts=4)
    assert len(result.restarts) == 4
    assert {line.start for line in result.restarts} == {"wishart"}
    assert result.log_likelihood == max(line.log_likelihood for line in result.restarts)
    assert len({line.log_likelihood for line in result.restarts}) == 4
    first = random_kernel(np.random.default_rng(1))
    for options, names in (
        ({"init": "moments"}, ["moments", "wishart"]),
        ({"start": first}, ["given", "wishart"]),
    ):
        runs = fit_dpp(BASKETS, **options, rng=0, restarts=2, max_iter=2).restarts
        assert [line.start for line in runs] == names  # a deterministic start is used once


def test_a_fitted_model_is_a_start_for_another_catalogue() -> None:
    first = fit_dpp(NAMED, "em", init="wishart", rng=0)
    again = fit_dpp(NAMED, "em", start=first.model, max_iter=1)
    assert again.history.log_likelihood[0] == pytest.approx(first.log_likelihood)
    fewer = Baskets.from_lists([[label for label in basket if label != "item 2"] for basket in NAMED])
    more = Baskets.from_lists([[*basket, "new"] if row % 3 == 0 else basket for row, basket in enumerate(NAMED)])
    for baskets in (fewer, more):
        warm, cold = fit_dpp(baskets, "em", start=first.model, rng=0), fit_dpp(baskets, "em", init="wishart", rng=0)
        assert warm.model.items == baskets.items
        assert warm.history.log_likelihood[0] > cold.history.log_likelihood[0] + 0.5
        assert warm.n_iter < cold.n_iter


def test_a_start_with_impossible_baskets_is_refused_by_em_and_repaired_by_auto() -> None:
    flat = Kernel(np.array([0.5, 0, 0, 0, 0, 0]), np.eye(6))
    with pytest.raises(InputError):
        fit_dpp(BASKETS, "em", start=flat)
    assert fit_dpp(BASKETS, start=flat).log_likelihood == pytest.approx(fit_dpp(BASKETS).log_likelihood, abs=0.01)


def test_the_callback_sees_every_iteration_and_can_stop() -> None:
    seen: list[FitProgress] = []

    def callback(now: FitProgress) -> bool:
        seen.append(now)
        return now.restart == 1 and now.iteration == 2

    result = fit_dpp(BASKETS, rng=0, restarts=3, max_iter=4, tol=0, callback=callback)
    assert [(now.restart, now.iteration) for now in seen] == [*((0, i) for i in range(5)), (1, 0), (1, 1), (1, 2)]
    assert result.stop is Stop.CALLBACK
    assert len(result.restarts) == 2


def test_the_time_limit_counts_the_whole_fit() -> None:
    result = fit_dpp(BASKETS, rng=0, restarts=1000, max_seconds=0.3, tol=0)
    assert result.stop is Stop.MAX_SECONDS
    assert len(result.restarts) < 1000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learner": "guess"}, r"learner.*'guess'"),
        ({"init": "zeros"}, r"init.*'zeros'"),
        ({"restarts": 0}, r"restarts.*0"),
        ({"restarts": 2.5}, r"restarts.*2.5"),
        ({"tol": "a"}, r"tol.*'a'"),
        ({"threads": 1.5}, r"threads.*1.5"),
        ({"tol": -1.0}, r"tol.*-1.0"),
        ({"tol": float("nan")}, r"tol.*nan"),
        ({"max_iter": -1}, r"max_iter.*-1"),
        ({"max_seconds": 0.0}, r"max_seconds.*0.0"),
        ({"threads": 0}, r"threads.*0"),
    ],
)
def test_wrong_options_say_what_was_expected(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(BASKETS, **wrong)


@pytest.mark.parametrize(
    "baskets",
    [
        Baskets.from_lists([], n_items=3),
        Baskets.from_lists([[0], [1]], weights=[0, 0]),
        *(kind(np.eye(4, dtype=int)) for kind in (np.asarray, csr_array, pd.DataFrame)),
    ],
)
def test_matrices_and_data_without_weight_are_refused(baskets: Any) -> None:
    """A matrix is not taken for lists of the items 0 and 1."""
    with pytest.raises(InputError):
        fit_dpp(baskets)


def test_a_basket_of_weight_zero_has_no_influence() -> None:
    """Its size would raise zero eigenvalues in the initial kernel from moments."""
    lists = [[1, 3], [0, 2], [0, 2]]
    without = Baskets.from_lists(lists, n_items=5)
    extra = Baskets.from_lists([*lists, range(5)], n_items=5, weights=[1, 1, 1, 0])
    for init in ("wishart", "moments"):
        same_model(
            fit_dpp(without, init=init, rng=0, max_iter=4, nonempty=False),
            fit_dpp(extra, init=init, rng=0, max_iter=4, nonempty=False),
        )


@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
def test_all_baskets_empty_gives_the_model_that_is_always_empty() -> None:
    result = fit_dpp(PROBLEMS["all empty"], rng=0)
    assert result.model.kernel.rank == 0
    assert result.log_likelihood == 0
    assert result.model.sample(3, rng=0) == [[], [], []]
    assert result.model.log_prob([1]) == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["em", "auto"])
def test_the_kernel_that_the_baskets_were_drawn_from_is_recovered(learner: str) -> None:
    """Signs of off-diagonal entries are not identifiable, so squares are compared."""
    truth = random_kernel(np.random.default_rng(21), 5)
    baskets = Baskets.from_lists(DPP(truth).sample(50_000, rng=22), n_items=5)
    found = fit_dpp(baskets, learner, init="wishart", rng=0, restarts=3, tol=1e-8, max_iter=3000).model.kernel
    np.testing.assert_allclose(found.K**2, truth.K**2, atol=0.02)


def test_an_earlier_result_is_a_start_and_anything_else_is_refused() -> None:
    first = fit_dpp(BASKETS, "em", rng=0)
    assert fit_dpp(BASKETS, "em", start=first, max_iter=0).log_likelihood == pytest.approx(first.log_likelihood)
    for wrong in (np.eye(6), random_kernel(np.random.default_rng(0), 5)):
        with pytest.raises(InputError):
            fit_dpp(BASKETS, start=wrong)


def test_without_choices_it_is_auto_from_moments() -> None:
    result = dl.fit_dpp(BASKETS, rng=0, nonempty=False)
    same_model(result, fit_dpp(BASKETS, "moments", shrinkage="auto", rng=0, nonempty=False))
    assert (result.model.learned.learner, result.model.learned.start) == ("auto", "moments")


def test_auto_finds_better_models_than_em_with_default_stopping() -> None:
    baskets = make_registries("safety", 300, rng=0)
    auto = fit_dpp(baskets).log_likelihood
    assert auto > fit_dpp(baskets, "em", init="moments").log_likelihood + 0.01
    assert auto > fit_dpp(baskets, "em", init="wishart", rng=0).log_likelihood + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("category", ["safety", "carseats", "furniture"])
def test_auto_is_near_the_best_model_of_the_original_registries_in_40_evaluations(shared: Path, category: str) -> None:
    train, _ = registry(shared, category).split(0.7, rng=0)
    best = fit_dpp(train, tol=1e-7, max_iter=5000).log_likelihood
    result = fit_dpp(train)
    near = result.history.log_likelihood >= best - 0.003
    assert result.history.evaluations[near.argmax()] <= 40
    assert near[-1]
    assert result.log_likelihood >= best - 2e-4


def test_a_fit_from_a_start_is_never_below_it() -> None:
    """auto raises eigenvalues at zero first, which lowers the likelihood."""
    data = make_registries("safety", 300, rng=0)
    best = fit_dpp(data)
    for max_iter in (0, 2):
        again = fit_dpp(data, start=best, max_iter=max_iter)
        assert again.log_likelihood >= best.log_likelihood - 1e-9
        assert again.log_likelihood == pytest.approx(again.model.log_likelihood(data), abs=1e-9)
        assert again.stop is Stop.MAX_ITER
    assert fit_dpp(data, start=best).log_likelihood >= best.log_likelihood - 1e-9
