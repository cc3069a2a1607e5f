"""fit and fit_dpp: a mixture or a symmetric DPP from baskets.

Below these functions, `Fit` runs a learner from one or more starts and returns the best model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import SMOOTHING, independent
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callback, Callbacks, saved_on_exit
from dpplearn.learners.data import checked_baskets, hold_out, units_of
from dpplearn.learners.kernels import Kernel
from dpplearn.learners.loop import Arrays, Entry, Run, Step, Stop, run
from dpplearn.learners.problem import Problem, Task
from dpplearn.learners.result import FitProgress, FitResult, Restart, with_unseen_gain
from dpplearn.learners.settings import DPPSettings, MixtureSettings, Settings
from dpplearn.learners.shrinkage import choose_shrinkage, shrink, usual_shrinkage
from dpplearn.models.blending import blend_weight
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.models.record import Provenance, Training
from dpplearn.utils.threads import suitable_blas

Model = DPP | Mixture

ENDS_THE_FIT = {Stop.CALLBACK, Stop.MAX_SECONDS}
GIVEN, CONTINUED, INDEPENDENT = "given", "checkpoint", "independent"  # names of starts that are models


def fit(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    segments: int | None = None,
    rank: int | None = None,
    attraction: bool | int = True,
    start: Mixture | FitResult[Mixture] | str | PathLike[str] | None = None,
    restarts: int = 1,
    validation: float | None = None,
    nonempty: bool | str = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    rng: Seed = None,
    callback: Callbacks = None,
) -> FitResult[Mixture]:
    """Fit a mixture of DPPs to baskets.

    The segments of the mixture share one interaction matrix, with a symmetric part (repulsion) and a skew part
    (attraction), and differ in the log-odds of the items. The returned model is never worse on the training objective,
    the log-likelihood minus penalties, than independent items or `start`. Ctrl-C raises `KeyboardInterrupt`.

    With up to 300 items the interaction matrix is dense. L-BFGS learns the segments first, without interaction, and
    then everything. With more items the interaction is low-rank. It is learned in a fixed number of passes over the
    baskets, and `tol` does not apply.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets. With `Parts` the statistics are summed over the parts; up to 300 items.
    segments : int, optional
        Number of segments. Default 10, and 30 with more than 300 items.
    rank : int, optional
        Rank of the repulsive (symmetric) part of the interaction. Default 20, and 8 with more than 300 items.
    attraction : bool or int, default True
        Whether items can attract each other. An integer asks for a low-rank interaction with this number of pairs of
        attracting columns; with more than 300 items, True means 96.
    start : Mixture, FitResult or path, optional
        Initial model of the first run. Items are matched by name. New items start independent; items that the baskets
        lack are left out. The file of a `Checkpoint` continues an interrupted fit if the other arguments are the same.
    restarts : int, default 1
        Number of runs. Each starts at random, but for the first where `start` is given. The best run is returned.
    validation : float, optional
        Fraction of the baskets to hold out. One half of them chooses the best iteration, and ends a run after 10
        iterations without improvement; the other half measures the gain over independent items. Default 0, and with
        more than 300 items between 0.02 and 0.1, at most 5,000 baskets.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    tol : float, optional
        Stop when the expected further improvement is below `tol` nats per basket. Default 0.002: smaller values do not
        predict better.
    max_iter : int, default 1000
        Maximum number of iterations per run, with those in which the segments are learned. With 0 the start is
        returned.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores. The result is reproducible for the same number.
    rng : int or numpy.random.Generator, optional
        Seed for random starts and the held-out baskets.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit. A `Checkpoint` saves the
        best model so far.

    Returns
    -------
    FitResult
        The model, the log-likelihood after each iteration, and the reason for stopping.

    Raises
    ------
    InputError
        If there are no baskets, if an argument is invalid, or if the fit needs more memory than there is.

    Examples
    --------
    >>> result = fit([["tea", "milk"], ["tea"], ["beer"], ["beer", "nuts"]] * 30, segments=2, rng=0)
    >>> [each.item for each in result.model.recommend(["tea"], k=1)]
    ['milk']
    """
    shared = restarts, validation, nonempty, tol, max_iter, max_seconds, threads
    settings = MixtureSettings(*shared, segments, rank, attraction)
    return fit_with(settings, baskets, start=start, rng=rng, callback=callback)


def fit_dpp(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    learner: str = "lbfgs",
    *,
    init: str = "moments",
    start: DPP | FitResult[DPP] | str | PathLike[str] | None = None,
    restarts: int = 1,
    shrinkage: float | str | None = None,
    validation: float | None = None,
    nonempty: bool | str = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    rng: Seed = None,
    callback: Callbacks = None,
) -> FitResult[DPP]:
    """Fit a symmetric DPP to baskets by maximum likelihood.

    The returned model is never worse on the training objective than `start`, nor than independent items. Exceptions
    from the latter: "em" and "k-ascent", which follow the paper. Ctrl-C raises `KeyboardInterrupt`.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets. With `Parts` the statistics are summed over the parts.
    learner : {"lbfgs", "em", "k-ascent", "natural-em", "picard", "mm", "adam"}, default "lbfgs"
        Optimisation method. "em" and "k-ascent" are Algorithms 2 and 1 of [1]_. "lbfgs" reaches the same or a better
        likelihood in less time.
    init : {"moments", "wishart"}, default "moments"
        Initial kernel, as in Section 5 of [1]_. Ignored if `start` is given.
    start : DPP, FitResult or path, optional
        Initial model of the first run. Items are matched by name. New items start at their frequency, with the
        off-diagonal entries of the moments start; items that the baskets lack are marginalised out.
    restarts : int, default 1
        Number of runs. Runs after the first start from random kernels. The best run is returned.
    shrinkage : float or "auto", optional
        Weight s of independent items in the returned model, between 0 and 1. After learning, the marginal kernel
        becomes (1 − s) K + s diag(p) with smoothed item probabilities p, and item odds are rescaled to the smoothed
        item frequencies. If s > 0, every set has a positive probability. "auto" chooses s by 5-fold cross-validation.
        Default "auto" for "lbfgs", and 0 for the other learners and for baskets in parts.
    validation : float, optional
        Fraction of the baskets to hold out. One half of them chooses the best iteration, and ends a run after 10
        iterations without improvement; the other half measures the gain over independent items. Default 0.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default "lbfgs" does so if no basket is empty. Of
        the other learners only "adam" can.
    tol : float, optional
        Stop when the expected further improvement is below `tol` nats per basket. For "em" and "k-ascent": stop when
        the relative change of the mean log-likelihood is below `tol`, as in [1]_. Default 1e-4.
    max_iter : int, default 1000
        Maximum number of iterations per run. With 0 the start is returned, as the learner prepares it.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores. The result is reproducible for the same number.
    rng : int or numpy.random.Generator, optional
        Seed for random starts, folds and the held-out baskets.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit. A `Checkpoint` saves the
        best model so far.

    Returns
    -------
    FitResult
        The model, the log-likelihood after each iteration, and the reason for stopping.

    Raises
    ------
    InputError
        If there are no baskets, if an argument is invalid, if a basket is larger than the rank of `start`, or if the
        fit needs more memory than there is.

    References
    ----------
    .. [1] Gillenwater, Kulesza, Fox, Taskar. Expectation-Maximization for Learning Determinantal Point Processes.
       NIPS 2014.

    Examples
    --------
    >>> result = fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1)
    >>> [each.item for each in result.model.recommend(["cot"])]
    ['bib', 'crib']
    """
    shared = restarts, validation, nonempty, tol, max_iter, max_seconds, threads
    settings = DPPSettings(*shared, learner, init, shrinkage)
    return fit_with(settings, baskets, start=start, rng=rng, callback=callback)


def fit_with(
    settings: Settings, baskets: Any, *, start: Any = None, rng: Seed = None, callback: Callbacks = None
) -> FitResult[Any]:
    """Fit a model with checked settings. A start is a model, the result of a fit, or a model file."""
    given = checked_baskets(baskets)
    start = load(start) if isinstance(start, str | PathLike) else start
    start = start.model if isinstance(start, FitResult) else start
    if start is not None and not isinstance(start, settings.model_type):
        wanted, got = settings.model_type.__name__, type(start).__name__
        raise InputError(f"start must be a {wanted}, the result of a fit or a model file, got {got}")
    return fit_task(settings.like(start).task(given), start, rng=rng, callback=callback)


def fit_task(
    task: Task, start: Model | None = None, *, rng: Seed = None, callback: Callbacks = None, as_weighed: bool = False
) -> FitResult[Any]:
    """Run the learner of a task on all of its baskets, and return the result.

    With `as_weighed`, weights count baskets, also fractions of them.
    """
    began = time.perf_counter()
    callbacks = (callback,) if callable(callback) else tuple(callback or ())
    baskets = task.problem.baskets
    with saved_on_exit(callbacks), suitable_blas(baskets.n_items, task.problem.threads):
        task.check_memory()
        seeds = np.random.default_rng(rng).integers(2**63, size=task.restarts + 2).tolist()
        units = baskets if as_weighed else units_of(baskets)
        return Fit(task, units, start, seeds, lambda: time.perf_counter() - began, callbacks).result()


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit in progress."""

    task: Task
    units: AnyBaskets  # all baskets; some may be held out
    start: Model | None
    seeds: Sequence[int]  # one per run, one for folds and one for the validation set
    clock: Callable[[], float]
    callbacks: Sequence[Callback] = ()

    @cached_property
    def whole(self) -> Problem:
        """The problem with all baskets, equal ones merged (of baskets in parts, those of one part)."""
        return replace(self.task.problem, baskets=self.units.deduplicated())

    @cached_property
    def training(self) -> Training:
        """Statistics of all baskets."""
        return Training.of(self.units)

    @cached_property
    def digest(self) -> str | None:
        return self.whole.baskets.digest() if isinstance(self.whole.baskets, Baskets) else None

    @cached_property
    def schedule(self) -> Arrays | None:
        """The schedule of a checkpoint to start from, if it belongs to the same baskets and settings."""
        if self.start is None or self.start.training is None:
            return None
        learned, items = self.start.learned, self.start.items
        before = items, learned.digest, learned.weight, learned.nonempty, learned.validation or 0.0
        now = self.whole.baskets.items, self.digest, self.training.weight, self.whole.nonempty, self.task.validation
        return self.start.training.schedule if before == now else None

    @cached_property
    def split_seed(self) -> int:
        """Seed of the validation set; a continued schedule has the same set as before."""
        return self.seeds[-1] if self.schedule is None else int(self.schedule["split_seed"][0])

    @cached_property
    def data(self) -> tuple[AnyBaskets, AnyBaskets | None, AnyBaskets | None]:
        """The baskets to learn from, to validate on and to test on."""
        return hold_out(self.units, self.task.validation, self.split_seed)

    @cached_property
    def problem(self) -> Problem:
        return replace(self.task.problem, baskets=self.data[0].deduplicated())

    @cached_property
    def validate(self) -> Callable[[Kernel], float] | None:
        validation = self.data[1]
        return None if validation is None else replace(self.problem, baskets=validation).log_likelihood

    def result(self) -> FitResult[Any]:
        """Run the learner from every start, or until a run ends the fit, and return the best model."""
        runs: list[Run] = []
        if self.task.shrinkage == 1:
            kernel: Kernel = independent(self.problem.baskets, smoothing=SMOOTHING, nonempty=self.problem.nonempty)
            best = self._run_at(kernel, INDEPENDENT, Stop.CLOSED_FORM, [])
            runs, facts, quality = [best], {"shrinkage": 1.0}, None
        else:
            while len(runs) < self.task.restarts and not (runs and runs[-1].stop in ENDS_THE_FIT):
                runs.append(self._one_run(len(runs)))
            best = max(runs, key=lambda run: run.score)  # the first of equally good ones
            best = self._not_worse(replace(best, stop=runs[-1].stop) if runs[-1].stop in ENDS_THE_FIT else best)
            kernel, facts, quality = self._finished(best)
        assert best.stop is not None
        model = self._measured(self._model(best, kernel, facts, len(runs)))
        return FitResult(model, best.history, best.stop, tuple(map(Restart.of, runs)), quality)

    def _one_run(self, number: int) -> Run:
        name, start = self._start(number)

        def observe(now: Run) -> bool:
            if not self.callbacks:
                return False

            def build() -> Model:  # the model before shrinkage
                return self._model(replace(now, start=name), now.step.kernel, {}, number + 1)

            schedule = None
            if now.step.schedule is not None:
                schedule = {**now.step.schedule, "split_seed": np.array([self.split_seed])}
            progress = FitProgress(number, now.n_iter, *now.entry, now.score, now.step.share, build, schedule)
            answers = [callback(progress) for callback in self.callbacks]
            return any(answers)

        learner = self.task.learner
        steps = learner.steps(start, self.problem)
        end = run(steps, self.task.limits, self.clock, observe, self.validate, learner.at_end)
        return replace(end, start=name)

    def _start(self, number: int) -> tuple[str, Any]:
        """Return the name of a start, and the start. Further runs start at random."""
        name = self.problem.random_start if number else self.task.init
        if number or self.start is None:
            return name, self.problem.initial(name, np.random.default_rng(self.seeds[number]))
        resumed = None if self.schedule is None else self.problem.resumed(self.schedule)
        return (GIVEN, self.problem.start_from(self._given())) if resumed is None else (CONTINUED, resumed)

    def _given(self) -> Kernel:
        return self.problem.adapted(self.start, np.random.default_rng(self.seeds[0]))

    def _not_worse(self, best: Run) -> Run:
        """Return the run, or a run that ends at `start` or at independent items if these are better.

        "em" and "k-ascent" follow the paper and are not compared with independent items; neither is a fit with
        `max_iter=0`, which returns the start. A run that converged to a worse model did not find the optimum: it then
        stopped with `NOT_BETTER`.
        """
        limits, others = self.task.limits, {}
        if self.start is not None:
            others[GIVEN] = self._given()
        if limits.max_iter and not self.task.learner.as_published:
            others[INDEPENDENT] = self.problem.baseline()
        for name, kernel in others.items():
            if kernel is None:
                continue
            before = best.entries[: best.n_iter + 1] if limits.max_iter else []
            other = self._run_at(kernel, name, best.stop, before)
            if other.score > best.score + limits.tol and best.stop is Stop.TOLERANCE:
                other = replace(other, stop=Stop.NOT_BETTER)
            best = other if other.score > best.score else best
        return best

    def _run_at(self, kernel: Kernel, name: str, stop: Stop | None, before: Sequence[Entry]) -> Run:
        """Return a run whose last step is this kernel."""
        step = Step(kernel, self.problem.log_likelihood(kernel), 0.0, 0.5, self.problem.objective(kernel))
        validation = np.nan if self.validate is None else self.validate(kernel)
        return Run(step, [*before, Entry.of(step, self.clock(), validation, before)], len(before), stop, name)

    def _finished(self, end: Run) -> tuple[Kernel, dict[str, Any], Any]:
        """Return the kernel to return, facts about it, and the weights of quality of `fit_quality`.

        The kernel is that of the last step, shrunk as requested or as cross-validation chooses.
        """
        value, chosen = self.task.shrinkage, None
        if value == 0:
            kernel, quality = self.problem.finished(end.step)
            return kernel, {}, quality
        if value == "auto":
            if end.stop not in ENDS_THE_FIT:
                rng = np.random.default_rng(self.seeds[-2])
                chosen = choose_shrinkage(self.task, self.data[0], self.clock, rng)
            value = usual_shrinkage(self.problem.baskets) if chosen is None else chosen
        learned: Any = end.step.kernel  # of a symmetric DPP: only its settings have shrinkage
        kernel = shrink(learned, self.problem.baskets, float(value), nonempty=self.problem.nonempty)
        return kernel, {"shrinkage": float(value), "shrinkage_chosen": chosen is not None}, None

    def _model(self, end: Run, kernel: Kernel, facts: dict[str, Any], n_runs: int) -> Model:
        """Return the model of a kernel, with its record: of all baskets, but for the history."""
        validation = None
        if self.validate is not None:
            validation = end.entry.validation if kernel is end.step.kernel else self.validate(kernel)
        learned = Provenance(
            learner=self.task.learner.name,
            start=end.start,
            restarts=n_runs,
            n_iter=end.n_iter,
            evaluations=end.entry.evaluations,
            stop=None if end.stop is None else end.stop.name,
            nonempty=self.problem.nonempty,
            log_likelihood=self.whole.log_likelihood(kernel),
            independent_log_likelihood=self.whole.independent_log_likelihood(),
            n_baskets=len(self.task.problem.baskets),
            n_distinct=len(self.whole.baskets),
            digest=self.digest,
            weight=self.training.weight,
            seconds=self.clock(),
            validation=self.task.validation or None,
            validation_log_likelihood=validation,
            **{**self.problem.facts(end.step), **facts},
        )
        distribution, items = self.problem.distribution(kernel), self.problem.baskets.items
        training = replace(self.training, history=end.history)
        model: Model = self.problem.model_type.of_distribution(distribution, items, learned=learned, training=training)
        return model

    def _measured(self, model: Model) -> Model:
        """Return the model with what held-out baskets say about it."""
        kept, validation, test = self.data
        if not isinstance(kept, Baskets) or not isinstance(validation, Baskets):
            return model
        assert model.training is not None
        counts = Training.of(kept)
        if self.problem.blends:
            blend = blend_weight(model.distribution, counts, validation, np.random.default_rng(self.split_seed))
            model.training = replace(model.training, blend=blend)
        if isinstance(test, Baskets):
            model.learned = with_unseen_gain(model, counts, test)
        return model
