"""The loop that runs every learner: stopping rules, history, limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpplearn.errors import InputError
from dpplearn.learners.kernels import Kernel
from dpplearn.models.record import History

Arrays = Mapping[str, npt.NDArray[Any]]
Rule = Callable[[Sequence[float]], float]  # from the objective after each step to what the tolerance is compared with

MIN_STEPS = 6  # before which `remaining_gain` makes no estimate
PATIENCE = 10  # iterations without a better model on the validation set, after which a run ends


class Stop(Enum):
    """Why learning stopped; the value is a sentence. Only `TOLERANCE` and `CLOSED_FORM` mean that it converged.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> dl.fit_dpp(baskets, "em", init="wishart", rng=0, max_iter=1).stop.value
    'the limit on iterations was reached before the tolerance'
    """

    TOLERANCE = "the stopping rule fell below its tolerance"
    MAX_ITER = "the limit on iterations was reached before the tolerance"
    MAX_SECONDS = "the time limit was reached before the tolerance"
    VALIDATION = "the validation set has not become more likely for a while; the best model on that set is returned"
    CLOSED_FORM = "there was nothing to learn: with shrinkage 1 the model is that of independent items"
    NOT_BETTER = "no step led above the model given as a start, or above independent items; that model is returned"
    PLANNED = "all passes over the baskets that were planned are done"
    NO_ASCENT = "no step, however small, raised the log-likelihood"
    CALLBACK = "the callback asked to stop"


@dataclass(frozen=True)
class Step:
    """One iteration of a learner."""

    form: Kernel | Callable[[], Kernel]  # the kernel, or a function that computes it
    log_likelihood: float  # mean per training basket under the kernel
    step_size: float
    evaluations: float  # of the statistics that the step took; one of the likelihood alone counts one half
    maximised: float | None = None  # the objective, where that is not the log-likelihood
    preliminary: bool = False  # whether the tolerance applies only to later steps
    parameters: Arrays = field(default_factory=dict, repr=False)  # that some learners optimise instead of the kernel
    share: float | None = None  # fraction of the schedule that is done, for learners with a schedule
    schedule: Arrays | None = field(default=None, repr=False)  # what a checkpoint needs to continue the schedule

    @property
    def objective(self) -> float:
        return self.log_likelihood if self.maximised is None else self.maximised

    @cached_property
    def kernel(self) -> Kernel:
        return self.form() if callable(self.form) else self.form


class Entry(NamedTuple):
    """One line of a history, with the fields of `History`."""

    log_likelihood: float
    seconds: float
    step_size: float
    evaluations: float
    validation: float

    @classmethod
    def of(cls, step: Step, seconds: float, validation: float, before: Sequence[Entry]) -> Entry:
        evaluations = step.evaluations + (before[-1].evaluations if before else 0)
        return cls(step.log_likelihood, seconds, step.step_size, evaluations, validation)


@dataclass(frozen=True)
class Run:
    """The state of one run of a learner, and why it stopped if it did."""

    step: Step
    entries: list[Entry] = field(repr=False)  # one per iteration; grows while the run goes on
    n_iter: int
    stop: Stop | None = None
    start: str = ""  # name of the start

    @property
    def entry(self) -> Entry:
        return self.entries[self.n_iter]

    @property
    def score(self) -> float:
        """Value by which runs are compared: on the validation set, or without one the training objective."""
        return self.step.objective if math.isnan(self.entry.validation) else self.entry.validation

    @property
    def history(self) -> History:
        return History(*np.array(self.entries[: self.n_iter + 1], dtype=float).T)


@dataclass(frozen=True)
class Limits:
    """When to stop: at a value of the rule up to the tolerance, or at a limit."""

    rule: Rule
    tol: float
    max_iter: int
    max_seconds: float = math.inf

    def reached(self, now: Run, objective: Sequence[float]) -> Stop | None:
        """Return the limit that is reached. `objective` has the values of the steps that are not preliminary."""
        if objective and self.rule(objective) <= self.tol:
            return Stop.TOLERANCE
        if now.n_iter >= self.max_iter:
            return Stop.MAX_ITER
        return Stop.MAX_SECONDS if now.entry.seconds >= self.max_seconds else None


def run(
    steps: Iterator[Step],
    limits: Limits,
    clock: Callable[[], float],
    observe: Callable[[Run], bool],
    validate: Callable[[Kernel], float] | None = None,
    at_end: Stop = Stop.NO_ASCENT,
) -> Run:
    """Run a learner until a limit is reached, `observe` returns true, or the learner ends (`at_end` is the reason).

    `validate` returns the mean log-likelihood of the validation set. With it, the result is the best step on that set,
    and a run without a schedule also stops when that set has not become more likely for `PATIENCE` iterations.
    """
    entries: list[Entry] = []
    objective: list[float] = []  # of the steps that are not preliminary
    best: Run | None = None
    for step in steps:
        if not entries and not np.isfinite(step.objective):
            raise InputError(
                f"the start has a log-likelihood of {step.log_likelihood}: some basket is impossible under it, such as "
                "one with more items than its rank; choose another start (of fit_dpp, for instance init='wishart')"
            )
        validation = math.nan if validate is None else validate(step.kernel)
        entries.append(Entry.of(step, clock(), validation, entries))
        now = Run(step, entries, len(entries) - 1)
        # as long as some validation basket is impossible, the last step is the best one
        if best is None or validate is None or now.score > best.score or best.score == -math.inf:
            best = now
        if not step.preliminary:
            objective.append(step.objective)
        stop = limits.reached(now, objective)
        if stop is None and step.share is None and min(now.n_iter - best.n_iter, len(objective) - 1) >= PATIENCE:
            stop = Stop.VALIDATION
        if observe(now) and stop is None:
            stop = Stop.CALLBACK
        if stop is not None:
            break
    assert best is not None
    stop = stop or at_end
    # the tolerance did not choose a step before the last
    return replace(best, stop=Stop.VALIDATION if stop is Stop.TOLERANCE and best.n_iter < now.n_iter else stop)


def relative_change(objective: Sequence[float]) -> float:
    """|after − before| / max(|before|, 1e-5) of the last step: the rule of the paper's authors."""
    if len(objective) < 2:
        return math.inf
    before, after = objective[-2:]
    return abs(after - before) / max(abs(before), 1e-5)


def remaining_gain(objective: Sequence[float], min_steps: int = MIN_STEPS) -> float:
    """Estimate what is still to be gained, in nats per basket, by the gain of the second half of the run.

    Where the gap to the optimum falls like 1/t or faster in the number of steps t, it is at most what was gained
    between t/2 and t. The estimate does not depend on the scale of the data or of the steps.
    """
    t = len(objective) - 1
    return objective[t] - objective[t // 2] if t >= min_steps else math.inf


def never(objective: Sequence[float]) -> float:
    """Return infinity: the learner ends by itself."""
    return math.inf
