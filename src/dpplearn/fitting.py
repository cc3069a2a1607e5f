"""fit: a start, a learner, restarts, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.baskets import Baskets
from dpplearn.checkpoint import FitState, Setting, fingerprint, read_checkpoint, write_checkpoint
from dpplearn.dpp import DPP
from dpplearn.errors import InputError, whole_number
from dpplearn.fit_result import Agreement, FitProgress, FitResult
from dpplearn.initialise import DETERMINISTIC, INITIALISERS, adapted, independent, joined
from dpplearn.kernel import Kernel
from dpplearn.learners import LEARNERS
from dpplearn.learners.loop import NOTHING, Limits, Record, Run, Step, Stop, run
from dpplearn.learners.stopping import relative_change
from dpplearn.statistics import mean_log_likelihood
from dpplearn.threads import suitable_blas

ENDS_THE_FIT = {Stop.INTERRUPTED, Stop.CALLBACK, Stop.MAX_SECONDS}


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
        "moments", a start from item and pair frequencies, or "wishart", a random one.
    start
        A kernel, or a model whose items are matched by label: items that it lacks start nearly independent at
        their frequency, items that the baskets lack are marginalised out. Replaces `init` in the first run.
    restarts
        How many runs, of which the best is returned. A start that is not random is used once; the others are
        Wishart draws. `FitResult.agreement` says whether they found the same optimum.
    rng
        Seed or generator of the random starts.
    tol
        Stop when no more than this is still to be gained, in nats a basket, as judged by what the second half of the
        run gained. For "em" and "k-ascent", the rule of the paper's authors: stop when the mean log-likelihood
        changes by at most this much relative to itself, which says little about how much is still to be gained.
    max_iter, max_seconds
        Limits a run, and on the whole fit.
    threads
        How many threads (default: all cores). The result is the same to the last bit for the same number.
    callback
        Called with a `FitProgress` after every iteration; a true return value stops the fit.
    progress
        Show a progress bar on standard error.
    checkpoint, checkpoint_seconds
        Write the state to this file every so many seconds, and at the end.
    resume
        Continue from this file, in a call that is otherwise the same, to the result of an uninterrupted run.
        The random starts come from the file. Limits may differ: they apply to the run under way, its past included;
        runs already finished stay as they are.

    Ctrl-C returns the best model so far, with `stop` set to `Stop.INTERRUPTED`.
    """
    baskets = baskets if isinstance(baskets, Baskets) else Baskets.from_lists(baskets)
    start = start.dpp if isinstance(start, FitResult) else start
    if not isinstance(start, Kernel | DPP | None):
        raise InputError(f"start is a {type(start).__name__}; expected a Kernel, a DPP or the result of an earlier fit")
    _check(baskets, learner, init, restarts, tol, max_iter, max_seconds)
    data = baskets.subset(baskets.weights > 0).deduplicated()
    setting = Setting(learner, init if start is None else "given", restarts, fingerprint(data))
    if resume is not None:
        state = read_checkpoint(resume, setting)
    else:
        seeds = np.random.default_rng(rng).integers(2**63, size=restarts)
        state = FitState(setting, tuple(int(seed) for seed in seeds))
    began = time.perf_counter() - state.elapsed
    with suitable_blas(data.n_items, threads), _observers(restarts, progress, callback) as observers:
        work = _Work(
            data=data,
            first_start=start,
            limits=Limits(LEARNERS[learner].rule, tol, max_iter, max_seconds),
            threads=threads,
            clock=lambda: time.perf_counter() - began,
            observers=observers,
            save=_saver(checkpoint, checkpoint_seconds),
        )
        state, stop = _all_runs(work, state)
        baseline = mean_log_likelihood(independent(data), data, threads)
    return _result(baskets, data, state, stop, baseline, tol)


Observer = Callable[[int, Run], Any]
Saver = Callable[[FitState, bool], None]


@dataclass(frozen=True)
class _Work:
    """What stays the same over the runs of a fit."""

    data: Baskets
    first_start: Kernel | DPP | None
    limits: Limits
    threads: int | None
    clock: Callable[[], float]
    observers: Sequence[Observer]
    save: Saver | None


def _all_runs(work: _Work, state: FitState) -> tuple[FitState, Stop | None]:
    """Every run that is still to do; the reason for which the whole fit ended early, if it did."""
    for number in range(len(state.finished), state.setting.restarts):
        try:
            last = _at_least_the_start(work, state, _one_run(work, state))
        except KeyboardInterrupt:
            if state.best is None:
                raise
            return state, Stop.INTERRUPTED
        if work.save is not None:
            work.save(state.with_running(last), True)
        state = state.with_finished(last, _start_name(state.setting, number))
        if last.stop in ENDS_THE_FIT:
            return state, last.stop
    return state, None


def _one_run(work: _Work, state: FitState) -> Run:
    def steps() -> Iterator[Step]:
        learner, running = LEARNERS[state.setting.learner], state.running
        if running is not None:
            yield from learner.steps(running.kernel, work.data, work.threads, running.step.memory)
        else:
            yield from learner.steps(_start(work, state), work.data, work.threads, NOTHING)

    def observe(now: Run) -> bool:
        if work.save is not None:
            work.save(state.with_running(now), now.n_iter == 0)
        answers = [observer(len(state.finished), now) for observer in work.observers]
        return any(answers)

    last = run(steps(), work.limits, work.clock, observe, state.running)
    return _off_saddle(work, state, last, observe)


