"""A fit: runs from several starts, the best of them, shrinkage, and the result."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any, cast

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import SMOOTHING, independent
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callback, as_callbacks, notify, saved_on_exit
from dpplearn.learners.data import TrainingData, checked_baskets
from dpplearn.learners.kernels import Kernel
from dpplearn.learners.loop import Arrays, Run, Step, Stop, entry_of, run
from dpplearn.learners.problem import Finished, Problem
from dpplearn.learners.result import FitProgress, FitResult, Restart, with_unseen
from dpplearn.learners.settings import Settings, Task
from dpplearn.learners.shrinkage import choose_shrinkage, shrink, usual_shrinkage
from dpplearn.learners.starts import DETERMINISTIC
from dpplearn.models.blending import blend_weight
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import load
from dpplearn.models.record import Provenance, Training
from dpplearn.utils.threads import suitable_blas

ENDS_THE_FIT = {Stop.CALLBACK, Stop.MAX_SECONDS}
GIVEN, CONTINUED, INDEPENDENT = "given", "checkpoint", "independent"  # names of starts that are models


def fit_with(
    settings: Settings,
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    start: Any = None,
    rng: Seed = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[Any]:
    """Fit a model with checked settings."""
    given, start = checked_baskets(baskets), opened_start(start, settings.model_type)
    return fit_task(settings.like(start).task(given), start, rng=rng, callback=callback)


def fit_task(
    task: Task,
    start: DPP | Mixture | None = None,
    *,
    rng: Seed = None,
    callback: Callback | Sequence[Callback] | None = None,
    as_weighed: bool = False,
) -> FitResult[Any]:
    """Run the learner of a task on all of its baskets, and return the result.

    With `as_weighed`, weights count baskets, also fractions of them.
    """
    began = time.perf_counter()
    callbacks, baskets = as_callbacks(callback), task.problem.baskets
    with saved_on_exit(callbacks), suitable_blas(baskets.n_items, task.problem.threads):
        task.check_memory()
        seeds = [int(each) for each in np.random.default_rng(rng).integers(2**63, size=task.restarts + 2)]
        whole = TrainingData.of(baskets, as_weighed=as_weighed)
        return Fit(task, whole, start, seeds, lambda: time.perf_counter() - began, callbacks).result()


def opened_start(start: Any, model_type: type[SetModel]) -> Any:
    """Return the model of a start: a model, the result of a fit, or a file."""
    found = load(start) if isinstance(start, str | PathLike) else start
    found = found.model if isinstance(found, FitResult) else found
    if found is not None and not isinstance(found, model_type):
        expected = model_type.__name__
        raise InputError(f"start must be a {expected}, the result of a fit or a model file, got {type(found).__name__}")
    return found


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit in progress."""

    task: Task
    whole: TrainingData  # before baskets are held out
    start: DPP | Mixture | None
    seeds: Sequence[int]  # one per run, one for folds and one for the validation set
    clock: Callable[[], float]
    callbacks: Sequence[Callback] = ()

    @cached_property
    def schedule(self) -> Arrays | None:
        """The schedule of a checkpoint to start from, if it belongs to the same baskets and settings."""
        training = None if self.start is None else self.start.training
        found = None if training is None else training.schedule
        if found is None or not self.task.problem.can_continue(found):
            return None
        return found if np.array_equal(found["data"], self.fingerprint) else None

    @cached_property
    def fingerprint(self) -> Any:
        """Digest of the baskets, and of the settings that decide which of them are learned from and how."""
        baskets = self.whole.distinct
        assert isinstance(baskets, Baskets)  # the settings reject low-rank fits of baskets in parts
        settings = [list(baskets.items), self.task.problem.nonempty, self.task.validation]
        digest = hashlib.sha256(json.dumps(settings).encode())
        for array in (baskets.indices, baskets.offsets, baskets.weights):
            digest.update(np.ascontiguousarray(array).tobytes())
        return np.frombuffer(digest.digest(), np.uint8)

    @cached_property
    def split_seed(self) -> int:
        """Seed of the validation set; a continued schedule has the same set as before."""
        return self.seeds[-1] if self.schedule is None else int(self.schedule["seed"][0])

    @cached_property
    def data(self) -> TrainingData:
        return self.whole.hold_out(self.task.validation, self.split_seed)

    @cached_property
    def problem(self) -> Problem:
        return replace(self.task.problem, baskets=self.data.distinct)

    @cached_property
    def validate(self) -> Callable[[Kernel], float] | None:
        if self.data.validation is None:
            return None
        return replace(self.task.problem, baskets=self.data.validation).log_likelihood

    @cached_property
    def training(self) -> Training:
        """Statistics of all baskets given."""
        return Training.of(self.whole.units)

    def result(self) -> FitResult[Any]:
        """Run the learner, and return the best model."""
        if self.task.shrinkage == 1:
            kernel = independent(self.data.distinct, smoothing=SMOOTHING, nonempty=self.problem.nonempty)
            end = self._run_at(kernel, Stop.CLOSED_FORM)
            finished = Finished(kernel, {"shrinkage": 1.0, "shrinkage_chosen": False})
            return self._result(end, INDEPENDENT, [Restart.of(end, INDEPENDENT)], finished)
        runs: list[tuple[Run, str]] = []
        stop = None
        for number in range(self.task.restarts):
            if runs and self.task.limits.out_of_time(self.clock()):
                stop = Stop.MAX_SECONDS
                break
            runs.append((self._one_run(number), self._start_name(number)))
            if runs[-1][0].stop in ENDS_THE_FIT:
                stop = runs[-1][0].stop
                break
        restarts = [Restart.of(*each) for each in runs]
        best, start = self._not_worse(*max(runs, key=lambda each: each[0].score))  # the first of equally good ones
        best = replace(best, stop=stop or best.stop)
        return self._result(best, start, restarts, self._finished(best))

    def _one_run(self, number: int) -> Run:
        def observe(now: Run) -> bool:
            build, numbers = partial(self._model_so_far, number, now), now.entry[:-1]  # without the objective
            schedule = self._schedule_of(now)
            progress = FitProgress(number, now.n_iter, *numbers, now.score, now.step.share, build, schedule)
            return notify(self.callbacks, progress)

        learner = self.task.learner
        steps = learner.steps(self._start(number), self.problem)
        return run(steps, self.task.limits, self.clock, observe, self.validate, learner.at_end)

    def _start_name(self, number: int) -> str:
        """Deterministic starts are used once; further runs start at random."""
        first = self.task.init if self.start is None else GIVEN if self.schedule is None else CONTINUED
        again = first if self.start is None and first not in DETERMINISTIC else self.problem.random_start
        return again if number else first

    def _start(self, number: int) -> Any:
        name = self._start_name(number)
        if name == CONTINUED and self.schedule is not None:
            return self.problem.continued(self.schedule)
        if name == GIVEN:
            return self.problem.start_from(self._given_kernel())
        return self.problem.initial(name, np.random.default_rng(self.seeds[number]))

    def _given_kernel(self) -> Kernel:
        return self.problem.adapted(self.start, np.random.default_rng(self.seeds[0]))

    def _not_worse(self, best: Run, start: str) -> tuple[Run, str]:
        """Return the run, or a run that ends at `start` or at independent items if these are better.

        "em" and "k-ascent" follow the paper and are not compared with independent items; neither is a fit with
        `max_iter=0`, which returns the start.
        """
        if self.start is not None:
            at_least = self._at_least(best, self._given_kernel())
            best, start = at_least, start if at_least is best else GIVEN
        baseline = None if self.task.learner.as_published or not self.task.limits.max_iter else self.problem.baseline()
        if baseline is None:
            return best, start
        at_least = self._at_least(best, baseline)
        return at_least, start if at_least is best else INDEPENDENT

    def _at_least(self, last: Run, kernel: Kernel) -> Run:
        """Return the run, or the run with `kernel` as its last step if that is better.

        A run that converged to a worse model did not find the optimum: it then stopped with `NOT_BETTER`.
        """
        assert last.stop is not None
        other = self._run_at(kernel, last.stop, last if self.task.limits.max_iter else None)
        if not other.score > last.score:
            return last
        apart = other.score > last.score + self.task.limits.tol
        return replace(other, stop=Stop.NOT_BETTER) if apart and last.stop is Stop.TOLERANCE else other

    def _run_at(self, kernel: Kernel, stop: Stop, before: Run | None = None) -> Run:
        """Return a run whose last step is this kernel."""
        step = Step(kernel, self.problem.log_likelihood(kernel), 0.0, 0.5, self.problem.objective(kernel))
        validation = np.nan if self.validate is None else self.validate(kernel)
        entries = [] if before is None else before.entries[: before.n_iter + 1]
        return Run(step, [*entries, entry_of(step, self.clock(), validation, entries)], len(entries), stop)

    def _finished(self, end: Run) -> Finished:
        """Return the kernel to return: that of the last step, shrunk as requested or as cross-validation chooses."""
        value, chosen = self.task.shrinkage, None
        if value == 0:
            return self.problem.finished(end.step)
        if value == "auto":
            if end.stop not in ENDS_THE_FIT:
                rng = np.random.default_rng(self.seeds[-2])
                chosen = choose_shrinkage(self.task, self.data.units, self.clock, rng)
            value = usual_shrinkage(self.data.distinct) if chosen is None else chosen
        value, learned = float(value), cast(SpectralDPP, end.kernel)  # only the settings of a DPP have shrinkage
        kernel = shrink(learned, self.data.distinct, value, nonempty=self.problem.nonempty)
        return Finished(kernel, {"shrinkage": value, "shrinkage_chosen": chosen is not None})

    def _schedule_of(self, now: Run) -> Arrays | None:
        """Return the state of a schedule, as a checkpoint saves it."""
        found = now.step.schedule
        return None if found is None else {**found, "data": self.fingerprint, "seed": np.array([self.split_seed])}

    def _model_so_far(self, number: int, now: Run) -> DPP | Mixture:
        """Return the model of an unfinished run, before shrinkage."""
        learned = self._learned(now, self._start_name(number), Finished(now.kernel), restarts=number + 1)
        model: DPP | Mixture = self.problem.model(now.kernel, learned, replace(self.training, history=now.history))
        return model

    def _learned(self, end: Run, start: str, finished: Finished, **more: Any) -> Provenance:
        whole, kernel = replace(self.task.problem, baskets=self.whole.distinct), finished.kernel
        validation = None
        if self.validate is not None:
            validation = end.entry.validation if kernel is end.kernel else self.validate(kernel)
        facts = {"shrinkage": 0.0, "shrinkage_chosen": False, **self.problem.facts(), **finished.facts, **more}
        return Provenance(
            learner=self.task.learner.name,
            start=start,
            n_iter=end.n_iter,
            evaluations=end.entry.evaluations,
            weight=self.training.weight,
            seconds=self.clock(),
            nonempty=self.problem.nonempty,
            log_likelihood=whole.log_likelihood(kernel),
            independent_log_likelihood=whole.independent_log_likelihood(),
            n_baskets=len(self.task.problem.baskets),
            n_distinct=len(self.whole.distinct),
            digest=self.whole.distinct.digest() if isinstance(self.whole.distinct, Baskets) else None,
            validation=self.task.validation or None,
            validation_log_likelihood=validation,
            **facts,
        )

    def _result(self, end: Run, start: str, restarts: Sequence[Restart], finished: Finished) -> FitResult[Any]:
        assert end.stop is not None
        learned = self._learned(end, start, finished, restarts=len(restarts), stop=end.stop.name)
        training, nonempty = replace(self.training, history=end.history), self.problem.nonempty
        distribution = self.problem.distribution(finished.kernel)
        if isinstance(self.data.validation, Baskets):
            learned_from = Training.of(self.data.units)
            if self.problem.blends:
                rng = np.random.default_rng(self.split_seed)
                blend = blend_weight(distribution, learned_from, self.data.validation, rng)
                training = replace(training, blend=blend)
            if isinstance(self.data.test, Baskets):
                learned = with_unseen(learned, distribution, learned_from, self.data.test, nonempty=nonempty)
        model = self.problem.model(finished.kernel, learned, training)
        return FitResult(model, end.history, end.stop, tuple(restarts), finished.quality)
