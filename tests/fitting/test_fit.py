"""fit: the result is honest about itself, and nothing is lost on the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import dpplearn as dl
from dpplearn import DPP, Baskets, FitProgress, InputError, InputWarning, Kernel, Stop
from dpplearn.arrays import Seed
from dpplearn.datasets.registries import make_registries
from dpplearn.fitting import checkpoint, phases, runs
from dpplearn.fitting.result import Agreement
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import learners_of
from dpplearn.learners.stopping import still_to_gain
from dpplearn.tools.tensor_file import read_tensors
from helpers.problems import PROBLEMS, random_kernel, sampled
from helpers.registries import registry

fit = partial(dl.fit, prior=0)  # to maximum likelihood, which is what these tests are about

BASKETS = sampled(0, n=300)
NAMED = Baskets.from_lists(
    [[f"item {i}" for i in basket] for basket in BASKETS], items=[f"item {i}" for i in range(BASKETS.n_items)]
)


class Killed(Exception):
    """Stands for a process that dies."""


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
    with pytest.raises(InputError, match="the start has 5 items, but the baskets have 6"):
        fit(BASKETS, start=random_kernel(np.random.default_rng(0), 5), model="dpp", nonempty=False)


def test_a_start_that_makes_the_data_impossible_is_an_error() -> None:
    flat = Kernel(np.array([0.5, 0, 0, 0, 0, 0]), np.eye(6))
    with pytest.raises(InputError, match=r"probability zero.*at most 1 items"):
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


def test_ctrl_c_returns_the_best_so_far() -> None:
    def interrupt(now: FitProgress) -> None:
        if now.restart == 1 and now.iteration == 3:
            raise KeyboardInterrupt

    result = fit(BASKETS, rng=0, restarts=5, callback=interrupt, model="dpp", nonempty=False)
    assert result.stop is Stop.INTERRUPTED
    assert not result.converged
    assert len(result.restarts) == 2
    assert result.log_likelihood == pytest.approx(result.dpp.log_likelihood(BASKETS))


def test_the_time_limit_counts_the_whole_fit() -> None:
    result = fit(BASKETS, rng=0, restarts=1000, max_seconds=0.3, tol=0, model="dpp", nonempty=False)
    assert result.stop is Stop.MAX_SECONDS
    assert len(result.restarts) < 1000


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
@pytest.mark.parametrize("killed_at", [(0, 0), (0, 3), (1, 0), (1, 2)])
def test_a_killed_fit_goes_on_to_the_same_result(tmp_path: Path, learner: str, killed_at: tuple[int, int]) -> None:
    def kill(now: FitProgress) -> None:
        if (now.restart, now.iteration) == killed_at:
            raise Killed

    path = tmp_path / "state"
    settings = {"learner": learner, "rng": 7, "restarts": 2, "tol": 1e-6, "max_iter": 9}
    whole = fit(BASKETS, **settings)
    with pytest.raises(Killed):
        fit(BASKETS, **settings, callback=kill, checkpoint=path, checkpoint_seconds=0)
    resumed = fit(BASKETS, **{**settings, "rng": None}, resume=path)
    same_model(whole, resumed)
    assert [(line.start, line.n_iter, line.stop) for line in whole.restarts] == [
        (line.start, line.n_iter, line.stop) for line in resumed.restarts
    ]
    assert np.all(np.diff(resumed.history.seconds) > 0)


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_a_fit_killed_after_many_steps_goes_on_to_the_same_result(tmp_path: Path, learner: str) -> None:
    """More steps than any learner remembers, and than it takes one to give up columns."""

    def kill(now: FitProgress) -> None:
        if now.iteration == 25:
            raise Killed

    path = tmp_path / "state"
    baskets = make_registries("safety", 100, rng=3)
    settings = {"learner": learner, "init": "wishart", "rng": 7, "tol": 0, "max_iter": 45}
    whole = fit(baskets, **settings)
    with pytest.raises(Killed):
        fit(baskets, **settings, callback=kill, checkpoint=path, checkpoint_seconds=0)
    resumed = fit(baskets, **{**settings, "rng": None}, resume=path)
    same_model(whole, resumed)
    np.testing.assert_array_equal(whole.history.evaluations, resumed.history.evaluations)
    assert whole.restarts[0].n_iter == 45


def test_a_checkpoint_after_an_interrupt_goes_on_as_well(tmp_path: Path) -> None:
    def interrupt(now: FitProgress) -> None:
        if now.iteration == 4:
            raise KeyboardInterrupt

    path = tmp_path / "state"
    assert (
        fit(BASKETS, rng=1, callback=interrupt, checkpoint=path, model="dpp", nonempty=False).stop is Stop.INTERRUPTED
    )
    same_model(fit(BASKETS, rng=1, model="dpp", nonempty=False), fit(BASKETS, resume=path, model="dpp", nonempty=False))


def test_a_finished_fit_resumes_to_itself_or_further_with_a_smaller_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "state"
    done = fit(BASKETS, rng=1, checkpoint=path, model="dpp", nonempty=False)
    same_model(done, fit(BASKETS, resume=path, model="dpp", nonempty=False))
    same_model(
        fit(BASKETS, rng=1, tol=1e-6, model="dpp", nonempty=False),
        fit(BASKETS, resume=path, tol=1e-6, model="dpp", nonempty=False),
    )


def test_checkpoints_are_not_written_more_often_than_asked(tmp_path: Path) -> None:
    path = tmp_path / "state"
    written = []

    def callback(now: FitProgress) -> None:
        written.append(path.stat().st_mtime_ns)

    fit(
        BASKETS,
        rng=0,
        callback=callback,
        checkpoint=path,
        checkpoint_seconds=1000,
        max_iter=6,
        tol=0,
        model="dpp",
        nonempty=False,
    )
    assert len(set(written)) == 1


def test_resuming_another_fit_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "state"
    fit(BASKETS, "em", rng=0, max_iter=2, checkpoint=path)
    with pytest.raises(InputError, match="other baskets"):
        fit(sampled(5), "em", resume=path)
    with pytest.raises(InputError, match="learner='em', not learner='k-ascent'"):
        fit(BASKETS, "k-ascent", resume=path)
    with pytest.raises(InputError, match="restarts=1, not restarts=2"):
        fit(BASKETS, "em", restarts=2, resume=path)
    model = tmp_path / "model"
    fit(BASKETS, rng=0, max_iter=1, model="dpp", nonempty=False).dpp.save(model)
    with pytest.raises(InputError, match="expected a dpplearn checkpoint file"):
        fit(BASKETS, resume=model, model="dpp", nonempty=False)


def test_a_checkpoint_that_cannot_be_written_says_so_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        fit(BASKETS, checkpoint=tmp_path / "missing" / "state", model="dpp", nonempty=False)


def test_a_full_disk_at_a_checkpoint_ends_neither_the_fit_nor_the_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old checkpoint stays whole; there is one warning each time that the disk fills up."""
    path, done = tmp_path / "state", []
    whole = fit(BASKETS, rng=1, tol=0, max_iter=9, model="dpp", nonempty=False)

    def fsync(handle: int) -> None:
        if 2 <= len(done) <= 4 or len(done) in (6, 10):  # iterations; 10 is what is written at the end
            raise OSError(errno.ENOSPC, "No space left on device")

    def resumable(now: FitProgress) -> None:
        done.append(read_tensors(path, "checkpoint")[0]["running.log_likelihood"].size - 1)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.warns(InputWarning, match="No space left on device; learning goes on, and so do attempts") as warned:
        result = fit(
            BASKETS,
            rng=1,
            tol=0,
            max_iter=9,
            checkpoint=path,
            checkpoint_seconds=0,
            callback=resumable,
            model="dpp",
            nonempty=False,
        )
    assert len(warned) == 3
    assert done == [0, 1, 1, 1, 1, 5, 5, 7, 8, 9]
    same_model(result, whole)
    monkeypatch.undo()
    same_model(fit(BASKETS, tol=0, max_iter=9, resume=path, model="dpp", nonempty=False), whole)
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_beside_a_saddle_ends_the_whole_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not just the run that was to find out whether there is something better."""
    starts = []

    def interrupt(now: FitProgress) -> None:
        starts.append(now.restart) if now.iteration == 0 else None
        if len(starts) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "off_saddle", lambda problem, kernel: kernel)
    result = fit(BASKETS, rng=0, restarts=3, callback=interrupt, model="dpp", nonempty=False)
    assert starts == [0, 0]
    assert result.stop is Stop.INTERRUPTED
    assert len(result.restarts) == 1


INTERRUPTIBLE = {
    "the last checkpoint": (checkpoint, "write_checkpoint", 12),
    "beside a saddle": (Problem, "off_saddle", 1),
    "the comparison with the start": (runs.Method, "ended_at", 1),
    "the figures of the result": (phases, "independent_log_likelihood", 1),
}
AFTER_ALL_RUNS = {"the comparison with the start", "the figures of the result"}


@pytest.mark.parametrize("what", INTERRUPTIBLE)
def test_ctrl_c_after_learning_loses_no_model(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, number = INTERRUPTIBLE[what]
    real, calls = getattr(where, name), []

    def interrupt(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    start = dl.fit(BASKETS, rng=0, prior=1, max_iter=1, nonempty=False).dpp
    settings = {"start": start, "restarts": 2, "tol": 1e9 if name == "off_saddle" else 0, "max_iter": 10, "rng": 1}
    with monkeypatch.context() as patch:
        patch.setattr(where, name, interrupt)
        result = fit(BASKETS, **settings, checkpoint=tmp_path / "state", checkpoint_seconds=0)
    assert len(calls) >= number
    assert result.stop is Stop.INTERRUPTED
    assert len(result.restarts) == (2 if what in AFTER_ALL_RUNS else 1)
    whole = fit(BASKETS, **{**settings, "restarts": len(result.restarts)})
    assert result.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learner": "guess"}, "learner is 'guess'; expected one of adam, auto, em, k-ascent, lbfgs, mm, natural-em"),
        ({"init": "zeros"}, "init is 'zeros'; expected one of moments, wishart"),
        ({"restarts": 0}, "restarts is 0; expected a whole number, 1 or more"),
        ({"restarts": 2.5}, "restarts is 2.5; expected a whole number"),
        ({"tol": "a"}, "tol is 'a'; expected a number"),
        ({"threads": 1.5}, "threads is 1.5; expected a whole number"),
        ({"tol": -1.0}, "tol is -1.0; expected 0 or more"),
        ({"tol": float("nan")}, "tol is nan; expected 0 or more"),
        ({"max_iter": -1}, "max_iter is -1; expected a whole number, 0 or more"),
        ({"max_seconds": 0.0}, "max_seconds is 0.0; expected a positive number"),
        ({"threads": 0}, "threads is 0; expected a whole number, 1 or more"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds is nan; expected 0 or more"),
        ({"checkpoint_seconds": "10"}, "checkpoint_seconds is '10'; expected a number"),
    ],
)
def test_wrong_options_say_what_was_expected(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(BASKETS, **wrong)


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing to learn from"):
        fit(Baskets.from_lists([], n_items=3), model="dpp", nonempty=False)
    with pytest.raises(InputError, match="nothing to learn from"):
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
    with pytest.raises(InputError, match=r"Baskets.from_matrix"):
        fit(kind(matrix), model="dpp", nonempty=False)


def test_an_earlier_result_is_a_start_and_anything_else_is_refused() -> None:
    first = fit(BASKETS, "em", rng=0)
    assert fit(BASKETS, "em", start=first, max_iter=0).log_likelihood == pytest.approx(first.log_likelihood)
    with pytest.raises(InputError, match="start is a ndarray; expected a Kernel"):
        fit(BASKETS, start=np.eye(6), model="dpp", nonempty=False)


def test_runs_already_finished_stay_as_they_are_when_limits_change(tmp_path: Path) -> None:
    def stop(now: FitProgress) -> bool:
        return now.restart == 1 and now.iteration == 1

    path = tmp_path / "state"
    fit(BASKETS, rng=0, restarts=2, tol=0, max_iter=3, callback=stop, checkpoint=path, model="dpp", nonempty=False)
    assert [
        line.n_iter
        for line in fit(BASKETS, restarts=2, tol=0, max_iter=5, resume=path, model="dpp", nonempty=False).restarts
    ] == [3, 5]


def test_without_choices_it_is_auto_from_moments() -> None:
    result = dl.fit(BASKETS, rng=0, model="dpp", nonempty=False)
    same_model(result, fit(BASKETS, "auto", "moments", prior="auto", rng=0, nonempty=False))
    assert (result.dpp.learned.learner, result.dpp.learned.start) == ("auto", "moments")


@pytest.mark.parametrize("n_baskets", [300, 2000])
def test_auto_finds_better_models_than_em_where_each_stops_by_itself(n_baskets: int) -> None:
    baskets = make_registries("safety", n_baskets, rng=0)
    auto = fit(baskets, model="dpp", nonempty=False).log_likelihood
    assert auto > fit(baskets, "em", "moments").log_likelihood + 0.01
    assert auto > fit(baskets, "em", "wishart", rng=0).log_likelihood + 0.01


def test_agreement_counts_the_runs_at_the_optimum() -> None:
    every, some, single = (
        Agreement.of(runs, 0.01) for runs in ([-2, -2.005, -1.995], [-2, -2.5, -2.005, -2.015], [-2])
    )
    assert (every.agreeing, every.runs, every.reached) == (3, 3, True)
    assert every.lowest == pytest.approx(0.01)
    assert str(every) == "all 3 are within 0.01 nats of the best; the lowest is 0.01 below"
    assert (some.agreeing, some.runs, some.reached) == (2, 4, False)
    assert str(some) == "2 of 4 are within 0.01 nats of the best; the lowest is 0.5 below"
    assert single.reached is None
    assert str(single) == "a single run"


def test_restarts_agree_on_an_easy_problem() -> None:
    easy = sampled(0, n=400, n_items=5)
    result = fit(easy, rng=0, restarts=4, tol=1e-6, model="dpp", nonempty=False)
    assert result.agreement.reached
    assert result.agreement.within == 2e-6
    assert "all 4 are within 2e-06 nats of the best" in repr(result)
    once = fit(easy, model="dpp", nonempty=False)
    assert once.agreement.reached is None
    assert "nats of the best" not in repr(once)


def test_restarts_that_ended_elsewhere_do_not_agree() -> None:
    """Runs cut short are at no optimum."""
    result = fit(BASKETS, rng=0, restarts=3, max_iter=1, tol=1e-6, model="dpp", nonempty=False)
    assert result.agreement.reached is False
    likelihoods = [line.log_likelihood for line in result.restarts]
    assert result.agreement.lowest == pytest.approx(max(likelihoods) - min(likelihoods))
    assert "1 of 3 are within" in repr(result)


def test_em_s_tolerance_is_relative_so_agreement_is_within_as_much_of_the_likelihood() -> None:
    result = fit(BASKETS, "em", rng=0, restarts=2, tol=1e-3)
    assert result.agreement.within == pytest.approx(2e-3 * abs(result.log_likelihood))


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
