"""The phases of a fit: where it begins, the prior, the runs, the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.parts import AnyBaskets
from dpplearn.fitting.checkpoint import FitState, Saver, Search, Setting, fingerprint, read_checkpoint
from dpplearn.fitting.data import Data
from dpplearn.fitting.effort import NO_TIME, around_a_run
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.prior import centre, pseudo_baskets, with_prior
from dpplearn.fitting.prior_choice import PriorChoice, choose_prior
from dpplearn.fitting.result import Agreement, FitResult
from dpplearn.fitting.runs import Method, Work, all_runs, outcome
from dpplearn.fitting.unseen import with_unseen
from dpplearn.fitting.watching import choice_progress
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.independent import independent_log_likelihood
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Limits, Record, Run, Stop, Validation
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import FACTORED
from dpplearn.models.blending import blend_weight
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training


def state_of(options: FitOptions, distinct: AnyBaskets, first_start: str, rng: Seed) -> FitState:
    """Where the fit begins, or goes on."""
    setting = Setting(
        options.how.name,
        first_start,
        options.restarts,
        options.strength,
        options.aside,
        options.given_nonempty,
        fingerprint(distinct),
        *((options.n_segments, options.attraction, options.n_columns) if options.how.model == "mixture" else ()),
    )
    if options.resume is not None:
        return read_checkpoint(options.resume, setting)
    seeds = np.random.default_rng(rng).integers(2**63, size=options.restarts + 2)
    return FitState(setting, tuple(int(seed) for seed in seeds))


def method_of(options: FitOptions, data: Data, clock: Callable[[], float]) -> Method:
    expected = around_a_run(data.distinct.n_items, options) if options.max_seconds is not None else NO_TIME
    validation = None
    if data.aside is not None:
        validation = Validation(partial(_of_data, data.problem(options, data.aside)), options.waits)
    return Method(
        options.how,
        Limits(options.how.rule, options.tolerance, options.max_iter, options.max_seconds, expected.ending),
        clock,
        validation,
        expected.starting,
    )


def prior_of(
    options: FitOptions, data: Data, method: Method, state: FitState, save: Saver | None
) -> tuple[PriorChoice | None, FitState]:
    """The strength by cross-validation, if that is asked for; what is done of it is kept."""
    if options.strength != "auto":
        return None, state

    def keep(search: Search) -> None:
        nonlocal state
        state = replace(state, search=search, elapsed=method.clock())
        if save is not None:
            save(state, True)
        show(len(search.held_out))

    with choice_progress(options.progress) as show:
        choice = choose_prior(data.problem(options, data.units), method, state.seeds[-2], state.search, keep)
    return choice, state


@dataclass(frozen=True)
class End:
    """The run whose model is returned, what that started from, all runs, and why the fit ended if not as that run."""

    run: Run
    start: str
    state: FitState
    stop: Stop | None = None


def independent_items(
    options: FitOptions, data: Data, method: Method, state: FitState, save: Saver | None, choice: PriorChoice | None
) -> End:
    """What an infinitely strong prior gives, without a run."""
    in_time = choice is None or choice.complete
    why = Stop.CLOSED_FORM if in_time else Stop.MAX_SECONDS
    kernel = centre(data.distinct, nonempty=options.given_nonempty)
    run = method.ended_at(kernel, data.problem(options), why, Record())
    if save is not None:  # what was cut short goes on with the choice, and then from a start of its own
        save(state.with_running(run) if in_time else state, True)
    return End(run, "prior", state.with_finished(run, "prior"))


def best_run(work: Work, state: FitState) -> End:
    state, stop = all_runs(work, state)
    return End(*outcome(work, state), state, stop)


def result_of(
    options: FitOptions, data: Data, method: Method, end: End, strength: float, choice: PriorChoice | None
) -> FitResult:
    run, problem = end.run, data.problem(options)
    stop = end.stop or run.stop
    assert stop is not None
    baseline = independent_log_likelihood(problem.baskets, nonempty=problem.nonempty)
    of_data = _of_data(problem, run.kernel)
    learned = Provenance(
        learner=options.how.name,
        start=end.start,
        restarts=len(end.state.finished),
        n_iter=run.n_iter,
        evaluations=float(run.history.evaluations[-1]),
        stop=stop.name,
        prior=strength,
        prior_chosen=choice is not None,
        nonempty=options.given_nonempty,
        log_likelihood=of_data if strength or options.how.model == "mixture" else run.log_likelihood,
        independent_log_likelihood=baseline,
        n_baskets=len(data.given),
        n_distinct=len(data.distinct),
        weight=data.given.total_weight,
        seconds=method.clock(),
        validation=options.aside if data.aside is not None else None,
        validation_log_likelihood=run.score if data.aside is not None else None,
    )
    within = 2 * options.how.in_nats(options.tolerance, run.log_likelihood)
    agreement = Agreement.of([line.log_likelihood for line in end.state.finished], within)
    training = with_blend(Training.of(data.units, run.history), run.kernel, options, data, end.state.seeds[-1])
    if isinstance(data.aside, Baskets):
        law = law_of(run.kernel, nonempty=options.given_nonempty)
        learned = with_unseen(learned, law, training, data.aside, nonempty=options.given_nonempty)
    model = _model(run.kernel, data.distinct.items, options, learned, training)
    return FitResult(model, run.history, stop, end.state.finished, baseline, agreement, choice)


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


def _model(
    kernel: AnyKernel, items: Sequence[Label], options: FitOptions, learned: Provenance, training: Training
) -> DPP | Mixture:
    make: Any = DPP if isinstance(kernel, Kernel) else Mixture
    model: DPP | Mixture = make(kernel, items, nonempty=options.given_nonempty, learned=learned, training=training)
    return model


def baskets_with_prior(options: FitOptions, distinct: AnyBaskets, strength: float) -> AnyBaskets:
    if not strength:
        return distinct
    nonempty = options.given_nonempty
    return with_prior(distinct, pseudo_baskets(distinct, nonempty=nonempty), strength, nonempty=nonempty)
