"""One loop for all learners: stopping, history and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel

Memory = Mapping[str, npt.NDArray[Any]]
Rule = Callable[[Sequence[float]], float]

NOTHING: Memory = {}


class Stop(Enum):
    """Why learning stopped; the value is a sentence. Only `TOLERANCE` is convergence."""

    TOLERANCE = "the stopping rule fell below its tolerance"
    MAX_ITER = "the limit on iterations was reached before the tolerance"
    MAX_SECONDS = "the time limit was reached before the tolerance"
    NO_ASCENT = "no step, however small, raised the log-likelihood"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "interrupted; this is the best model so far"


@dataclass(frozen=True)
class Step:
    """Where a learner stands, and the mean log-likelihood of the data there.

    A learner that does not work with eigenvectors says how to find the kernel; it is then found only if asked for.
    `memory` is what the learner needs beside the kernel to go on as if it had never stopped.
    """

    form: Kernel | Callable[[], Kernel]
    log_likelihood: float
    step_size: float
    evaluations: float  # of the statistics that the step took; one for the likelihood alone counts one half
    memory: Memory = field(default_factory=dict, repr=False)

    @cached_property
    def kernel(self) -> Kernel:
        return self.form if isinstance(self.form, Kernel) else self.form()


@dataclass(frozen=True)
class History:
    """One entry an iteration; the first is the start."""

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats
    evaluations: Floats  # of the statistics, so far

    def __len__(self) -> int:
        return len(self.log_likelihood)


@dataclass(frozen=True)
class Record:
    """The columns of a history that grows."""

    log_likelihood: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    step_size: list[float] = field(default_factory=list)
    evaluations: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, history: History) -> Record:
        return cls(*(getattr(history, name).tolist() for name in cls.__dataclass_fields__))

    def add(self, step: Step, seconds: float) -> None:
        self.log_likelihood.append(step.log_likelihood)
        self.seconds.append(seconds)
        self.step_size.append(step.step_size)
        self.evaluations.append(step.evaluations + (self.evaluations[-1] if self.evaluations else 0))

    def first(self, n: int) -> History:
        return History(*(np.array(getattr(self, name)[:n]) for name in History.__dataclass_fields__))


@dataclass(frozen=True)
class Run:
    """Where one run of a learner stands, and why it stopped if it did."""

    step: Step
    record: Record = field(repr=False)
    n_iter: int
    stop: Stop | None = None

    @property
    def kernel(self) -> Kernel:
        return self.step.kernel

    @property
    def log_likelihood(self) -> float:
        return self.step.log_likelihood

    @property
    def seconds(self) -> float:
        """Since the fit began."""
        return self.record.seconds[self.n_iter]

    @cached_property
    def history(self) -> History:
        return self.record.first(self.n_iter + 1)


@dataclass(frozen=True)
class Limits:
    """When to stop: a rule's figure at most the tolerance, and limits."""

    rule: Rule
    tol: float
    max_iter: int
    max_seconds: float | None

    def reached(self, record: Record) -> Stop | None:
        if self.rule(record.log_likelihood) <= self.tol:
            return Stop.TOLERANCE
        if len(record.log_likelihood) > self.max_iter:
            return Stop.MAX_ITER
        if self.max_seconds is not None and record.seconds[-1] >= self.max_seconds:
            return Stop.MAX_SECONDS
        return None


def run(
    steps: Iterator[Step],
    limits: Limits,
    clock: Callable[[], float],
    observe: Callable[[Run], bool],
    earlier: Run | None = None,
) -> Run:
    """Follow a learner until a limit is reached, `observe` says stop, it gives up, or Ctrl-C comes.

    A learner depends on its kernel and its memory alone, so a run continues from an earlier one by starting the
    learner there; the step that the learner then yields first is the last of the earlier history.
    """
    record = Record() if earlier is None else Record.of(earlier.history)
    state = earlier
    resumed = earlier is not None
    try:
        for step in steps:
            if state is None:
                _check_start(step)
            if not resumed:
                record.add(step, clock())
            resumed = False
            state = Run(step, record, len(record.log_likelihood) - 1)
            stop = limits.reached(record)
            if observe(state) and stop is None:
                stop = Stop.CALLBACK
            if stop is not None:
                return _stopped(state, stop)
    except KeyboardInterrupt:
        if state is None:
            raise
        return _stopped(state, Stop.INTERRUPTED)
    assert state is not None
    return _stopped(state, Stop.NO_ASCENT)


def _stopped(state: Run, stop: Stop) -> Run:
    return Run(state.step, state.record, state.n_iter, stop)


def _check_start(step: Step) -> None:
    if not np.isfinite(step.log_likelihood):
        raise InputError(
            f"the start has a log-likelihood of {step.log_likelihood}: it gives some basket probability zero "
            f"(its rank is {step.kernel.rank}, and no basket may be larger), and from there nothing can be learned; "
            "start elsewhere, for instance with init='wishart'"
        )
