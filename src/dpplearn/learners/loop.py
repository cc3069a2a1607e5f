"""The loop that runs every learner: stopping rules, history, time limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.errors import InputError
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.models.history import History

Arrays = Mapping[str, npt.NDArray[Any]]
Rule = Callable[[Sequence[float]], float]


class Stop(Enum):
    """Why learning stopped; the value is a sentence. Only at `TOLERANCE` and in `CLOSED_FORM` is it the optimum.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dl.fit([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]], "em", "wishart", rng=0, max_iter=1).stop.value
    'the limit on iterations was reached before the tolerance'
    """

    TOLERANCE = "the stopping rule fell below its tolerance"
    MAX_ITER = "the limit on iterations was reached before the tolerance"
    MAX_SECONDS = "the time limit was reached before the tolerance"
    VALIDATION = (
        "the baskets set aside have become no likelier for a while; this is the model under which they were likeliest"
    )
    CLOSED_FORM = "there was nothing to learn: with shrinkage 1 the model is that of independent items"
    NOT_BETTER = "no step led above the model given as a start, or above independent items; that model is returned"
    PLANNED = "all passes over the baskets that were planned are done"
    NO_ASCENT = "no step, however small, raised the log-likelihood"
    CALLBACK = "the callback asked to stop"


@dataclass(frozen=True)
class Step:
    """One iteration of a learner: the kernel, or a function that computes it, and the mean log-likelihood of the data.

    `parameters` are the arrays that some learners optimise instead of the kernel. `schedule` is the state of a learner
    that follows a fixed schedule; a checkpoint saves it so that `start` does not repeat finished passes.
    """

    form: AnyKernel | Callable[[], AnyKernel]
    log_likelihood: float
    step_size: float
    evaluations: float  # of the statistics that the step took; one for the likelihood alone counts one half
    parameters: Arrays = field(default_factory=dict, repr=False)
    share: float | None = None  # fraction of the schedule that is done, for learners with a schedule
    schedule: Arrays | None = field(default=None, repr=False)

    @cached_property
    def kernel(self) -> AnyKernel:
        return self.form() if callable(self.form) else self.form


@dataclass(frozen=True)
class Record:
    """The columns of a history that grows."""

    log_likelihood: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    step_size: list[float] = field(default_factory=list)
    evaluations: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, history: History) -> Record:
        return cls(**{name: column.tolist() for name, column in history.columns.items()})

    def add(self, step: Step, seconds: float, validation: float = np.nan) -> None:
        self.log_likelihood.append(step.log_likelihood)
        self.seconds.append(seconds)
        self.step_size.append(step.step_size)
        self.evaluations.append(step.evaluations + (self.evaluations[-1] if self.evaluations else 0))
        self.validation.append(validation)

    def first(self, n: int) -> History:
        return History(*(np.array(getattr(self, name)[:n]) for name in History.__dataclass_fields__))


@dataclass(frozen=True)
class Run:
    """Where one run of a learner stands, and why it stopped if it did."""

    step: Step
    record: Record = field(repr=False)
    n_iter: int
    stop: Stop | None = None
    best_so_far: Run | None = field(default=None, repr=False)  # the best step so far on the baskets set aside

    @property
    def score(self) -> float:
        """What runs are compared by: how likely the baskets set aside are, or where there are none, the data."""
        validation = self.record.validation[self.n_iter]
        return self.log_likelihood if np.isnan(validation) else validation

    @property
    def kernel(self) -> AnyKernel:
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
    """When to stop: the value of a rule at most the tolerance, and limits."""

    rule: Rule
    tol: float
    max_iter: int
    max_seconds: float | None

    def reached(self, record: Record) -> Stop | None:
        if self.rule(record.log_likelihood) <= self.tol:
            return Stop.TOLERANCE
        if len(record.log_likelihood) > self.max_iter:
            return Stop.MAX_ITER
        return Stop.MAX_SECONDS if self.out_of_time(record.seconds[-1]) else None

    def out_of_time(self, seconds: float) -> bool:
        return self.max_seconds is not None and seconds >= self.max_seconds


@dataclass(frozen=True)
class Validation:
    """The mean log-likelihood of baskets set aside, and for how many iterations it may fail to rise."""

    score: Callable[[AnyKernel], float]
    patience: int


def run(
    steps: Iterator[Step],
    limits: Limits,
    clock: Callable[[], float],
    observe: Callable[[Run], bool],
    validation: Validation | None = None,
    at_end: Stop = Stop.NO_ASCENT,
) -> Run:
    """Run a learner until a limit is reached, `observe` returns true, or the learner ends (`at_end` is the reason).

    With a validation set, also stop when that has not improved for `patience` iterations. The result is then the best
    step on the validation set, whatever ended the run.
    """
    record = Record()
    state: Run | None = None
    for step in steps:
        if state is None:
            _check_start(step)
        record.add(step, clock(), validation.score(step.kernel) if validation is not None else np.nan)
        state = _followed(state, Run(step, record, len(record.log_likelihood) - 1), validation)
        stop = limits.reached(record)
        if validation is not None and state.best_so_far is not None:
            waited = state.n_iter - state.best_so_far.n_iter
            stop = stop or (Stop.VALIDATION if waited >= validation.patience else None)
        if observe(state) and stop is None:
            stop = Stop.CALLBACK
        if stop is not None:
            return _stopped(state, stop)
    assert state is not None
    return _stopped(state, at_end)


def _followed(before: Run | None, now: Run, validation: Validation | None) -> Run:
    """The state with the best step on the baskets set aside; as long as one of them is impossible, that is the last."""
    if validation is None:
        return now
    best_so_far = before.best_so_far if before is not None else None
    if best_so_far is None or now.score > best_so_far.score or best_so_far.score == -np.inf:
        best_so_far = now
    return replace(now, best_so_far=best_so_far)


def _stopped(state: Run, stop: Stop) -> Run:
    """At the best step on the baskets set aside, if there are any; one before the last was not chosen by the
    tolerance."""
    best = state.best_so_far or state
    if stop is Stop.TOLERANCE and best.n_iter < state.n_iter:
        stop = Stop.VALIDATION
    return replace(best, stop=stop, best_so_far=None)


def _check_start(step: Step) -> None:
    if not np.isfinite(step.log_likelihood):
        raise InputError(
            f"the start has a log-likelihood of {step.log_likelihood}: it gives some basket probability zero "
            f"(its sets have at most {law_of(step.kernel).possible_sizes[-1]} items, and no basket may be larger), and "
            "from there nothing can be learned; start elsewhere, for instance with init='wishart'"
        )
