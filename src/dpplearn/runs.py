"""The runs of a fit: each from a start of its own, the best of them kept, all of it resumable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpplearn.baskets import Baskets
from dpplearn.checkpoint import FitState, Setting
from dpplearn.dpp import DPP
from dpplearn.errors import InputError
from dpplearn.initialise import DETERMINISTIC, INITIALISERS, adapted, independent, joined
from dpplearn.kernel import Kernel
from dpplearn.learners import Learner, Steps
from dpplearn.learners.loop import NOTHING, Limits, Record, Run, Step, Stop, Validation, run
from dpplearn.learners.stopping import relative_change
from dpplearn.statistics import mean_log_likelihood

ASKED_TO_STOP = {Stop.INTERRUPTED, Stop.CALLBACK}
ENDS_THE_FIT = {*ASKED_TO_STOP, Stop.MAX_SECONDS}

Observe = Callable[[Run], bool]
Observer = Callable[[int, Run], Any]
Saver = Callable[[FitState, bool], None]


@dataclass(frozen=True)
class Method:
    """How to learn, whatever from and whatever the start."""

    learner: Learner
    limits: Limits
    clock: Callable[[], float]
    threads: int | None
    nonempty: bool = False
    validation: Validation | None = None
    starting: float = 0.0  # seconds that a start is expected to take

    @property
    def make(self) -> Steps:
        """Where the steps come from."""
        make = self.learner.nonempty if self.nonempty else self.learner.steps
        assert make is not None
        return make

    def run(self, start: Callable[[], Kernel], data: Baskets, observe: Observe, earlier: Run | None = None) -> Run:
        """One run, or the rest of one; where there is no time for a step, what there is instead."""
        if earlier is not None and earlier.n_iter:
            steps = self.make(earlier.kernel, data, self.threads, earlier.step.memory)
        else:  # what came before the first step may not be a start, and the same start comes again
            earlier = None
            if self.out_of_time(self.starting):
                return self._instead(data)
            kernel = start()
            if self.out_of_time():
                return self._instead(data, kernel)
            steps = self.make(kernel, data, self.threads, NOTHING)
        last = run(steps, self.limits, self.clock, observe, earlier, self.validation)
        try:
            return self._off_saddle(last, data, observe)
        except KeyboardInterrupt:
            return replace(last, stop=Stop.INTERRUPTED)

    def _off_saddle(self, last: Run, data: Baskets, observe: Observe) -> Run:
        """A run that converged where items fall into independent blocks goes on from beside that point, if that is
        better. The paper's learners stop where they stop."""
        if last.stop is not Stop.TOLERANCE or self.learner.rule is relative_change or self.out_of_time(self.starting):
            return last
        beside = joined(last.kernel, data)
        if beside is None:
            return last
        again = self.make(beside, data, self.threads, NOTHING)
        other = run(again, self.limits, self.clock, observe, validation=self.validation)
        better = other if other.merit > last.merit + self.limits.tol else last
        return replace(better, stop=other.stop) if other.stop in ASKED_TO_STOP else better

    def unmoved(self, kernel: Kernel, data: Baskets, stop: Stop, seconds: float) -> Run:
        """A run that ended where it began."""
        likelihood = mean_log_likelihood(kernel, data, self.threads, nonempty=self.nonempty)
        record, step = Record(), Step(kernel, likelihood, 0.0, 0.5)
        record.add(step, seconds, self.validation.score(kernel) if self.validation is not None else np.nan)
        return Run(step, record, 0, stop)

    def out_of_time(self, expected: float = 0.0) -> bool:
        """Whether there is no time left for work of so many seconds."""
        return self.limits.out_of_time(self.clock() + expected)

    def _instead(self, data: Baskets, *starts: Kernel) -> Run:
        """The start if there is one yet, or independent items where these are likelier."""
        kernels = (*starts, independent(data, nonempty=self.nonempty))
        runs = [self.unmoved(kernel, data, Stop.MAX_SECONDS, self.clock()) for kernel in kernels]
        return max(runs, key=lambda run: run.merit)


@dataclass(frozen=True)
class Work:
    """What stays the same over the runs of a fit."""

    method: Method
    data: Baskets
    first_start: Kernel | DPP | None
    observers: Sequence[Observer]
    save: Saver | None


def all_runs(work: Work, state: FitState) -> tuple[FitState, Stop | None]:
    """Every run that is still to do; the reason for which the whole fit ended early, if it did."""
    for number in range(len(state.finished), state.setting.restarts):
        if state.best is not None and state.running is None and work.method.out_of_time(work.method.starting):
            return state, Stop.MAX_SECONDS
        last = None
        try:
            last = _one_run(work, state)
            last = _at_least_the_start(work, state, last)
            if work.save is not None:
                work.save(state.with_running(last), True)
        except KeyboardInterrupt:
            if last is None and state.best is None:
                raise
            if last is None:
                return state, Stop.INTERRUPTED
            last = replace(last, stop=Stop.INTERRUPTED)
        state = state.with_finished(last, _start_name(state.setting, number))
        if last.stop in ENDS_THE_FIT:
            return state, last.stop
    return state, None


def _one_run(work: Work, state: FitState) -> Run:
    def observe(now: Run) -> bool:
        if work.save is not None:
            work.save(state.with_running(now), now.n_iter == 0)
        answers = [observer(len(state.finished), now) for observer in work.observers]
        return any(answers)

    return work.method.run(lambda: _start(work, state), work.data, observe, state.running)


def _at_least_the_start(work: Work, state: FitState, last: Run) -> Run:
    """Learners may begin a little below the model they are given, so that a run cut short may end below it."""
    if _start_name(state.setting, len(state.finished)) != "given":
        return last
    assert last.stop is not None
    unmoved = work.method.unmoved(_start(work, state), work.data, last.stop, last.seconds)
    return unmoved if unmoved.merit > last.merit else last


def _start_name(setting: Setting, number: int) -> str:
    """A start that is not random is used once; further runs are Wishart draws."""
    return setting.init if number == 0 or setting.init not in {"given", *DETERMINISTIC} else "wishart"


def _start(work: Work, state: FitState) -> Kernel:
    number = len(state.finished)
    rng = np.random.default_rng(state.seeds[number])
    name, given = _start_name(state.setting, number), work.first_start
    if name != "given":
        return INITIALISERS[name](work.data, rng)
    if isinstance(given, DPP):
        return adapted(given.kernel, given.catalogue, work.data, rng)
    assert given is not None
    if given.n_items != work.data.n_items:
        raise InputError(
            f"the start has {given.n_items} items, but the baskets have {work.data.n_items}; "
            "pass a DPP, whose items are matched by label"
        )
    return given
