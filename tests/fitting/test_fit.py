"""fit: the result is honest about itself, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import dpplearn as dl
from dpplearn import DPP, Baskets, FitProgress, InputError, Kernel, Stop
from dpplearn.arrays import Seed
from dpplearn.datasets.registries import make_registries
from dpplearn.learners.registry import learners_of
from dpplearn.learners.stopping import still_to_gain
from helpers.problems import PROBLEMS, random_kernel, sampled
from helpers.registries import registry

fit = partial(dl.fit, shrinkage=0)  # to maximum likelihood, which is what these tests are about

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
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reported_likelihood_is_that_of_the_model_returned(problem: str, learner: str) -> None:
    baskets = PROBLEMS[problem]
    result = fit(baskets, learner, rng=0, max_iter=15)
    assert result.log_likelihood == pytest.approx(result.dpp.log_likelihood(baskets), rel=1e-10, abs=1e-12)
    assert result.log_likelihood == result.history.log_likelihood[-1]
    assert "log-likelihood" in repr(result)


def test_history_starts_with_the_start_and_has_one_entry_an_iteration() -> None:
    start = random_kernel(np.random.default_rng(1))
    result = fit(BASKETS, start=start, max_iter=7, tol=0, model="dpp", nonempty=False)
    assert result.history.log_likelihood[0] == pytest.approx(DPP(start).log_likelihood(BASKETS))
    assert result.history.step_size[0] == 0
    assert {len(result.history.log_likelihood), len(result.history.seconds), len(result.history.step_size)} == {8}
    assert np.all(np.diff(result.history.seconds) > 0)
    assert result.n_iter == 7
    assert result.stop is Stop.MAX_ITER
    assert not result.converged


def test_converged_means_the_tolerance_was_met() -> None:
    result = fit(BASKETS, "em", "wishart", rng=0)
    assert result.stop is Stop.TOLERANCE
    assert result.converged
    before, after = result.history.log_likelihood[-2:]
    assert abs(after - before) <= 1e-4 * abs(before)
    result = fit(BASKETS, model="dpp", nonempty=False)
    assert result.converged
    assert still_to_gain(result.history.log_likelihood) <= 1e-4 < still_to_gain(result.history.log_likelihood[:-1])


def test_no_iteration_returns_the_start() -> None:
    start = random_kernel(np.random.default_rng(1))
    result = fit(BASKETS, "em", start=start, max_iter=0)
    np.testing.assert_array_equal(result.kernel.eigenvalues, start.eigenvalues)
    assert len(result.history) == 1
    np.testing.assert_allclose(
        fit(BASKETS, start=start, max_iter=0, model="dpp", nonempty=False).kernel.K, start.K, atol=1e-12
    )


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    def of(seed: Seed) -> dl.FitResult:
        return fit(BASKETS, init="wishart", rng=seed, max_iter=5, nonempty=False)

    same_model(of(3), of(3))
    same_model(of(3), of(np.random.default_rng(3)))
    assert of(3).log_likelihood != of(4).log_likelihood
    assert of(None).log_likelihood != of(None).log_likelihood


def test_global_random_state_is_neither_used_nor_moved() -> None:
    np.random.seed(0)  # noqa: NPY002  # the state whose use would be a defect
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fit(BASKETS, rng=0, max_iter=2, model="dpp", nonempty=False).dpp.sample(5)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_row_order_and_repetition_against_weights_change_nothing() -> None:
    order = np.random.default_rng(5).permutation(len(BASKETS))
    same_model(
        fit(BASKETS, rng=0, max_iter=5, model="dpp", nonempty=False),
        fit(BASKETS.subset(order), rng=0, max_iter=5, model="dpp", nonempty=False),
    )
    same_model(
        fit(BASKETS, rng=0, max_iter=5, model="dpp", nonempty=False),
        fit(BASKETS.deduplicated(), rng=0, max_iter=5, model="dpp", nonempty=False),
    )


def test_the_independent_model_stands_beside() -> None:
    m = BASKETS.frequencies()
    result = fit(BASKETS, rng=0, max_iter=3, model="dpp", nonempty=False)
    expected = float((m * np.log(m) + (1 - m) * np.log1p(-m)).sum())
    assert result.independent_log_likelihood == pytest.approx(expected)
    assert f"{expected:.4f}" in repr(result)


def test_the_best_of_several_restarts_is_returned_and_each_has_a_line() -> None:
    result = fit(BASKETS, "em", "wishart", rng=0, restarts=4)
    assert len(result.restarts) == 4
    assert {line.start for line in result.restarts} == {"wishart"}
    assert result.log_likelihood == max(line.log_likelihood for line in result.restarts)
    assert len({line.log_likelihood for line in result.restarts}) == 4
    assert repr(result).count("iterations  ") == 4


def test_a_deterministic_start_is_used_once() -> None:
    assert [
        line.start for line in fit(BASKETS, init="moments", rng=0, restarts=3, max_iter=2, nonempty=False).restarts
    ] == [
        "moments",
        "wishart",
        "wishart",
    ]
    given = fit(
        BASKETS,
        start=random_kernel(np.random.default_rng(1)),
        rng=0,
        restarts=2,
        max_iter=2,
        model="dpp",
        nonempty=False,
    )
    assert [line.start for line in given.restarts] == ["given", "wishart"]


def test_a_fitted_model_is_a_start_for_another_catalogue() -> None:
    first = fit(NAMED, "em", "wishart", rng=0)
    again = fit(NAMED, "em", start=first.dpp, max_iter=1)
    assert again.history.log_likelihood[0] == pytest.approx(first.log_likelihood)
    fewer = Baskets.from_lists([[label for label in basket if label != "item 2"] for basket in NAMED])
    more = Baskets.from_lists([[*basket, "new"] if row % 3 == 0 else basket for row, basket in enumerate(NAMED)])
    for baskets in (fewer, more):
        warm, cold = fit(baskets, "em", start=first.dpp, rng=0), fit(baskets, "em", "wishart", rng=0)
        assert warm.dpp.items == baskets.items
        assert warm.history.log_likelihood[0] > cold.history.log_likelihood[0] + 0.5
        assert warm.n_iter < cold.n_iter


def test_a_start_of_another_size_is_an_error() -> None:
    with pytest.raises(InputError, match=r"5.*6"):
        fit(BASKETS, start=random_kernel(np.random.default_rng(0), 5), model="dpp", nonempty=False)


def test_a_start_that_makes_the_data_impossible_is_an_error() -> None:
    flat = Kernel(np.array([0.5, 0, 0, 0, 0, 0]), np.eye(6))
    with pytest.raises(InputError, match="1"):
        fit(BASKETS, "em", start=flat)


def test_auto_makes_room_in_a_start_that_makes_the_data_impossible() -> None:
    flat = Kernel(np.array([0.5, 0, 0, 0, 0, 0]), np.eye(6))
    assert fit(BASKETS, start=flat, model="dpp", nonempty=False).log_likelihood == pytest.approx(
        fit(BASKETS, model="dpp", nonempty=False).log_likelihood, abs=0.01
    )


def test_the_callback_sees_every_iteration_and_can_stop() -> None:
    seen: list[FitProgress] = []

    def callback(now: FitProgress) -> bool:
        seen.append(now)
        return now.restart == 1 and now.iteration == 2

    result = fit(BASKETS, rng=0, restarts=3, max_iter=4, tol=0, callback=callback, model="dpp", nonempty=False)
    assert [(now.restart, now.iteration) for now in seen] == [*((0, i) for i in range(5)), (1, 0), (1, 1), (1, 2)]
    assert result.stop is Stop.CALLBACK
    assert len(result.restarts) == 2


def test_the_time_limit_counts_the_whole_fit() -> None:
    result = fit(BASKETS, rng=0, restarts=1000, max_seconds=0.3, tol=0, model="dpp", nonempty=False)
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


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(InputError):
        fit(Baskets.from_lists([], n_items=3), model="dpp", nonempty=False)
    with pytest.raises(InputError):
        fit(Baskets.from_lists([[0], [1]], weights=[0, 0]), model="dpp", nonempty=False)


def test_a_basket_of_weight_zero_has_no_say() -> None:
    """Not even by its size, which would raise zero eigenvalues in the moments start."""
    lists = [[1, 3], [0, 2], [0, 2]]
    without = Baskets.from_lists(lists, n_items=5)
    extra = Baskets.from_lists([*lists, range(5)], n_items=5, weights=[1, 1, 1, 0])
    for init in ("wishart", "moments"):
        same_model(
            fit(without, init=init, rng=0, max_iter=4, nonempty=False),
            fit(extra, init=init, rng=0, max_iter=4, nonempty=False),
        )


def test_plain_lists_are_accepted() -> None:
    result = fit([["crib", "monitor"], ["crib"], ["cot"]], rng=0, max_iter=3, model="dpp", nonempty=False)
    assert result.dpp.items == ("cot", "crib", "monitor")


@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
def test_all_baskets_empty_gives_the_model_that_is_always_empty() -> None:
    result = fit(PROBLEMS["all empty"], rng=0, model="dpp", nonempty=False)
    assert result.kernel.rank == 0
    assert result.log_likelihood == 0
    assert result.dpp.sample(3, rng=0) == [[], [], []]
    assert result.dpp.log_prob([1]) == -np.inf


@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
def test_one_item_learns_its_frequency() -> None:
    result = fit(PROBLEMS["one item"], rng=0, tol=1e-8, model="dpp", nonempty=False)
    assert result.dpp.marginals()[0] == pytest.approx(2 / 3)


def test_an_item_that_never_occurs_gets_probability_zero_in_the_limit() -> None:
    result = fit(PROBLEMS["an item that never occurs"], "em", "wishart", rng=0, tol=1e-12, max_iter=300)
    assert result.dpp.marginals()[5] < 1e-3


@pytest.mark.parametrize("learner", ["em", "auto"])
def test_the_kernel_that_the_baskets_were_drawn_from_is_recovered(learner: str) -> None:
    """Up to the signs that a DPP does not determine: marginals and squared couplings."""
    truth = random_kernel(np.random.default_rng(21), 5)
    baskets = Baskets.from_lists(DPP(truth).sample(50_000, rng=22), n_items=5)
    found = fit(baskets, learner, "wishart", rng=0, restarts=3, tol=1e-8, max_iter=3000).kernel
    np.testing.assert_allclose(found.K**2, truth.K**2, atol=0.02)


def test_progress_is_shown_on_standard_error_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    fit(BASKETS, rng=0, restarts=2, max_iter=3, progress=True, model="dpp", nonempty=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "learning, run 2 of 2" in captured.err
    assert "log-likelihood" in captured.err
    assert "iterations/s" in captured.err


@pytest.mark.parametrize("kind", [np.asarray, csr_array, pd.DataFrame])
def test_a_matrix_is_not_taken_for_lists_of_the_items_0_and_1(kind: Callable[[np.ndarray], object]) -> None:
    matrix = np.eye(4, dtype=int)
    with pytest.raises(InputError):
        fit(kind(matrix), model="dpp", nonempty=False)


def test_an_earlier_result_is_a_start_and_anything_else_is_refused() -> None:
    first = fit(BASKETS, "em", rng=0)
    assert fit(BASKETS, "em", start=first, max_iter=0).log_likelihood == pytest.approx(first.log_likelihood)
    with pytest.raises(InputError):
        fit(BASKETS, start=np.eye(6), model="dpp", nonempty=False)


def test_without_choices_it_is_auto_from_moments() -> None:
    result = dl.fit(BASKETS, rng=0, model="dpp", nonempty=False)
    same_model(result, fit(BASKETS, "auto", "moments", shrinkage="auto", rng=0, nonempty=False))
    assert (result.dpp.learned.learner, result.dpp.learned.start) == ("auto", "moments")


@pytest.mark.parametrize("n_baskets", [300, 2000])
def test_auto_finds_better_models_than_em_where_each_stops_by_itself(n_baskets: int) -> None:
    baskets = make_registries("safety", n_baskets, rng=0)
    auto = fit(baskets, model="dpp", nonempty=False).log_likelihood
    assert auto > fit(baskets, "em", "moments").log_likelihood + 0.01
    assert auto > fit(baskets, "em", "wishart", rng=0).log_likelihood + 0.01


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_evaluations_add_up_and_a_step_takes_at_least_one(learner: str) -> None:
    seen: list[FitProgress] = []
    result = fit(BASKETS, learner, "wishart", rng=0, max_iter=12, tol=0, callback=seen.append)
    evaluations = [now.evaluations for now in seen]
    assert evaluations[0] == 1
    assert np.all(np.diff(evaluations) >= 1)
    assert result.history.evaluations[: len(seen)].tolist() == evaluations
    assert result.dpp.learned.evaluations == result.history.evaluations[-1]


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_the_callback_can_have_the_model_so_far(learner: str) -> None:
    kernels: list[Kernel] = []
    result = fit(BASKETS, learner, rng=0, max_iter=3, tol=0, callback=lambda now: kernels.append(now.kernel))
    likelihoods = [DPP(kernel).log_likelihood(BASKETS) for kernel in kernels]
    np.testing.assert_allclose(likelihoods, result.history.log_likelihood, rtol=1e-9)
    np.testing.assert_array_equal(kernels[-1].eigenvalues, result.kernel.eigenvalues)


@pytest.mark.parametrize("category", ["safety", "carseats", "furniture"])
def test_auto_is_soon_near_the_best_model_of_the_original_registries(shared: Path, category: str) -> None:
    train, _ = registry(shared, category).split(0.7, rng=0)
    best = fit(train, tol=1e-7, max_iter=5000, model="dpp", nonempty=False).log_likelihood
    result = fit(train, model="dpp", nonempty=False)
    near = result.history.log_likelihood >= best - 0.003
    assert result.history.evaluations[near.argmax()] <= 40
    assert near[-1]
    assert result.log_likelihood >= best - 2e-4


def test_going_on_from_what_auto_found_loses_no_more_than_the_tolerance() -> None:
    """Although the eigenvalues that it had lost are raised again to begin with."""
    for baskets in (BASKETS, make_registries("safety", 300, rng=0)):
        first = fit(baskets, tol=1e-5, model="dpp", nonempty=False)
        assert (
            fit(baskets, start=first, tol=1e-5, model="dpp", nonempty=False).log_likelihood
            >= first.log_likelihood - 1e-5
        )


@pytest.mark.parametrize("max_iter", [0, 2])
def test_a_fit_cut_short_is_never_below_the_model_it_was_given(max_iter: int) -> None:
    """auto begins a little below, because it gives eigenvalues at zero another chance."""
    data = make_registries("safety", 300, rng=0)
    best = fit(data, model="dpp", nonempty=False)
    again = fit(data, start=best, max_iter=max_iter, model="dpp", nonempty=False)
    assert again.log_likelihood >= best.log_likelihood - 1e-9
    assert again.log_likelihood == pytest.approx(again.dpp.log_likelihood(data), abs=1e-9)
    assert again.stop is Stop.MAX_ITER
