"""Checkpoint saves the best model so far, and start= continues from it."""

from __future__ import annotations

import errno
import math
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Checkpoint, FitProgress, InputError, InputWarning, Stop
from dpplearn.datasets.registries import make_registries
from dpplearn.models.model_file import file_content, read_file

pytestmark = pytest.mark.slow

BASKETS = make_registries("safety", 300, rng=0)
DPP: dict[str, Any] = {"shrinkage": 0, "rng": 0, "tol": 0}
LOW_RANK = partial(dl.fit, BASKETS, segments=2, rank=2, attraction=2, threads=1, rng=0)
KINDS = {
    "dpp": partial(dl.fit_dpp, shrinkage=0, rng=0),  # checkpoints hold the model before shrinkage
    "em": partial(dl.fit_dpp, learner="em", init="wishart", rng=0),
    "mixture": partial(dl.fit, segments=2, rng=0),
}
NONEMPTY = BASKETS.subset(BASKETS.sizes > 0)


def interrupted(fit: Any, path: Path, iteration: int) -> Path:
    """Return the checkpoint of a fit that is interrupted at an iteration."""

    def interrupt(now: FitProgress) -> None:
        if now.iteration == iteration:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(callback=[Checkpoint(path, math.inf), interrupt])
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_saves_the_best_model_and_is_raised_and_start_continues(kind: str, tmp_path: Path) -> None:
    fit = partial(KINDS[kind], NONEMPTY)
    path = interrupted(fit, tmp_path / "model", 5)
    saved = dl.load(path)
    assert saved.items == NONEMPTY.items
    assert saved.learned.n_iter == 5
    assert saved.learned.log_likelihood == pytest.approx(saved.log_likelihood(NONEMPTY), abs=1e-9)
    assert saved.training.weight == len(NONEMPTY)
    again = fit(start=path)
    assert again.converged
    assert again.log_likelihood > saved.learned.log_likelihood
    assert again.history.log_likelihood[0] == pytest.approx(fit(max_iter=5).history.log_likelihood[-1], abs=0.05)
    assert again.model.nonempty == saved.nonempty


def test_the_file_holds_the_best_of_all_runs_and_not_the_last(tmp_path: Path) -> None:
    """Runs from random kernels, of which the first is not the best and the last one is cut short."""
    path, seen = tmp_path / "model", []

    def callback(now: FitProgress) -> bool:
        checkpoint(now)
        seen.append(now.log_likelihood)
        return now.restart == 3

    checkpoint = Checkpoint(path, seconds=0)
    result = dl.fit_dpp(BASKETS, "em", init="wishart", rng=1, restarts=5, max_iter=15, callback=callback)
    assert result.stop is Stop.CALLBACK
    assert np.argmax(seen) < len(seen) - 1
    assert dl.load(path).log_likelihood(BASKETS) == pytest.approx(max(seen), abs=1e-9)


def test_it_saves_every_so_many_seconds_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, saved = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    path = tmp_path / "model"
    checkpoint = Checkpoint(path, seconds=10)

    def callback(progress: FitProgress) -> None:
        now[0] += 4.0
        checkpoint(progress)
        saved.append(dl.load(path).learned.n_iter if path.exists() else None)

    dl.fit_dpp(BASKETS, **DPP, max_iter=7, callback=callback)
    assert saved == [None, None, None, 3, 3, 3, 6, 6]
    dl.fit_dpp(BASKETS, **DPP, max_iter=2, callback=checkpoint)  # one checkpoint can serve several fits
    assert dl.load(path).learned.n_iter == 2  # at the end, although the time has not come
    dl.fit_dpp(BASKETS, **DPP, max_iter=3, callback=Checkpoint(tmp_path / "other", math.inf))
    assert not (tmp_path / "other").exists()  # only if the fit is interrupted


