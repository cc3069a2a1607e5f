"""The phases of a fit: where it begins, the prior, the runs, the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.fitting.checkpoint import fingerprint
from dpplearn.fitting.data import Data
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.prior import centre, pseudo_baskets, with_prior
from dpplearn.fitting.prior_choice import PriorChoice, choose_prior
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import End, Method, Restart
from dpplearn.fitting.unseen import with_unseen
from dpplearn.fitting.watching import choice_progress
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.independent import independent_log_likelihood
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Arrays, Limits, Record, Run, Stop, Validation
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import FACTORED
from dpplearn.models.blending import blend_weight
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training


def method_of(options: FitOptions, data: Data, clock: Callable[[], float]) -> Method:
    validation = None
    if data.aside is not None:
        validation = Validation(partial(_of_data, data.problem(options, data.aside)), options.waits)
    limits = Limits(options.how.rule, options.tolerance, options.max_iter, options.max_seconds)
    return Method(options.how, limits, clock, validation)


def prior_of(options: FitOptions, data: Data, method: Method, seed: int) -> PriorChoice | None:
    """The strength by cross-validation, if that is asked for."""
    if options.strength != "auto":
        return None
    with choice_progress(options.progress) as show:
        return choose_prior(data.problem(options, data.units), method, seed, show)


def independent_items(options: FitOptions, data: Data, method: Method, choice: PriorChoice | None) -> End:
    """What an infinitely strong prior gives, without a run."""
    why = Stop.CLOSED_FORM if choice is None or choice.complete else Stop.MAX_SECONDS
    kernel = centre(data.distinct, nonempty=options.given_nonempty)
    run = method.ended_at(kernel, data.problem(options), why, Record())
    return End(run, "prior", (Restart.of(run, "prior"),))


@dataclass(frozen=True, eq=False)
class ModelBuilder:
    """Makes models, with their training record, from the state of a run."""

    options: FitOptions
    data: Data
    whole: AnyBaskets  # distinct baskets of the training and the validation set
    clock: Callable[[], float]
    seed: int  # of the split into training and validation set
    strength: float
    choice: PriorChoice | None

    @cached_property
    def problem(self) -> Problem:
        return self.data.problem(self.options)

    @cached_property
    def baseline(self) -> float:
        return independent_log_likelihood(self.problem.baskets, nonempty=self.problem.nonempty)

    @cached_property
    def training(self) -> Training:
        return Training.of(self.data.units)

    def learned(self, run: Run, start: str, restarts: int, stop: Stop | None = None) -> Provenance:
        options, data = self.options, self.data
        of_data = bool(self.strength) or options.how.model == "mixture"  # the objective is then not the likelihood
        return Provenance(
            learner=options.how.name,
            start=start,
            restarts=restarts,
            n_iter=run.n_iter,
            evaluations=float(run.history.evaluations[-1]),
            stop=None if stop is None else stop.name,
            prior=self.strength,
            prior_chosen=self.choice is not None,
            nonempty=options.given_nonempty,
            log_likelihood=_of_data(self.problem, run.kernel) if of_data else run.log_likelihood,
            independent_log_likelihood=self.baseline,
            n_baskets=len(data.given),
            n_distinct=len(data.distinct),
            weight=data.given.total_weight,
            seconds=self.clock(),
            validation=options.aside if data.aside is not None else None,
            validation_log_likelihood=run.score if data.aside is not None else None,
        )

    def model(self, run: Run, learned: Provenance, training: Training) -> DPP | Mixture:
        make: Any = DPP if isinstance(run.kernel, Kernel) else Mixture
        items, nonempty = self.data.distinct.items, self.options.given_nonempty
        model: DPP | Mixture = make(run.kernel, items, nonempty=nonempty, learned=learned, training=training)
        return model

    def model_so_far(self, start: str, restarts: int, run: Run) -> DPP | Mixture:
        return self.model(run, self.learned(run, start, restarts), replace(self.training, history=run.history))

    @cached_property
    def _data_mark(self) -> Arrays:
        assert isinstance(self.whole, Baskets)  # the options refuse low-rank fits of baskets in parts
        return {"data": fingerprint(self.whole, self.options), "seed": np.array([self.seed])}

    def schedule(self, run: Run) -> Arrays | None:
        """The state of the schedule of a low-rank fit, as a checkpoint saves it."""
        return None if run.step.schedule is None else {**run.step.schedule, **self._data_mark}


def result_of(builder: ModelBuilder, end: End) -> FitResult:
    run, options, data = end.run, builder.options, builder.data
    stop = end.stop or run.stop
    assert stop is not None
    learned = builder.learned(run, end.start, len(end.restarts), stop)
    training = replace(builder.training, history=run.history)
    training = with_blend(training, run.kernel, options, data, builder.seed)
    if isinstance(data.aside, Baskets):
        law = law_of(run.kernel, nonempty=options.given_nonempty)
        learned = with_unseen(learned, law, training, data.aside, nonempty=options.given_nonempty)
    model = builder.model(run, learned, training)
    return FitResult(model, run.history, stop, end.restarts, builder.baseline, builder.choice)


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


def baskets_with_prior(options: FitOptions, distinct: AnyBaskets, strength: float) -> AnyBaskets:
    if not strength:
        return distinct
    nonempty = options.given_nonempty
    return with_prior(distinct, pseudo_baskets(distinct, nonempty=nonempty), strength, nonempty=nonempty)
