"""The runs of a fit: each from its own initial kernel, the best of them kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpplearn.errors import InputError
from dpplearn.kernels.families import AnyKernel
from dpplearn.learners.factored.place import Place
from dpplearn.learners.loop import Limits, Record, Run, Step, Stop, Validation, run
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import Learner
from dpplearn.learners.starts import DETERMINISTIC
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.tools.words import count

ENDS_THE_FIT = {Stop.CALLBACK, Stop.MAX_SECONDS}
GIVEN, CONTINUED = "given", "checkpoint"  # names of a start that is a model, and of one that continues a schedule

Observe = Callable[[Run], bool]
Observer = Callable[[int, Run], Any]


@dataclass(frozen=True)
class Restart:
    """Summary of one run."""

    start: str
    log_likelihood: float
    n_iter: int
    seconds: float
    stop: Stop

    @classmethod
    def of(cls, run: Run, start: str) -> Restart:
        assert run.stop is not None
        return cls(start, run.log_likelihood, run.n_iter, run.seconds - run.record.seconds[0], run.stop)

    def __str__(self) -> str:
        return (
            f"{self.start:<8} {self.log_likelihood:>12.6f}  {self.n_iter:>5} iterations  {self.seconds:>8.2f} s  "
            f"{self.stop.name.lower().replace('_', ' ')}"
        )


@dataclass(frozen=True)
class Method:
    """A learner with its limits and validation set, independent of data and initial kernel."""

    learner: Learner
    limits: Limits
    clock: Callable[[], float]
    validation: Validation | None = None

    def run(self, start: Callable[[], AnyKernel | Place], problem: Problem, observe: Observe) -> Run:
        steps = self.learner.steps(start(), problem)
        return run(steps, self.limits, self.clock, observe, self.validation, self.learner.at_end)

    def ended_at(self, kernel: AnyKernel, problem: Problem, stop: Stop, record: Record) -> Run:
        """A run whose last step, after those in the record, is this kernel."""
        step = Step(kernel, problem.log_likelihood(kernel), 0.0, 0.5)
        record.add(step, self.clock(), self.validation.score(kernel) if self.validation is not None else np.nan)
        return Run(step, record, len(record.log_likelihood) - 1, stop)

    def at_least(self, kernel: AnyKernel, last: Run, problem: Problem) -> Run:
        """Return the run, or if `kernel` is better, the run with `kernel` as its last step.

        A run that converged to a worse model did not find the optimum: it then stopped with `NOT_BETTER`. With
        `max_iter=0` the returned kernel is the only step.
        """
        assert last.stop is not None
        before = Record.of(last.history) if self.limits.max_iter else Record()
        other = self.ended_at(kernel, problem, last.stop, before)
        if not other.score > last.score:
            return last
        apart = other.score > last.score + self.limits.tol
        return replace(other, stop=Stop.NOT_BETTER) if apart and last.stop is Stop.TOLERANCE else other

    def out_of_time(self) -> bool:
        return self.limits.out_of_time(self.clock())


@dataclass(frozen=True)
class Work:
    """The inputs that all runs of a fit share."""

    method: Method
    problem: Problem
    init: str  # name of the initial kernel of the first run
    given: AnyKernel | DPP | Mixture | None  # `start` of the fit
    continued: Place | None  # state of an unfinished schedule, which the first run continues
    seeds: Sequence[int]  # one per run

    def start_name(self, number: int) -> str:
        """Deterministic starts are used once; further runs start from random kernels."""
        first = self.init if self.given is None else GIVEN if self.continued is None else CONTINUED
        again = first if self.given is None and first not in DETERMINISTIC else self.method.learner.random_start
        return again if number else first

    def start(self, number: int) -> AnyKernel | Place:
        name = self.start_name(number)
        if name == CONTINUED and self.continued is not None:
            return self.continued
        if name == GIVEN:
            return self.given_kernel()
        return self.problem.start(name, np.random.default_rng(self.seeds[number]))

    def given_kernel(self) -> AnyKernel:
        """The kernel of `start`, over the catalogue of the data."""
        given = self.given
        if isinstance(given, DPP | Mixture):
            return self.problem.adapted(given.kernel, given.catalogue, np.random.default_rng(self.seeds[0]))
        assert given is not None
        if given.n_items != self.problem.baskets.n_items:
            raise InputError(
                f"the start has {count(given.n_items, 'item')}, but the baskets have {self.problem.baskets.n_items}; "
                "pass a model, whose items are matched by label"
            )
        return given


@dataclass(frozen=True)
class End:
    """The run whose model is returned, the name of its start, all runs, and why the fit ended if not as that run."""

    run: Run
    start: str
    restarts: tuple[Restart, ...]
    stop: Stop | None = None


def best_run(work: Work, observers: Sequence[Observer]) -> End:
    """Run from every start, and return the best run, or the start or independent items if these are better."""
    found: list[tuple[Run, str]] = []
    stop = None
    for number in range(len(work.seeds)):
        if found and work.method.out_of_time():
            stop = Stop.MAX_SECONDS
            break
        last = _one_run(work, number, observers)
        found.append((last, work.start_name(number)))
        if last.stop in ENDS_THE_FIT:
            stop = last.stop
            break
    best, start = max(found, key=lambda each: each[0].score)  # the first of equally good ones
    return End(*_not_worse(work, best, start), tuple(Restart.of(*each) for each in found), stop)


def _one_run(work: Work, number: int, observers: Sequence[Observer]) -> Run:
    def observe(now: Run) -> bool:
        answers = [observer(number, now) for observer in observers]
        return any(answers)

    return work.method.run(lambda: work.start(number), work.problem, observe)


def _not_worse(work: Work, best: Run, start: str) -> tuple[Run, str]:
    """Compare the best run with `start` and with independent items.

    Exceptions: "em" and "k-ascent" follow the paper, and with `max_iter=0` the initial kernel is wanted.
    """
    method, problem = work.method, work.problem
    if work.given is not None:
        at_least = method.at_least(work.given_kernel(), best, problem)
        best, start = at_least, start if at_least is best else GIVEN
    if method.learner.as_published or not method.limits.max_iter:
        return best, start
    at_least = method.at_least(problem.yardstick(), best, problem)
    return at_least, start if at_least is best else "independent"