def _at_least_the_start(work: _Work, state: FitState, last: Run) -> Run:
    """Learners may begin a little below the model they are given, so that a run cut short may end below it."""
    if _start_name(state.setting, len(state.finished)) != "given":
        return last
    kernel = _start(work, state)
    likelihood = mean_log_likelihood(kernel, work.data, work.threads)
    if not likelihood > last.log_likelihood:
        return last
    record, step = Record(), Step(kernel, likelihood, 0.0, 0.5)
    record.add(step, last.seconds)
    return Run(step, record, 0, last.stop)


def _off_saddle(work: _Work, state: FitState, last: Run, observe: Callable[[Run], bool]) -> Run:
    """A run that converged where items fall into independent blocks goes on from beside that point, if that is better.

    The paper's learners stop where they stop.
    """
    learner = LEARNERS[state.setting.learner]
    if last.stop is not Stop.TOLERANCE or learner.rule is relative_change:
        return last
    beside = joined(last.kernel, work.data)
    if beside is None:
        return last
    other = run(learner.steps(beside, work.data, work.threads, NOTHING), work.limits, work.clock, observe)
    return other if other.log_likelihood > last.log_likelihood + work.limits.tol else last


def _start_name(setting: Setting, number: int) -> str:
    """A start that is not random is used once; further runs are Wishart draws."""
    return setting.init if number == 0 or setting.init not in {"given", *DETERMINISTIC} else "wishart"


def _start(work: _Work, state: FitState) -> Kernel:
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


@contextmanager
def _observers(
    restarts: int, progress: bool, callback: Callable[[FitProgress], Any] | None
) -> Iterator[Sequence[Observer]]:
    """Who is told after every iteration: the progress bar, the callback."""

    def tell(restart: int, now: Run) -> Any:
        assert callback is not None
        step, evaluations = now.step, now.record.evaluations[now.n_iter]
        news = FitProgress(restart, now.n_iter, step.log_likelihood, now.seconds, step.step_size, evaluations, step)
        return callback(news)

    observers: list[Observer] = [tell] if callback is not None else []
    if not progress:
        yield observers
        return
    from dpplearn.progress import fit_progress

    with fit_progress(restarts) as show:
        yield [show, *observers]


def _saver(path: str | PathLike[str] | None, every: float) -> Saver | None:
    """Write the state if it is time or asked for."""
    if path is None:
        return None
    saved = -np.inf

    def save(state: FitState, now: bool) -> None:
        nonlocal saved
        if now or state.elapsed - saved >= every:
            write_checkpoint(path, state)
            saved = state.elapsed

    return save


def _check(
    baskets: Baskets,
    learner: str,
    init: str,
    restarts: int,
    tol: float,
    max_iter: int,
    max_seconds: float | None,
) -> None:
    if not baskets.total_weight > 0:
        raise InputError(
            f"there is nothing to learn from: {len(baskets)} baskets of total weight {baskets.total_weight:g}"
        )
    for what, name, known in (("learner", learner, LEARNERS), ("init", init, INITIALISERS)):
        if name not in known:
            raise InputError(f"{what} is {name!r}; expected one of {', '.join(sorted(known))}")
    whole_number("restarts", restarts, 1)
    whole_number("max_iter", max_iter, 0)
    for what, number in (("tol", tol), ("max_seconds", max_seconds)):
        if number is not None and not isinstance(number, Real):
            raise InputError(f"{what} is {number!r}; expected a number")
    if not tol >= 0:
        raise InputError(f"tol is {tol}; expected 0 or more")
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"max_seconds is {max_seconds}; expected a positive number, or None")


def _result(
    baskets: Baskets, data: Baskets, state: FitState, stop: Stop | None, baseline: float, tol: float
) -> FitResult:
    best = state.best
    assert best is not None
    assert best.stop is not None
    stop = stop or best.stop
    chosen = next(line for line in state.finished if line.log_likelihood == best.log_likelihood)
    learned = {
        "learner": state.setting.learner,
        "start": chosen.start,
        "restarts": len(state.finished),
        "n_iter": best.n_iter,
        "evaluations": float(best.history.evaluations[-1]),
        "stop": stop.name,
        "log_likelihood": best.log_likelihood,
        "independent_log_likelihood": baseline,
        "n_baskets": len(baskets),
        "n_distinct": len(data),
        "weight": baskets.total_weight,
        "seconds": float(best.history.seconds[-1]),
    }
    relative = LEARNERS[state.setting.learner].rule is relative_change
    in_nats = tol * abs(best.log_likelihood) if relative else tol
    agreement = Agreement.of([line.log_likelihood for line in state.finished], 2 * in_nats)
    dpp = DPP(best.kernel, baskets.items, learned=learned)
    return FitResult(dpp, best.history, stop, state.finished, baseline, agreement)
