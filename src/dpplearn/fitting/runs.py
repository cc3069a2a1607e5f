"""The runs of a fit: each from a start of its own, the best of them kept, all of it resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpplearn.errors import InputError
from dpplearn.fitting.checkpoint import FitState, Saver, Setting
from dpplearn.kernels.families import AnyKernel
from dpplearn.learners.loop import NO_MEMORY, Limits, Record, Run, Step, Stop, Validation, run
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import Learner
from dpplearn.learners.starts import DETERMINISTIC
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.tools.words import count

FEW_ITEMS, STARTS = 30, 9  # on so few items runs are short, and optima that depend on the start are common
SHORT_RUN, SHORT_TOL = 60, 0.01  # steps, and nats still to be gained, at which a start has shown what it is worth
ASKED_TO_STOP = {Stop.INTERRUPTED, Stop.CALLBACK}
ENDS_THE_FIT = {*ASKED_TO_STOP, Stop.MAX_SECONDS}

Observe = Callable[[Run], bool]
Observer = Callable[[int, Run], Any]


@dataclass(frozen=True)
class Method:
    """How to learn, whatever from and whatever the start."""

    learner: Learner
    limits: Limits
    clock: Callable[[], float]
    validation: Validation | None = None
    starting: float = 0.0  # seconds that a start is expected to take

    def run(
        self, start: Callable[[], AnyKernel], problem: Problem, observe: Observe, earlier: Run | None = None
    ) -> Run:
        """One run, or the rest of one; where there is no time for a step, what there is instead."""
        if earlier is not None and earlier.n_iter:
            steps = self.learner.steps(earlier.kernel, problem, earlier.step.memory)
        else:  # what came before the first step may not be a start, and the same start comes again
            earlier = None
            if self.out_of_time(self.starting):
                return self._instead(problem)
            kernel = start()
            if self.out_of_time():
                return self._instead(problem, kernel)
            steps = self.learner.steps(kernel, problem, NO_MEMORY)
        at_end = self.learner.at_end
        last = run(steps, self.limits, self.clock, observe, earlier, self.validation, at_end)
        try:
            return self._off_saddle(last, problem, observe)
        except KeyboardInterrupt:
            return replace(last, stop=Stop.INTERRUPTED)

    def _off_saddle(self, last: Run, problem: Problem, observe: Observe) -> Run:
        """A run that converged where items fall into independent blocks goes on from beside that point, if that is
        better. The paper's learners stop where they stop."""
        if last.stop is not Stop.TOLERANCE or not self.learner.leaves_saddles or self.out_of_time(self.starting):
            return last
        beside = problem.off_saddle(last.kernel)
        if beside is None:
            return last
        again = self.learner.steps(beside, problem, NO_MEMORY)
        other = run(again, self.limits, self.clock, observe, validation=self.validation)
        better = other if other.score > last.score + self.limits.tol else last
        return replace(better, stop=other.stop) if other.stop in ASKED_TO_STOP else better

    def most_promising(self, starts: Iterable[AnyKernel], problem: Problem) -> AnyKernel:
        """The start from which a short run got highest.

        And not where it got to: how much is still to be gained, the rule judges by the whole way from a start.
        """
        return max(starts, key=lambda start: self._short_run(start, problem).score)

    def _short_run(self, start: AnyKernel, problem: Problem) -> Run:
        limits = replace(self.limits, tol=max(self.limits.tol, SHORT_TOL), max_iter=SHORT_RUN)
        end = run(self.learner.steps(start, problem, NO_MEMORY), limits, self.clock, lambda _: False)
        assert end.stop is not None
        end.stop.raise_if_interrupted()  # no run has begun that could end there
        return end

    def ended_at(self, kernel: AnyKernel, problem: Problem, stop: Stop, record: Record) -> Run:
        """A run whose last step, after what the record has, is this kernel."""
        step = Step(kernel, problem.log_likelihood(kernel), 0.0, 0.5)
        record.add(step, self.clock(), self.validation.score(kernel) if self.validation is not None else np.nan)
        return Run(step, record, len(record.log_likelihood) - 1, stop)

    def at_least(self, kernel: AnyKernel, last: Run, problem: Problem) -> Run:
        """The run, or if it ended below this kernel, that as its last step; then the run's convergence says nothing.
        Where there was to be no step, it is the start."""
        assert last.stop is not None
        before = Record.of(last.history) if self.limits.max_iter else Record()
        other = self.ended_at(kernel, problem, last.stop, before)
        if not other.score > last.score:
            return last
        apart = other.score > last.score + self.limits.tol
        return replace(other, stop=Stop.NOT_BETTER) if apart and last.stop is Stop.TOLERANCE else other

    def out_of_time(self, expected: float = 0.0) -> bool:
        """Whether there is no time left for work of so many seconds."""
        return self.limits.out_of_time(self.clock() + expected)

    def _instead(self, problem: Problem, *starts: AnyKernel) -> Run:
        """The start if there is one yet, or independent items where these are likelier."""
        kernels = (*starts, problem.independent_items())
        runs = [self.ended_at(kernel, problem, Stop.MAX_SECONDS, Record()) for kernel in kernels]
        return max(runs, key=lambda run: run.score)


