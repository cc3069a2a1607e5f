"""The state of a fit in a file, so that a killed one goes on to the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel
from dpplearn.learners.loop import History, Record, Run, Step, Stop
from dpplearn.tensor_file import read_tensors, write_tensors

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
    data: str


@dataclass(frozen=True)
class FitState:
    """Finished runs, the best of them, and the one under way."""

    setting: Setting
    seeds: tuple[int, ...]
    finished: tuple[Restart, ...] = ()
    best: Run | None = None
    running: Run | None = None
    elapsed: float = 0.0  # seconds since the fit began

    def with_running(self, run: Run) -> FitState:
        return replace(self, running=run, elapsed=run.seconds)

    def with_finished(self, run: Run, start: str) -> FitState:
        assert run.stop is not None
        seconds = run.seconds - run.record.seconds[0]
        line = Restart(start, run.log_likelihood, run.n_iter, seconds, run.stop)
        better = self.best is None or run.log_likelihood > self.best.log_likelihood
        state = self.with_running(run)
        return replace(state, finished=(*self.finished, line), best=run if better else self.best, running=None)


def fingerprint(baskets: Baskets) -> str:
    """A digest of deduplicated baskets, equal for equal data in any order."""
    digest = hashlib.sha256(json.dumps(baskets.items).encode())
    for array in (baskets.indices, baskets.offsets, baskets.weights):
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def write_checkpoint(path: str | PathLike[str], state: FitState) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, run in (("best", state.best), ("running", state.running)):
        if run is not None:
            arrays |= {
                f"{name}.eigenvalues": run.kernel.eigenvalues,
                f"{name}.eigenvectors": run.kernel.eigenvectors,
                **{f"{name}.{column}": getattr(run.history, column) for column in COLUMNS},
            }
    if state.running is not None:
        arrays |= {f"memory.{name}": np.ascontiguousarray(array) for name, array in state.running.step.memory.items()}
    document = {
        "setting": asdict(state.setting),
        "seeds": list(state.seeds),
        "elapsed": state.elapsed,
        "finished": [{**asdict(line), "stop": line.stop.name} for line in state.finished],
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
        if found[name] != expected:
            what = "other baskets" if name == "data" else f"{name}={found[name]!r}, not {name}={expected!r}"
            raise InputError(f"{path} belongs to a fit with {what}; repeat the call that wrote it, with resume=")


def _state(setting: Setting, arrays: Mapping[str, npt.NDArray[Any]], document: Mapping[str, Any]) -> FitState:
    finished = tuple(Restart(**{**line, "stop": Stop[line["stop"]]}) for line in document["finished"])
    best = _run(arrays, "best")
    if best is not None:
        best = replace(best, stop=Stop[document["best_stop"]])
    return FitState(setting, tuple(document["seeds"]), finished, best, _run(arrays, "running"), document["elapsed"])


def _run(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Run | None:
    if f"{name}.eigenvalues" not in arrays:
        return None
    kernel = Kernel(arrays[f"{name}.eigenvalues"], arrays[f"{name}.eigenvectors"])
    history = History(*(arrays[f"{name}.{column}"] for column in COLUMNS))
    kept = {key.removeprefix("memory."): array for key, array in arrays.items() if key.startswith("memory.")}
    memory = kept if name == "running" else {}
    last = Step(kernel, float(history.log_likelihood[-1]), float(history.step_size[-1]), 0, memory)
    return Run(last, Record.of(history), len(history) - 1)