def test_invalid_checkpoints_and_starts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for seconds in (-1, float("nan"), "10", None):
        with pytest.raises(InputError, match=repr(seconds)):
            Checkpoint(path, seconds)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Checkpoint(tmp_path / "missing" / "model")
    path.write_text("nothing")
    for name in ("model", "none"):
        with pytest.raises(InputError, match=name):
            dl.fit(BASKETS, start=tmp_path / name)


def test_a_full_disk_keeps_the_old_file_warns_once_and_does_not_end_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = tmp_path / "model", []
    checkpoint, full = Checkpoint(path, seconds=0), [False]
    fsync = os.fsync

    def full_or_not(handle: int) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    def callback(now: FitProgress) -> None:
        full[0] = now.iteration in (2, 3, 4, 6)
        checkpoint(now)
        found.append(dl.load(path).learned.n_iter)

    monkeypatch.setattr(os, "fsync", full_or_not)
    with pytest.warns(InputWarning) as warned:
        result = dl.fit_dpp(BASKETS, **DPP, max_iter=8, callback=callback)
    assert len(warned) == 2
    assert found == [0, 1, 1, 1, 1, 5, 5, 7, 8]
    assert result.n_iter == 8
    assert list(tmp_path.iterdir()) == [path]


# Low-rank fits follow a schedule: 60 passes of EM, then 200 batches, of which every 20 make an iteration.


@pytest.fixture(scope="module")
def whole() -> dl.FitResult:
    return LOW_RANK()


@pytest.mark.parametrize("at", [0, 59, 60, 65, 71])
def test_a_low_rank_fit_continues_its_schedule(at: int, whole: dl.FitResult, tmp_path: Path) -> None:
    """The file holds the options and the seed. A finished schedule is not repeated."""
    path, iterations = interrupted(LOW_RANK, tmp_path / "model", at), []
    again = dl.fit(BASKETS, start=path, rng=1, threads=1, callback=iterations.append)
    assert len(iterations) == 72 - at  # with the state in the file, which is evaluated again
    assert again.stop is Stop.PLANNED
    found, expected = (each.model.learned.validation_log_likelihood for each in (again, whole))
    assert found == pytest.approx(expected, abs=1e-6)
    assert again.model.training.schedule is None  # of a finished fit


def test_a_file_with_an_invalid_schedule_is_refused_and_without_its_names_is_an_ordinary_start(tmp_path: Path) -> None:
    path = interrupted(LOW_RANK, tmp_path / "model", 65)
    arrays, document = read_file(path)
    invalid = [("columns", np.zeros(3, int)), ("log_odds", np.zeros((2, 2))), ("Z", np.zeros((1, 6))), ("mean", None)]
    for name, value in invalid:
        changed = arrays | {f"schedule.{name}": value}
        path.write_bytes(file_content({key: each for key, each in changed.items() if each is not None}, document))
        with pytest.raises(InputError, match=f"schedule.{'mean' if name == 'Z' else name}"):
            dl.load(path)
    path.write_bytes(file_content({name: each for name, each in arrays.items() if "counts" not in name}, document))
    assert dl.fit(BASKETS, start=path, rng=0, threads=1, max_iter=1).restarts[0].start == "given"


@pytest.mark.parametrize("change", ["other baskets", "other segments", "a model without a schedule"])
def test_another_fit_from_a_low_rank_checkpoint_begins_its_own_schedule(change: str, tmp_path: Path) -> None:
    path = interrupted(LOW_RANK, tmp_path / "model", 65)
    baskets = BASKETS.subset(np.arange(len(BASKETS) - 1)) if change == "other baskets" else BASKETS
    options = {"segments": 3} if change == "other segments" else {}
    start = dl.load(path)
    if change == "a model without a schedule":
        start = dl.Mixture(start.distribution, start.items)
    steps: list[FitProgress] = []
    result = dl.fit(baskets, start=start, rng=0, threads=1, callback=steps.append, **options)
    assert result.restarts[0].start == "given"
    assert len(steps) == 11  # all batches again, from the segments of the start
