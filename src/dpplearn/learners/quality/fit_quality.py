"""fit_quality: a DPP whose similarity is given, from baskets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.data.features import Features, as_features
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.similarity import read_similarity
from dpplearn.distributions.independent import independent_log_likelihood
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callback, as_callbacks, notify, saved_on_exit
from dpplearn.learners.data import TrainingData, checked_baskets, resolve_nonempty
from dpplearn.learners.kernels import Kernel
from dpplearn.learners.loop import Limits, Run, last_gain, run
from dpplearn.learners.quality.blend import Blend
from dpplearn.learners.quality.learner import quality
from dpplearn.learners.quality.problem import QualityProblem
from dpplearn.learners.quality.standard_errors import standard_errors
from dpplearn.learners.quality.target import Design, best_weights
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.learners.result import FitProgress, FitResult, Restart, provenance
from dpplearn.learners.settings import Settings
from dpplearn.models.dpp import DPP
from dpplearn.models.training import Training
from dpplearn.tools.threads import suitable_blas

LEARNER = "quality"
UNIFORM, EVIDENCE = "uniform", "evidence"
START = "frequencies"  # what the weights start from


def fit_quality(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    features: Any = None,
    similarity: Any = UNIFORM,
    ridge: float | str = EVIDENCE,
    smooth: bool = True,
    nonempty: bool | str = "auto",
    tol: float = 1e-9,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[DPP]:
    """Fit the quality of items, or the weights of item features, where the similarity of items is known.

    The model is the DPP with L = D S D, D² = exp(quality). The log-likelihood is concave in the quality. With features
    the model can be worse than independent items.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets.
    features : table, optional
        One row per item, as `read_features` takes it. Quality is then a weighted sum of features. By default every item
        has a weight of its own.
    similarity : "uniform", similarity or dict, default "uniform"
        Similarity matrix S. "uniform": the same for all pairs, with a strength that is learned. A similarity as
        `read_similarity` takes it is used as it is. Several by name, in a dict, are blended with learned strengths.
    ridge : "evidence" or float, default "evidence"
        Ridge penalty on the weights of features; "evidence" maximises the marginal likelihood.
    smooth : bool, default True
        Whether, with one weight per item, item counts are smoothed by half a basket with and half a basket without each
        item. Without it, items that never occur have probability zero.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    tol : float, default 1e-9
        Stop when a step gains less, in nats per basket.
    max_iter : int, default 1000
        Maximum number of iterations.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit.

    Returns
    -------
    FitResult
        The model, and the weights with standard errors as `quality`.

    Raises
    ------
    InputError
        If a basket is impossible under a given similarity, or an argument is invalid.

    Examples
    --------
    >>> result = fit_quality([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> [each.name for each in result.quality.rows]
    ['bib', 'cot', 'crib']
    """
    settings = Settings(tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    if ridge != EVIDENCE and not (isinstance(ridge, Real) and 0 <= float(ridge) < np.inf):
        raise InputError(f"ridge must be {EVIDENCE!r} or a number, 0 or more, got {ridge!r}")
    given, callbacks = checked_baskets(baskets), as_callbacks(callback)
    encoded = None if features is None else as_features(features, given.catalogue)
    design = None if encoded is None else Design.of_features(encoded)
    data, blend = TrainingData.of(given), _blend(similarity, given)
    problem = QualityProblem(data.distinct, threads, resolve_nonempty(nonempty, given), design, blend)
    problem.check_possible()
    with suitable_blas(given.n_items, threads), saved_on_exit(callbacks):
        return QualityFit(problem, data, len(given), settings, ridge, smooth, callbacks).result(encoded)


@dataclass(frozen=True, eq=False)
class QualityFit:
    """A fit in progress."""

    problem: QualityProblem
    data: TrainingData
    n_baskets: int
    settings: Settings
    ridge: float | str
    smooth: bool
    callbacks: Sequence[Callback]
    began: float = field(default_factory=time.perf_counter)

    @cached_property
    def training(self) -> Training:
        return Training.of(self.data.units)

    def result(self, features: Features | None) -> FitResult[DPP]:
        """Learn the strengths, and return the model with the weights at their best."""
        problem, end = self._learned()
        assert end.stop is not None
        last = problem.profile(end.step.parameters["phi"], end.step.parameters["theta"])
        # Smoothing before the strengths are learned would bias them.
        final = replace(problem, smoothed=problem.design is None and self.smooth)
        best = best_weights(final.target(last.phi)) if final.smoothed else last.optimum
        errors, blend = standard_errors(problem, final, last, best.theta), problem.blend
        weights = QualityWeights(
            final.whole_design.among(final.items).names,
            best.theta,
            errors.of_weights,
            blend.strength_names,
            blend.strengths(last.phi)[0] if len(last.phi) else np.zeros(0),
            errors.of_strengths,
            None if problem.design is None else problem.ridge,
            problem.design is None,
            () if features is None else features.notes,
        )
        kernel = final.kernel(last.phi, best.theta)
        model = self._model(
            end,
            kernel,
            restarts=1,
            stop=end.stop.name,
            log_likelihood=problem.log_likelihood(kernel),
            independent_log_likelihood=independent_log_likelihood(problem.baskets, nonempty=problem.nonempty),
        )
        return FitResult(model, end.history, end.stop, (Restart.of(end, START),), weights)

    def _learned(self) -> tuple[QualityProblem, Run]:
        """Return the run, and the problem with the ridge at its end."""
        problem, starts = self.problem, self.problem.blend.starts()
        if problem.design is not None:
            by_evidence = self.ridge == EVIDENCE
            problem = problem.with_evidence(starts[0]) if by_evidence else replace(problem, ridge=float(self.ridge))
        settings = self.settings
        limits = Limits(last_gain, settings.tol or 0.0, settings.max_iter, settings.max_seconds)
        end = run(quality(starts, problem), limits, self._clock, self._observe)
        if problem.ridge and self.ridge == EVIDENCE:  # at the strengths that were learned
            problem = problem.with_evidence(end.step.parameters["phi"])
        return problem, end

    def _clock(self) -> float:
        return time.perf_counter() - self.began

    def _observe(self, now: Run) -> bool:
        return notify(self.callbacks, FitProgress(0, now, lambda: self._model(now, now.kernel)))

    def _model(self, now: Run, kernel: Kernel, **more: Any) -> DPP:
        counts = {"n_baskets": self.n_baskets, "n_distinct": len(self.problem.baskets)}
        known = {"nonempty": self.problem.nonempty, "shrinkage": 0.0, **counts}
        learned = provenance(now, LEARNER, START, self.training, self._clock(), **known, **more)
        model: DPP = self.problem.model(kernel, learned, replace(self.training, history=now.history))
        return model


def _blend(similarity: Any, baskets: AnyBaskets) -> Blend:
    """Return one similarity as it is, named ones together with a uniform one, or the uniform one alone."""
    if isinstance(similarity, str) and similarity == UNIFORM:
        return Blend((), uniform=True)
    if isinstance(similarity, Mapping):
        if not similarity or UNIFORM in similarity:
            raise InputError(
                f"similarity names {', '.join(map(str, similarity)) or 'nothing'}; expected one or more names other "
                f"than {UNIFORM!r}, which is always included"
            )
        read = tuple(read_similarity(each, baskets.catalogue, str(name)) for name, each in similarity.items())
        return Blend(read, uniform=True, names=tuple(map(str, similarity)))
    return Blend((read_similarity(similarity, baskets.catalogue),), uniform=False, fixed=True)