@dataclass(frozen=True)
class Work:
    """What stays the same over the runs of a fit."""

    method: Method
    problem: Problem
    first_start: AnyKernel | DPP | Mixture | None
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
            if work.save is not None:
                work.save(state.with_running(last), True)
        except KeyboardInterrupt:
            if last is None and state.best is None:
                raise
            if last is None:
                return state, Stop.INTERRUPTED
            last = replace(last, stop=Stop.INTERRUPTED)
        state = state.with_finished(last, _start_name(work, state.setting, number))
        if last.stop in ENDS_THE_FIT:
            return state, last.stop
    return state, None


def outcome(work: Work, state: FitState) -> tuple[Run, str]:
    """The best of the runs, and the name of its start; or what no fit ends below, if that is better: the model given as
    a start, or else independent items. The paper's learners from their own starts end where they end; and who asks for
    no iteration asks for the start."""
    best = state.best
    assert best is not None
    came_from = state.best_start
    if work.first_start is not None:
        name, yardstick = "given", _given(work, state)
    elif work.method.learner.as_published or not work.method.limits.max_iter:
        return best, came_from
    else:
        name, yardstick = "independent", work.problem.yardstick()
    try:
        at_least = work.method.at_least(yardstick, best, work.problem)
    except KeyboardInterrupt:
        return replace(best, stop=Stop.INTERRUPTED), came_from
    return at_least, came_from if at_least is best else name


def _one_run(work: Work, state: FitState) -> Run:
    def observe(now: Run) -> bool:
        if work.save is not None:
            work.save(state.with_running(now), now.n_iter == 0)
        answers = [observer(len(state.finished), now) for observer in work.observers]
        return any(answers)

    return work.method.run(lambda: _start(work, state), work.problem, observe, state.running)


def _start_name(work: Work, setting: Setting, number: int) -> str:
    """A start that is not random is used once; further runs start at random."""
    random = work.method.learner.random_start
    return setting.init if number == 0 or setting.init not in {"given", *DETERMINISTIC} else random


def _start(work: Work, state: FitState) -> AnyKernel:
    number = len(state.finished)
    name = _start_name(work, state.setting, number)
    if name == "given":
        return _given(work, state)
    kernel = work.problem.start(name, np.random.default_rng(state.seeds[number]))
    return kernel if name not in DETERMINISTIC else _or_elsewhere(kernel, work)


def _or_elsewhere(kernel: AnyKernel, work: Work) -> AnyKernel:
    """The signs of a start from pair frequencies are a guess, and where items are few and repel strongly, a wrong guess
    ends in a lesser optimum. Some other starts, the same for the same data, are then tried beside it."""
    method, baskets = work.method, work.problem.baskets
    if not method.learner.tries_starts or baskets.n_items > FEW_ITEMS or method.limits.max_iter <= SHORT_RUN:
        return kernel
    rng = np.random.default_rng(0)
    others = (work.problem.start(method.learner.random_start, rng) for _ in range(STARTS - 1))
    return method.most_promising([kernel, *others], work.problem)


def _given(work: Work, state: FitState) -> AnyKernel:
    """The start of the first run, over the catalogue of the data."""
    given = work.first_start
    if isinstance(given, DPP | Mixture):
        return work.problem.adapted(given.kernel, given.catalogue, np.random.default_rng(state.seeds[0]))
    assert given is not None
    if given.n_items != work.problem.baskets.n_items:
        raise InputError(
            f"the start has {count(given.n_items, 'item')}, but the baskets have {work.problem.baskets.n_items}; "
            "pass a model, whose items are matched by label"
        )
    return given
