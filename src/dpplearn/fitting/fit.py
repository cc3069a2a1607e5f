"""fit: the data, the prior, the runs, the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError
from dpplearn.fitting.checkpoint import FitState, Saver, Search, Setting, fingerprint, read_checkpoint, saver
from dpplearn.fitting.data import Data
from dpplearn.fitting.effort import (
    LONG,
    NO_TIME,
    Effort,
    around_a_run,
    check_fit_memory,
    duration,
    fit_effort,
    tell_if_long,
)
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.prior import centre, pseudo_baskets, with_prior
from dpplearn.fitting.prior_choice import PriorChoice, choose_prior
from dpplearn.fitting.result import Agreement, FitResult
from dpplearn.fitting.runs import Method, Work, all_runs, outcome
from dpplearn.fitting.watching import Callback, choice_progress, observers_of
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Limits, Record, Run, Stop, Validation
from dpplearn.learners.problem import Problem
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.files import check_writable
from dpplearn.tools.threads import suitable_blas

Start = Kernel | DPP | Mixture | FitResult | None


def fit(
    baskets: Baskets | Iterable[Iterable[Any]],
    learner: str | None = None,
    init: str | None = None,
    *,
    model: str | None = None,
    segments: int | None = None,
    attraction: bool = True,
    rank: int | None = None,
    start: Start = None,
    restarts: int = 1,
    rng: Seed = None,
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    prior: float | str | None = None,
    validation: float = 0.0,
    patience: int = 10,
    nonempty: bool | str = "auto",
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 10.0,
    resume: str | PathLike[str] | None = None,
) -> FitResult:
    """Learn a model of sets from baskets.

    No fit ends below independent items on what it maximises, but for "em" and "k-ascent", which do as published; nor
    below the model given as a start.

    Ctrl-C returns the best model so far, with `stop` set to `Stop.INTERRUPTED`. While a prior is chosen there is none
    yet, and `KeyboardInterrupt` is raised; with a checkpoint, what is known of the strengths is kept.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it.
    learner
        How a DPP is learned: "auto", which came to the best kernels soonest in our benchmark; "em", the paper's EM, or
        "k-ascent", its baseline; or, for comparison, "natural-em", "lbfgs", "picard", "mm" or "adam". docs/learners.md
        describes them.
    init
        Where a DPP starts: "moments", a start from item and pair frequencies, or "wishart", a random one. With "auto"
        on up to 30 items, "moments" is the best of that and some random ones after short runs.
    model
        "mixture", segments of people that share how items repel and attract and differ in what they like, which
        predicts best; or "dpp", a symmetric DPP, in which items repel each other. docs/models.md compares them. By
        default a mixture, unless `learner`, `init`, `prior` or a start ask for a DPP.
    segments, attraction, rank
        Of a mixture: how many segments, by default 10; whether items may attract each other; and of how many columns
        the part that repels is, by default 20.
    start
        A kernel, or a model whose items are matched by label: items that it lacks start nearly independent at
        their frequency, items that the baskets lack are marginalised out. Replaces `init` in the first run.
    restarts
        How many runs, of which the best is returned. A start that is not random is used once; the others are
        drawn at random. `FitResult.agreement` says whether they found the same optimum.
    rng
        Seed or generator of the random starts, and of the parts for cross-validation and validation.
    tol
        Stop when no more than this is still to be gained, in nats per basket, as judged by what the second half of the
        run gained: by default 1e-4, and 0.005 for a mixture, where more predicts no better. For "em" and "k-ascent",
        the rule of the paper's authors: stop when the mean log-likelihood changes by at most this much relative to
        itself, which says little about how much is still to be gained.
    max_iter, max_seconds
        Limits of a run, and of the whole fit. Time is looked at between the parts of a fit, and what cannot be ended in
        it, to judge by a short measurement, is not begun: where there is none for a first step, the model is the start
        or that of independent items, whichever is likelier. Of a fit that will take longer than a minute a warning
        tells about how long, and one that needs more memory than there is is refused.
    threads
        How many threads (default: all cores). The result is the same to the last bit for the same number.
    prior
        How much the model of independent items counts beside the data: sets of it, of this many times the data's
        weight (up to 1e9), are learned from as well. 0 is maximum likelihood; inf gives independent items; "auto" takes
        the strongest prior that predicts unseen baskets as well as the best, by cross-validation. With any prior no set
        has probability zero. By default "auto" for the learner of that name, and 0 for the others, which then do as
        published. docs/small-data.md says what it brings, and what it costs.
    validation, patience
        Set this share of the baskets aside, stop when they have become no likelier for `patience` iterations, and
        return the model under which they were likeliest.
    nonempty
        Whether baskets cannot be empty, so that what is learned is P(Y given Y ≠ ∅), which all that the model says is
        then about. By default they cannot where none is; but "em", "k-ascent" and the others published since learn
        P(Y), and of those "lbfgs" and "adam" alone can do otherwise.
    callback
        Called with a `FitProgress` after every iteration; a true return value stops the fit.
    progress
        Show a progress bar on standard error.
    checkpoint, checkpoint_seconds
        Write the state to this file every so many seconds, and at the end. Where that fails, as on a full disk, there
        is a warning, learning goes on, and so do the attempts.
    resume
        Continue from this file, in a call that is otherwise the same, to the result of an uninterrupted run.
        The random starts come from the file. Limits may differ: they apply to the run under way, its past included;
        runs already finished stay as they are.

    Returns
    -------
    FitResult
        The model as `model`, how it was found, and how good it is. Printed, it is a summary.

    Examples
    --------
    >>> result = fit([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, prior=0.1)
    >>> [each.item for each in result.dpp.recommend(["cot"])]
    ['bib', 'crib']
    """
    options = options_from(
        start,
        model=model,
        segments=segments,
        attraction=attraction,
        rank=rank,
        learner=learner,
        init=init,
        restarts=restarts,
        tol=tol,
        max_iter=max_iter,
        max_seconds=max_seconds,
        threads=threads,
        prior=prior,
        validation=validation,
        patience=patience,
        nonempty=nonempty,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        resume=resume,
    )
    return fit_with(options, baskets, start=start, rng=rng, callback=callback)


def options_from(start: Start, **asked: Any) -> FitOptions:
    """The options asked for; where none of them asks for a kind of model, the kind and the segments of the start."""
    start = start.model if isinstance(start, FitResult) else start
    if all(asked.get(name) is None for name in ("model", "learner", "init", "prior")):
        asked["model"] = model_of(start)
        if isinstance(start, Mixture) and asked.get("segments") is None:
            asked["segments"] = start.n_segments
    return FitOptions(**asked)


def model_of(start: Any) -> str | None:
    """The kind of model that a start asks for."""
    return "mixture" if isinstance(start, Mixture) else "dpp" if isinstance(start, DPP | Kernel) else None


def fit_with(
    options: FitOptions,
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    start: Start = None,
    rng: Seed = None,
    callback: Callback | None = None,
) -> FitResult:
    """`fit`, with its options in one value."""
    baskets = as_baskets(baskets)
    start = start.model if isinstance(start, FitResult) else start
    if not isinstance(start, Kernel | DPP | Mixture | None):
        expected = "expected a Kernel, a DPP, a Mixture or the result of an earlier fit"
        raise InputError(f"start is a {type(start).__name__}; {expected}")
    if model_of(start) not in (None, options.how.model):
        raise InputError(f"start is a {type(start).__name__}, from which no {options.how.model} can be learned")
    options = options.for_baskets(baskets)
    check_fit_memory(baskets.n_items, options.how.name, options.strength, options.threads)
    if options.checkpoint is not None:
        check_writable(Path(options.checkpoint))
    data = Data.of(baskets)
    state = _state(options, data.distinct, "given" if start is not None else options.first_start, rng)
    began = time.perf_counter() - state.elapsed
    if options.resume is None:
        _tell_if_long(options, data.distinct)
    with suitable_blas(baskets.n_items, options.threads):
        data = data.without(options.validation, state.seeds[-1])
        method = _method(options, data, lambda: time.perf_counter() - began)
        save = saver(options.checkpoint, options.checkpoint_seconds)
        choice, state = _chosen_prior(options, data, method, state, save)
        strength = choice.strength if choice is not None else float(options.strength)
        if np.isinf(strength):
            end = _independent_items(options, data, method, state, save, choice)
        else:
            problem = data.problem(options, _with_prior(options, data.distinct, strength))
            with observers_of(options.restarts, options.progress, callback) as observers:
                end = _best_run(Work(method, problem, start, observers, save), state)
        try:
            return _result(options, data, method, end, strength, choice)
        except KeyboardInterrupt:  # the model is there; a second Ctrl-C would be heard
            return _result(options, data, method, replace(end, stop=Stop.INTERRUPTED), strength, choice)


def _with_prior(options: FitOptions, distinct: Baskets, strength: float) -> Baskets:
    nonempty = options.given_nonempty
    pseudo = pseudo_baskets(distinct, nonempty=nonempty) if strength else distinct
    return with_prior(distinct, pseudo, strength, nonempty=nonempty)


def chosen_prior(options: FitOptions, baskets: Baskets, rng: Seed = None) -> PriorChoice:
    """The strength of the prior that `fit` would choose by cross-validation, and how it did so: a fit without runs."""
    options, data, began = replace(options, prior="auto"), Data.of(baskets), time.perf_counter()
    options = options.for_baskets(baskets)
    with suitable_blas(baskets.n_items, options.threads):
        method = _method(options, data, lambda: time.perf_counter() - began)
        choice, _ = _chosen_prior(options, data, method, _state(options, data.distinct, options.first_start, rng), None)
    assert choice is not None
    return choice


def expected_effort(baskets: Baskets, **options: Any) -> Effort:
    """What `fit` with these options will take; what it refuses is refused. A start and who is told do not count."""
    asked = FitOptions(**{name: value for name, value in options.items() if name not in ("start", "rng", "callback")})
    asked = asked.for_baskets(baskets)
    check_fit_memory(baskets.n_items, asked.how.name, asked.strength, asked.threads)
    found = _effort(asked, baskets.deduplicated())
    return found._replace(seconds=min(found.seconds, asked.max_seconds or np.inf))


def _state(options: FitOptions, distinct: Baskets, first_start: str, rng: Seed) -> FitState:
    """Where the fit begins, or goes on."""
    setting = Setting(
        options.how.name,
        first_start,
        options.restarts,
        options.strength,
        options.validation,
        options.given_nonempty,
        fingerprint(distinct),
        *((options.n_segments, options.attraction, options.n_columns) if options.how.model == "mixture" else ()),
    )
    if options.resume is not None:
        return read_checkpoint(options.resume, setting)
    seeds = np.random.default_rng(rng).integers(2**63, size=options.restarts + 2)
    return FitState(setting, tuple(int(seed) for seed in seeds))


def _effort(options: FitOptions, distinct: Baskets) -> Effort:
    return fit_effort(
        distinct,
        options.how.name,
        options.strength,
        restarts=options.restarts,
        max_iter=options.max_iter,
        threads=options.threads,
    )


def _tell_if_long(options: FitOptions, distinct: Baskets) -> None:
    limit = options.max_seconds
    if limit is not None and limit < LONG:
        return
    limited = "sets a limit" if limit is None else f"ends it after {duration(limit)}"
    instead = f"max_seconds (--max-seconds) {limited}, with the best model so far"
    tell_if_long(_effort(options, distinct), "this fit", instead)


def _method(options: FitOptions, data: Data, clock: Callable[[], float]) -> Method:
    expected = around_a_run(data.distinct.n_items, options.how.name) if options.max_seconds is not None else NO_TIME
    validation = None
    if data.aside is not None:
        validation = Validation(data.problem(options, data.aside).log_likelihood, options.patience)
    return Method(
        options.how,
        Limits(options.how.rule, options.tolerance, options.max_iter, options.max_seconds, expected.ending),
        clock,
        validation,
        expected.starting,
    )


def _chosen_prior(
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


def _independent_items(
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


def _best_run(work: Work, state: FitState) -> End:
    state, stop = all_runs(work, state)
    return End(*outcome(work, state), state, stop)


def _result(
    options: FitOptions, data: Data, method: Method, end: End, strength: float, choice: PriorChoice | None
) -> FitResult:
    run, problem = end.run, data.problem(options)
    stop = end.stop or run.stop
    assert stop is not None
    baseline, of_data = (_of_data(problem, kernel) for kernel in (problem.independent_items(), run.kernel))
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
        validation=options.validation if data.aside is not None else None,
        validation_log_likelihood=run.score if data.aside is not None else None,
    )
    within = 2 * options.how.in_nats(options.tolerance, run.log_likelihood)
    agreement = Agreement.of([line.log_likelihood for line in end.state.finished], within)
    model = _model(run.kernel, data.distinct.items, options, learned, Training.of(data.units, run.history))
    return FitResult(model, run.history, stop, end.state.finished, baseline, agreement, choice)


def _of_data(problem: Problem, kernel: AnyKernel) -> float:
    """The mean log-likelihood under the law, whatever else learning counted."""
    return law_of(kernel, nonempty=problem.nonempty).mean_log_likelihood(problem.baskets, problem.threads)


def _model(
    kernel: AnyKernel, items: Sequence[Label], options: FitOptions, learned: Provenance, training: Training
) -> DPP | Mixture:
    make: Any = DPP if isinstance(kernel, Kernel) else Mixture
    model: DPP | Mixture = make(kernel, items, nonempty=options.given_nonempty, learned=learned, training=training)
    return model
