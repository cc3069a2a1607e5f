"""The phases of a fit: the learner, the shrinkage, the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.fitting.checkpoint import fingerprint
from dpplearn.fitting.data import Data
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import ENDS_THE_FIT, End, Method, Restart
from dpplearn.fitting.shrinkage import choose_shrinkage, shrink, usual_shrinkage
from dpplearn.fitting.unseen import with_unseen
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.independent import SMOOTHING, independent, independent_log_likelihood
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Arrays, Limits, Record, Run, Stop, Validation
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import FACTORED
from dpplearn.models.blending import blend_weight
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.progress import shown_progress


def method_of(options: FitOptions, data: Data, clock: Callable[[], float]) -> Method:
    validation = None
    if data.aside is not None:
        validation = Validation(partial(_of_data, data.problem(options, data.aside)), options.waits)
    limits = Limits(options.how.rule, options.tolerance, options.max_iter, options.max_seconds)
    return Method(options.how, limits, clock, validation)


def independent_items(options: FitOptions, data: Data, method: Method) -> End:
    """Return independent items with smoothed frequencies (shrinkage 1), which need no run."""
    kernel = independent(data.distinct, smoothing=SMOOTHING, nonempty=options.given_nonempty)
    run = method.ended_at(kernel, data.problem(options), Stop.CLOSED_FORM, Record())
    return End(run, "independent", (Restart.of(run, "independent"),))


class Shrinkage(NamedTuple):
    """A kernel after shrinkage, the shrinkage, and whether cross-validation chose it."""

    kernel: AnyKernel
    value: float = 0.0
    chosen: bool = False


def shrunk(options: FitOptions, data: Data, method: Method, end: End, seed: int) -> Shrinkage:
    """Shrink the learned kernel by the shrinkage that was asked for, or by the one that cross-validation chooses."""
    kernel, value = end.run.kernel, options.resolved_shrinkage
    if not isinstance(kernel, Kernel):
        return Shrinkage(kernel)
    chosen = None
    if value == "auto":
        if (end.stop or end.run.stop) not in ENDS_THE_FIT:
            with shown_progress(options.progress, transient=True) as shown:
                shown.bar("cross-validating the shrinkage")
                rng = np.random.default_rng(seed)
                chosen = choose_shrinkage(data.problem(options, data.units), method, rng)
        value = usual_shrinkage(data.distinct) if chosen is None else chosen
    value = float(value)
    return Shrinkage(shrink(kernel, data.distinct, value, nonempty=options.given_nonempty), value, chosen is not None)


@dataclass(frozen=True, eq=False)
class ModelBuilder:
    """Makes models, with their training record, from the state of a run."""

    options: FitOptions
    data: Data
    whole: AnyBaskets  # distinct baskets of the training and the validation set
    clock: Callable[[], float]
    seed: int  # of the split into training and validation set

    @cached_property
    def problem(self) -> Problem:
        return self.data.problem(self.options)

    @cached_property
    def baseline(self) -> float:
        return independent_log_likelihood(self.problem.baskets, nonempty=self.problem.nonempty)

    @cached_property
    def training(self) -> Training:
        return Training.of(self.data.units)

    def learned(
        self, run: Run, shrinkage: Shrinkage, start: str, restarts: int, stop: Stop | None = None
    ) -> Provenance:
        options, data = self.options, self.data
        log_likelihood, validation = run.log_likelihood, None if data.aside is None else run.score
        if shrinkage.value or options.how.model == "mixture":  # the objective is then not the likelihood of the model
            log_likelihood = _of_data(self.problem, shrinkage.kernel)
        if shrinkage.value and data.aside is not None:
            validation = _of_data(data.problem(options, data.aside), shrinkage.kernel)
        return Provenance(
            learner=options.how.name,
            start=start,
            restarts=restarts,
            n_iter=run.n_iter,
            evaluations=float(run.history.evaluations[-1]),
            stop=None if stop is None else stop.name,
            shrinkage=shrinkage.value,
            shrinkage_chosen=shrinkage.chosen,
            nonempty=options.given_nonempty,
            log_likelihood=log_likelihood,
            independent_log_likelihood=self.baseline,
            n_baskets=len(data.given),
            n_distinct=len(data.distinct),
            weight=data.given.total_weight,
            seconds=self.clock(),
            validation=options.aside if data.aside is not None else None,
            validation_log_likelihood=validation,
        )

    def model(self, kernel: AnyKernel, learned: Provenance, training: Training) -> DPP | Mixture:
        make: Any = DPP if isinstance(kernel, Kernel) else Mixture
        items, nonempty = self.data.distinct.items, self.options.given_nonempty
        model: DPP | Mixture = make(kernel, items, nonempty=nonempty, learned=learned, training=training)
        return model

    def model_so_far(self, start: str, restarts: int, run: Run) -> DPP | Mixture:
        """The model of an unfinished run, before shrinkage."""
        learned = self.learned(run, Shrinkage(run.kernel), start, restarts)
        return self.model(run.kernel, learned, replace(self.training, history=run.history))

    @cached_property
    def _data_mark(self) -> Arrays:
        assert isinstance(self.whole, Baskets)  # the options refuse low-rank fits of baskets in parts
        return {"data": fingerprint(self.whole, self.options), "seed": np.array([self.seed])}

    def schedule(self, run: Run) -> Arrays | None:
        """The state of the schedule of a low-rank fit, as a checkpoint saves it."""
        return None if run.step.schedule is None else {**run.step.schedule, **self._data_mark}


def result_of(builder: ModelBuilder, end: End, shrinkage: Shrinkage) -> FitResult:
    run, kernel, options, data = end.run, shrinkage.kernel, builder.options, builder.data
    stop = end.stop or run.stop
    assert stop is not None
    learned = builder.learned(run, shrinkage, end.start, len(end.restarts), stop)
    training = replace(builder.training, history=run.history)
    training = with_blend(training, kernel, options, data, builder.seed)
    if isinstance(data.aside, Baskets):
        law = law_of(kernel, nonempty=options.given_nonempty)
        learned = with_unseen(learned, law, training, data.aside, nonempty=options.given_nonempty)
    model = builder.model(kernel, learned, training)
    return FitResult(model, run.history, stop, end.restarts, builder.baseline)


def with_blend(training: Training, kernel: AnyKernel, options: FitOptions, data: Data, seed: int) -> Training:
    """With the weight that item-to-item has beside the model where both rank, learned from what was set aside: in
    large catalogues, rare items go together in ways that few columns cannot say."""
    if options.how is not FACTORED or not isinstance(data.aside, Baskets):
        return training
    law = law_of(kernel, nonempty=options.given_nonempty)
    return replace(training, blend=blend_weight(law, training, data.aside, np.random.default_rng(seed)))


def _of_data(problem: Problem, kernel: AnyKernel) -> float:
    """The mean log-likelihood under the law, whatever else learning counted."""
    return law_of(kernel, nonempty=problem.nonempty).mean_log_likelihood(problem.baskets, problem.threads)
