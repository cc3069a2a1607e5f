"""The state of a fit in a file, so that a killed one goes on to the same result."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import count, takewhile
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError, InputWarning
from dpplearn.kernels.families import AnyKernel, kernel_from, law_of
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Record, Run, Step, Stop
from dpplearn.models.history import History
from dpplearn.tools.tensor_file import read_tensors, write_tensors

LATER = {"segments": None, "attraction": True, "rank": None}  # what files from before there were mixtures do not say
COLUMNS = tuple(field.name for field in fields(History))


@dataclass(frozen=True)
class Restart:
    """One line about one run from one start."""

    start: str
    log_likelihood: float
    n_iter: int
    seconds: float
    stop: Stop

    def __str__(self) -> str:
        return (
            f"{self.start:<8} {self.log_likelihood:>12.6f}  {self.n_iter:>5} iterations  {self.seconds:>8.2f} s  "
            f"{self.stop.name.lower().replace('_', ' ')}"
        )


@dataclass(frozen=True)
class Setting:
    """What must be the same for a fit to be continued."""

    learner: str
    init: str
    restarts: int
    prior: float | str
    validation: float
    nonempty: bool
    data: str
    segments: int | None = None
    attraction: bool | int = True
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class Search:
    """Where the choice of the prior stands: the log-probabilities of unseen baskets under each strength tried, and the
    model of each fold, from which the next strength starts; none once the choice is made."""

    held_out: Floats  # (n_strengths, n_baskets)
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class FitState:
    """Finished runs, the best of them, and the one under way."""

    setting: Setting
    seeds: tuple[int, ...]  # of the random starts, then of the folds and of what is set aside for validation
    search: Search | None = None  # of the strength of the prior, as far as done
    finished: tuple[Restart, ...] = ()
    best: Run | None = None
    running: Run | None = None
    elapsed: float = 0.0  # seconds since the fit began
    best_number: int | None = None  # of the best among the finished

    def with_running(self, run: Run) -> FitState:
        return replace(self, running=run, elapsed=run.seconds)

    def with_finished(self, run: Run, start: str) -> FitState:
        assert run.stop is not None
        seconds = run.seconds - run.record.seconds[0]
        line = Restart(start, run.log_likelihood, run.n_iter, seconds, run.stop)
        state = replace(self.with_running(run), finished=(*self.finished, line), running=None)
        if self.best is not None and not run.score > self.best.score:
            return state
        return replace(state, best=run, best_number=len(self.finished))

    @property
    def best_start(self) -> str:
        """What the best of the finished runs started from."""
        assert self.best_number is not None
        return self.finished[self.best_number].start


Saver = Callable[[FitState, bool], None]  # the state, and whether it is to be written whatever the time


def fingerprint(baskets: AnyBaskets) -> str:
    """A digest of deduplicated baskets, equal for equal data in any order; of parts, in the order of these."""
    if isinstance(baskets, Parts):
        return hashlib.sha256("".join(baskets.held.apply(fingerprint)).encode()).hexdigest()
    digest = hashlib.sha256(json.dumps(baskets.items).encode())
    for array in (baskets.indices, baskets.offsets, baskets.weights):
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def write_checkpoint(path: str | PathLike[str], state: FitState) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    if state.search is not None:
        arrays["search"] = state.search.held_out
        for fold, kernel in enumerate(state.search.kernels):
            arrays |= _kernel_arrays(f"fold.{fold}", kernel)
    best_so_far = state.running.best_so_far if state.running is not None else None
    # "leader" is what files have called the best step so far from the first
    for name, run in (("best", state.best), ("running", state.running), ("leader", best_so_far)):
        if run is not None:
            arrays |= {
                **_kernel_arrays(name, run.kernel),
                **{f"{name}.{column}": values for column, values in run.history.columns.items()},
                **{f"{name}.memory.{key}": np.ascontiguousarray(array) for key, array in run.step.memory.items()},
            }
    document = {
        "setting": asdict(state.setting),
        "seeds": list(state.seeds),
        "elapsed": state.elapsed,
        "finished": [{**asdict(line), "stop": line.stop.name} for line in state.finished],
        "best_number": state.best_number,
        "best_stop": state.best.stop.name if state.best is not None and state.best.stop is not None else None,
    }
    write_tensors(path, "checkpoint", arrays, document)


def read_checkpoint(path: str | PathLike[str], setting: Setting) -> FitState:
    """The state in a file, which must belong to this setting."""
    arrays, document = read_tensors(path, "checkpoint")
    try:
        _check_setting(fspath(path), document["setting"], setting)
        return _state(setting, arrays, document)
    except (KeyError, TypeError) as error:
        raise InputError(f"{fspath(path)} does not hold a checkpoint: {error}") from None


def _check_setting(path: str, found: Mapping[str, Any], setting: Setting) -> None:
    for name, expected in asdict(setting).items():
        if (found[name] if name not in LATER else found.get(name, LATER[name])) != expected:
            what = "other baskets" if name == "data" else f"{name}={found.get(name)!r}, not {name}={expected!r}"
            raise InputError(
                f"{path} belongs to a fit with {what}; repeat the call that wrote it, with resume= (--resume)"
            )


def _state(setting: Setting, arrays: Mapping[str, npt.NDArray[Any]], document: Mapping[str, Any]) -> FitState:
    finished = tuple(Restart(**{**line, "stop": Stop[line["stop"]]}) for line in document["finished"])
    best, running = _run(arrays, "best"), _run(arrays, "running")
    if best is not None:
        best = replace(best, stop=Stop[document["best_stop"]])
    if running is not None:
        running = replace(running, best_so_far=_run(arrays, "leader"))
    seeds, search = tuple(document["seeds"]), _search(arrays)
    number = document.get("best_number")
    if number is None and finished:  # an older file, which does not say
        number = max(range(len(finished)), key=lambda each: finished[each].log_likelihood)
    return FitState(setting, seeds, search, finished, best, running, document["elapsed"], number)


def _kernel_arrays(name: str, kernel: AnyKernel) -> dict[str, npt.NDArray[Any]]:
    return {f"{name}.{array}": values for array, values in law_of(kernel).arrays().items()}


def _kernel(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> AnyKernel:
    own = {array.removeprefix(f"{name}."): values for array, values in arrays.items() if array.startswith(f"{name}.")}
    return kernel_from(own)


def _search(arrays: Mapping[str, npt.NDArray[Any]]) -> Search | None:
    if "search" not in arrays:
        return None
    folds = takewhile(lambda fold: f"fold.{fold}.eigenvalues" in arrays, count())
    kernels = (_kernel(arrays, f"fold.{fold}") for fold in folds)
    return Search(arrays["search"], tuple(each for each in kernels if isinstance(each, Kernel)))


def _run(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Run | None:
    if f"{name}.log_likelihood" not in arrays:
        return None
    kernel = _kernel(arrays, name)
    history = History(**{column: arrays[f"{name}.{column}"] for column in COLUMNS})
    prefix = f"{name}.memory."
    memory = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    last = Step(kernel, float(history.log_likelihood[-1]), float(history.step_size[-1]), 0, memory)
    return Run(last, Record.of(history), len(history) - 1)


def saver(path: str | PathLike[str] | None, every: float) -> Saver | None:
    """To write the state if it is time or asked for. Where that fails, learning goes on, and the next may do better."""
    if path is None:
        return None
    tried, failed = -np.inf, False

    def save(state: FitState, now: bool) -> None:
        nonlocal tried, failed
        if not now and state.elapsed - tried < every:
            return
        tried = state.elapsed
        try:
            write_checkpoint(path, state)
            failed = False
        except InputError as error:
            if not failed:
                warnings.warn(
                    f"no checkpoint: {error}; learning goes on, and so do attempts", InputWarning, stacklevel=2
                )
            failed = True

    return save
