"""fit: a start, a learner, restarts, and the result."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import are_counts
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.fitting.checkpoint import FitState, Search, Setting, fingerprint, read_checkpoint, write_checkpoint
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
from dpplearn.fitting.prior import as_strength, centre, pseudo_baskets, with_prior
from dpplearn.fitting.prior_choice import STRENGTHS, PriorChoice, choose_prior
from dpplearn.fitting.result import Agreement, FitProgress, FitResult
from dpplearn.fitting.runs import Method, Observer, Saver, Work, all_runs, outcome
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.statistics import mean_log_likelihood
from dpplearn.learners import LEARNERS
from dpplearn.learners.loop import Limits, Record, Run, Stop, Validation
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.stopping import relative_change
from dpplearn.models.dpp import DPP
from dpplearn.models.training import Training
from dpplearn.tools.files import check_writable
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.threads import suitable_blas

MOST_RESTARTS = 100_000
DEFAULT_PRIOR: dict[str, float | str] = {"auto": "auto"}  # of the other learners, none


def fit(
    baskets: Baskets | Iterable[Iterable[Any]],
    learner: str = "auto",
    init: str = "moments",
    *,
    start: Kernel | DPP | FitResult | None = None,
    restarts: int = 1,
    rng: Seed = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    prior: float | str | None = None,
    validation: float = 0.0,
    patience: int = 10,
    nonempty: bool = False,
    callback: Callable[[FitProgress], Any] | None = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 10.0,
    resume: str | PathLike[str] | None = None,
) -> FitResult:
    """Learn a DPP from baskets.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it.
    learner
        "auto", which came to the best kernels soonest in our benchmark; "em", the paper's EM, or "k-ascent", its
        baseline; or, for comparison, "natural-em", "lbfgs", "picard", "mm" or "adam". docs/learners.md describes them.
    init
        "moments", a start from item and pair frequencies, or "wishart", a random one. With "auto" on up to 30 items,
        "moments" is the best of that and some random ones after short runs.
    start
        A kernel, or a model whose items are matched by label: items that it lacks start nearly independent at
        their frequency, items that the baskets lack are marginalised out. Replaces `init` in the first run.
    restarts
        How many runs, of which the best is returned. A start that is not random is used once; the others are
        Wishart draws. `FitResult.agreement` says whether they found the same optimum.
    rng
        Seed or generator of the random starts, and of the parts for cross-validation and validation.
    tol
        Stop when no more than this is still to be gained, in nats a basket, as judged by what the second half of the
        run gained. For "em" and "k-ascent", the rule of the paper's authors: stop when the mean log-likelihood
        changes by at most this much relative to itself, which says little about how much is still to be gained.
    max_iter, max_seconds
        Limits a run, and on the whole fit. Time is looked at between the parts of a fit, and what cannot be ended in
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
        return the model that they liked best.
    nonempty
        Learn P(Y given Y ≠ ∅), for data that cannot have empty baskets. With "auto", "lbfgs" and "adam".
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

    No fit ends below independent items on what it maximises, but for "em" and "k-ascent", which do as published; nor
    below the model given as a start.

    Ctrl-C returns the best model so far, with `stop` set to `Stop.INTERRUPTED`. While a prior is chosen there is none
    yet, and `KeyboardInterrupt` is raised; with a checkpoint, what is known of the strengths is kept.
    """
    baskets = baskets if isinstance(baskets, Baskets) else Baskets.from_lists(baskets)
    start = start.dpp if isinstance(start, FitResult) else start
    if not isinstance(start, Kernel | DPP | None):
        raise InputError(f"start is a {type(start).__name__}; expected a Kernel, a DPP or the result of an earlier fit")
    nonempty = bool(nonempty)
    _check_choices(learner, init, nonempty)
    _check_numbers(restarts, tol, max_iter, max_seconds, checkpoint_seconds, validation, patience)
    _check_baskets(baskets, nonempty)
    prior, validation = _strength(prior, learner), float(validation)
    check_fit_memory(baskets.n_items, learner, prior, threads)
    positive = baskets.subset(baskets.weights > 0).as_counts()
    data = positive.deduplicated()
    parted = data if are_counts(positive.weights) else positive  # equal baskets may be in different parts
    if checkpoint is not None:
        check_writable(Path(checkpoint))
    first = init if start is None else "given"
    setting = Setting(learner, first, restarts, prior, validation, nonempty, fingerprint(data))
    if resume is not None:
        state = read_checkpoint(resume, setting)
    else:
        seeds = np.random.default_rng(rng).integers(2**63, size=restarts + 2)
        state = FitState(setting, tuple(int(seed) for seed in seeds))
    began = time.perf_counter() - state.elapsed
    if resume is None and (max_seconds is None or max_seconds >= LONG):
        effort = fit_effort(data, learner, prior, restarts=restarts, max_iter=max_iter, threads=threads)
        limited = "sets a limit" if max_seconds is None else f"ends it after {duration(max_seconds)}"
        tell_if_long(effort, "this fit", f"max_seconds (--max-seconds) {limited}, with the best model so far")
    with suitable_blas(data.n_items, threads):
        if validation:
            parted, aside = _set_aside(parted, validation, state.seeds[-1])
            data = parted.deduplicated()
        else:
            aside = None
        expected = around_a_run(data.n_items, learner) if max_seconds is not None else NO_TIME
        method = Method(
            LEARNERS[learner],
            Limits(LEARNERS[learner].rule, tol, max_iter, max_seconds, expected.ending),
            clock=lambda: time.perf_counter() - began,
            threads=threads,
            nonempty=nonempty,
            validation=_validation(aside, patience, threads, nonempty),
            starting=expected.starting,
        )
        save = _saver(checkpoint, checkpoint_seconds)
        choice, state = _chosen_prior(prior, parted, method, state, save, progress)
        strength = choice.strength if choice is not None else float(prior)
        if np.isinf(strength):
            in_time = choice is None or choice.complete
            why = Stop.CLOSED_FORM if in_time else Stop.MAX_SECONDS
            best, came_from, stop = method.ended_at(centre(data, nonempty=nonempty), data, why, Record()), "prior", None
            if save is not None:  # what was cut short goes on with the choice, and then from a start of its own
                save(state.with_running(best) if in_time else state, True)
            state = state.with_finished(best, came_from)
        else:
            pseudo = pseudo_baskets(data, nonempty=nonempty) if strength else data
            learned_from = with_prior(data, pseudo, strength, nonempty=nonempty)
            with _observers(restarts, progress, callback) as observers:
                work = Work(method, learned_from, start, observers, save)
                state, stop = all_runs(work, state)
            best, came_from = outcome(work, state)
        result = partial(_result, baskets, parted, data, method, state, best, came_from, strength, choice)
        try:
            return result(stop)
        except KeyboardInterrupt:  # the model is there; a second Ctrl-C would be heard
            return result(Stop.INTERRUPTED)


def expected_effort(
    baskets: Baskets,
    learner: str = "auto",
    init: str = "moments",
    *,
    prior: float | str | None = None,
    restarts: int = 1,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    nonempty: bool = False,
    **others: Any,
) -> Effort:
    """What `fit` with these options will take; what it refuses is refused."""
    _check_choices(learner, init, nonempty)
    _check_numbers(restarts, 0.0, max_iter, max_seconds, 0.0, 0.0, 1)
    _check_baskets(baskets, nonempty)
    prior = _strength(prior, learner)
    check_fit_memory(baskets.n_items, learner, prior, threads)
    data = baskets.deduplicated()
    found = fit_effort(data, learner, prior, restarts=restarts, max_iter=max_iter, threads=threads)
    return found._replace(seconds=min(found.seconds, max_seconds or np.inf))


def _strength(prior: float | str | None, learner: str) -> float | str:
    """How strong the prior is, "auto", or what is usual for the learner."""
    prior = DEFAULT_PRIOR.get(learner, 0.0) if prior is None else prior
    return prior if isinstance(prior, str) and prior == "auto" else as_strength(prior)


def _set_aside(baskets: Baskets, share: float, seed: int) -> tuple[Baskets, Baskets]:
    """What to learn from, and the baskets that say when to stop."""
    kept, aside = baskets.split(1 - share, rng=seed)
    if not len(kept) or not len(aside):
        raise InputError(
            f"validation is {share:g}, which leaves {kept.n_units} baskets to learn from and {aside.n_units} to "
            "validate on; expected a share that leaves some of both"
        )
    return kept, aside.deduplicated()


def _validation(aside: Baskets | None, patience: int, threads: int | None, nonempty: bool) -> Validation | None:
    if aside is None:
        return None
    return Validation(partial(mean_log_likelihood, baskets=aside, threads=threads, nonempty=nonempty), patience)


def _chosen_prior(
    prior: float | str, data: Baskets, method: Method, state: FitState, save: Saver | None, progress: bool
) -> tuple[PriorChoice | None, FitState]:
    """The strength by cross-validation, if that is asked for; what is done of it is kept."""
    if prior != "auto":
        return None, state

    def keep(search: Search) -> None:
        nonlocal state
        state = replace(state, search=search, elapsed=method.clock())
        if save is not None:
            save(state, True)
        show(len(search.held_out))

    with _choice_progress(progress) as show:
        choice = choose_prior(data, method, state.seeds[-2], state.search, keep)
    return choice, state


@contextmanager
def _observers(
    restarts: int, progress: bool, callback: Callable[[FitProgress], Any] | None
) -> Iterator[Sequence[Observer]]:
    """Who is told after every iteration: the progress bar, the callback."""

    def tell(restart: int, now: Run) -> Any:
        assert callback is not None
        step, evaluations = now.step, now.record.evaluations[now.n_iter]
        validation = now.record.validation[now.n_iter]
        news = FitProgress(
            restart, now.n_iter, step.log_likelihood, now.seconds, step.step_size, evaluations, validation, step
        )
        return callback(news)

    observers: list[Observer] = [tell] if callback is not None else []
    if not progress:
        yield observers
        return
    with shown_progress() as shown:
        bar = shown.bar("learning")

        def show(restart: int, run: Run) -> None:
            seconds = run.seconds - run.record.seconds[0]
            rate = f"{run.n_iter / seconds:.1f} iterations/s" if seconds > 0 else ""
            bar.update(
                run.n_iter,
                f"iteration {run.n_iter} log-likelihood {run.log_likelihood:.5f} {rate}",
                f"learning, run {restart + 1} of {restarts}" if restarts > 1 else "learning",
            )

        yield [show, *observers]


@contextmanager
def _choice_progress(progress: bool) -> Iterator[Callable[[int], None]]:
    """Within, call the function with the number of strengths tried."""
    with shown_progress(progress, transient=True) as shown:
        yield shown.bar("choosing the prior, strength", len(STRENGTHS)).update


def _saver(path: str | PathLike[str] | None, every: float) -> Saver | None:
    """Write the state if it is time or asked for. Where that fails, learning goes on, and the next may do better."""
    if path is None:
        return None
    tried, failed = -np.inf, False

    def save(state: FitState, now: bool) -> None:
        nonlocal tried, failed
        if not now and state.elapsed - tried < every:
            return
        tried = state.elapsed
        try:
            write_checkpoint(path, state)
            failed = False
        except InputError as error:
            if not failed:
                warnings.warn(
                    f"no checkpoint: {error}; learning goes on, and so do attempts", InputWarning, stacklevel=2
                )
            failed = True

    return save


def _check_choices(learner: str, init: str, nonempty: bool) -> None:
    for what, name, known in (("learner", learner, LEARNERS), ("init", init, INITIALISERS)):
        if name not in known:
            raise InputError(f"{what} is {name!r}; expected one of {', '.join(sorted(known))}")
    if nonempty and LEARNERS[learner].nonempty is None:
        able = ", ".join(sorted(name for name, each in LEARNERS.items() if each.nonempty is not None))
        raise InputError(f"learner {learner!r} cannot learn from sets given that they are not empty; use one of {able}")


def _check_numbers(
    restarts: int,
    tol: float,
    max_iter: int,
    max_seconds: float | None,
    checkpoint_seconds: float,
    validation: float,
    patience: int,
) -> None:
    whole_number("restarts", restarts, 1, MOST_RESTARTS)
    whole_number("max_iter", max_iter, 0)
    whole_number("patience", patience, 1)
    numbers = {
        "tol": tol,
        "max_seconds": max_seconds,
        "checkpoint_seconds": checkpoint_seconds,
        "validation": validation,
    }
    for what, number in numbers.items():
        if number is not None and not isinstance(number, Real):
            raise InputError(f"{what} is {number!r}; expected a number")
    for what, number in (("tol", tol), ("checkpoint_seconds", checkpoint_seconds)):
        if not number >= 0:
            raise InputError(f"{what} is {number}; expected 0 or more")
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"max_seconds is {max_seconds}; expected a positive number, or None")
    if not 0 <= validation < 1:
        raise InputError(f"validation is {validation}; expected a share of the baskets, from 0 to less than 1")


def _check_baskets(baskets: Baskets, nonempty: bool) -> None:
    if not baskets.total_weight > 0:
        raise InputError(
            f"there is nothing to learn from: {len(baskets)} baskets of total weight {baskets.total_weight:g}"
        )
    empty = baskets.weights[baskets.sizes == 0] > 0
    if nonempty and empty.any():
        raise InputError(
            f"{np.count_nonzero(empty)} of {len(baskets)} baskets are empty, which given that baskets are not empty is "
            "impossible; leave nonempty out, or leave them out (baskets.subset(baskets.sizes > 0))"
        )


def _result(
    baskets: Baskets,
    parted: Baskets,
    data: Baskets,
    method: Method,
    state: FitState,
    best: Run,
    came_from: str,
    strength: float,
    choice: PriorChoice | None,
    stop: Stop | None,
) -> FitResult:
    assert best.stop is not None
    stop, nonempty = stop or best.stop, method.nonempty
    baseline = mean_log_likelihood(independent(data, nonempty=nonempty), data, method.threads, nonempty=nonempty)
    of_data = mean_log_likelihood(best.kernel, data, method.threads, nonempty=nonempty)
    learned = {
        "learner": state.setting.learner,
        "start": came_from,
        "restarts": len(state.finished),
        "n_iter": best.n_iter,
        "evaluations": float(best.history.evaluations[-1]),
        "stop": stop.name,
        "prior": strength,
        "prior_chosen": choice is not None,
        "nonempty": nonempty,
        "log_likelihood": best.log_likelihood if not strength else of_data,
        "independent_log_likelihood": baseline,
        "n_baskets": len(baskets),
        "n_distinct": len(data),
        "weight": baskets.total_weight,
        "seconds": method.clock(),
    }
    if method.validation is not None:
        learned["validation"] = state.setting.validation
        learned["validation_log_likelihood"] = best.merit
    tol = method.limits.tol
    in_nats = tol * abs(best.log_likelihood) if method.learner.rule is relative_change else tol
    agreement = Agreement.of([line.log_likelihood for line in state.finished], 2 * in_nats)
    dpp = DPP(best.kernel, data.items, learned=learned, training=Training.of(parted, best.history))
    return FitResult(dpp, best.history, stop, state.finished, baseline, agreement, choice)
