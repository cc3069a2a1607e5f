"""One loop for all learners: stopping, history and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel


class Stop(Enum):
    """Why learning stopped; the value is a sentence. Only `TOLERANCE` is convergence."""

    TOLERANCE = "the log-likelihood changed by less than the tolerance"
    MAX_ITER = "the limit on iterations was reached before the tolerance"
    MAX_SECONDS = "the time limit was reached before the tolerance"
    NO_ASCENT = "no step, however small, raised the log-likelihood"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "interrupted; this is the best model so far"


@dataclass(frozen=True)
class Step:
    """A kernel, the mean log-likelihood of the data under it, and the size of the step that led to it."""

    kernel: Kernel
    log_likelihood: float
    step_size: float


@dataclass(frozen=True)
class History:
    """One entry an iteration; the first is the start."""

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats

    @classmethod
    def empty(cls) -> History:
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.log_likelihood)

    def with_step(self, step: Step, seconds: float) -> History:
        return History(
            np.append(self.log_likelihood, step.log_likelihood),
            np.append(self.seconds, seconds),
            np.append(self.step_size, step.step_size),
        )


@dataclass(frozen=True)
class Run:
    """Where one run of a learner stands, and why it stopped if it did."""

    kernel: Kernel
    history: History
    stop: Stop | None = None

    @property
    def log_likelihood(self) -> float:
        return float(self.history.log_likelihood[-1])

    @property
    def n_iter(self) -> int:
        return len(self.history) - 1


@dataclass(frozen=True)
class Limits:
    """When to stop."""

    tol: float
    max_iter: int
    max_seconds: float | None

    def reached(self, history: History) -> Stop | None:
        if len(history) > 1 and relative_change(*history.log_likelihood[-2:]) <= self.tol:
            return Stop.TOLERANCE
        if len(history) > self.max_iter:
            return Stop.MAX_ITER
        if self.max_seconds is not None and history.seconds[-1] >= self.max_seconds:
            return Stop.MAX_SECONDS
        return None


def relative_change(before: float, after: float) -> float:
    """|after − before| / max(|before|, 1e-5), the authors' rule."""
    return abs(after - before) / max(abs(before), 1e-5)


def run(
    steps: Iterator[Step],
    limits: Limits,
    clock: Callable[[], float],
    observe: Callable[[Run], bool],
    earlier: Run | None = None,
) -> Run:
    """Follow a learner until a limit is reached, `observe` says stop, it gives up, or Ctrl-C comes.

    A learner depends on its kernel alone, so a run continues from an earlier one by starting the learner at its
    kernel; the step that the learner then yields first is the last of the earlier history.
    """
    state = earlier
    resumed = earlier is not None
    try:
        for step in steps:
            if state is None:
                _check_start(step)
            if not resumed:
                history = state.history if state is not None else History.empty()
                state = Run(step.kernel, history.with_step(step, clock()))
            resumed = False
            assert state is not None
            stop = limits.reached(state.history)
            if observe(state) and stop is None:
                stop = Stop.CALLBACK
            if stop is not None:
                return Run(state.kernel, state.history, stop)
    except KeyboardInterrupt:
        if state is None:
            raise
        return Run(state.kernel, state.history, Stop.INTERRUPTED)
    assert state is not None
    return Run(state.kernel, state.history, Stop.NO_ASCENT)


def _check_start(step: Step) -> None:
    if not np.isfinite(step.log_likelihood):
        raise InputError(
            f"the start has a log-likelihood of {step.log_likelihood}: it gives some basket probability zero "
            f"(its rank is {step.kernel.rank}, and no basket may be larger), and from there nothing can be learned; "
            "start elsewhere, for instance with init='wishart'"
        )
