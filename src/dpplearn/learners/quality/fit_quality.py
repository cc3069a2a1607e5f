"""fit_quality: a DPP whose similarity is given, from baskets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    began = time.perf_counter()
    settings = Settings(tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    if ridge != EVIDENCE and not (isinstance(ridge, Real) and 0 <= float(ridge) < np.inf):
        raise InputError(f"ridge must be {EVIDENCE!r} or a number, 0 or more, got {ridge!r}")
    given, callbacks = checked_baskets(baskets), as_callbacks(callback)
    whole = TrainingData.of(given)
    encoded = None if features is None else as_features(features, given.catalogue)
    design = None if encoded is None else Design.of_features(encoded)
    blend, conditional = _blend(similarity, given), resolve_nonempty(nonempty, given)
    problem = QualityProblem(whole.distinct, settings.threads, conditional, design, blend)
    problem.check_possible()
    training = Training.of(whole.units)

    def clock() -> float:
        return time.perf_counter() - began

    def model(now: Run, kernel: Any, **more: Any) -> DPP:
        learned = provenance(now, LEARNER, START, training, clock(), nonempty=conditional, **more)
        found: DPP = problem.model(kernel, learned, replace(training, history=now.history))
        return found

    def observe(now: Run) -> bool:
        return notify(callbacks, FitProgress(0, now, lambda: model(now, now.kernel)))

    with suitable_blas(given.n_items, threads), saved_on_exit(callbacks):
        starts = blend.starts()
        if design is not None:
            by_evidence = ridge == EVIDENCE
            problem = problem.with_evidence(starts[0]) if by_evidence else replace(problem, ridge=float(ridge))
        end = run(quality(starts, problem), Limits(last_gain, tol, max_iter, max_seconds), clock, observe)
        assert end.stop is not None
        phi, theta = (end.step.parameters[name] for name in ("phi", "theta"))
        if problem.ridge and ridge == EVIDENCE:  # at the strengths that were learned
            problem = problem.with_evidence(phi)
        last = problem.profile(phi, theta)
        # Smoothing before the strengths are learned would bias them.
        final = replace(problem, smoothed=True) if design is None and smooth else problem
        best = best_weights(final.target(phi)) if final.smoothed else last.optimum
        errors = standard_errors(problem, final, last, best.theta)
        kernel = final.kernel(phi, best.theta)
        record = partial(model, end, kernel, restarts=1, stop=end.stop.name, shrinkage=0.0)
        found = record(
            log_likelihood=problem.log_likelihood(kernel),
            independent_log_likelihood=independent_log_likelihood(whole.distinct, nonempty=conditional),
            n_baskets=len(given),
            n_distinct=len(whole.distinct),
        )
    weights = QualityWeights(
        final.whole_design.among(final.items).names,
        best.theta,
        errors.of_weights,
        blend.strength_names,
        blend.strengths(phi)[0] if len(phi) else np.zeros(0),
        errors.of_strengths,
        None if design is None else problem.ridge,
        design is None,
        _notes(encoded),
    )
    return FitResult(found, end.history, end.stop, (Restart.of(end, START),), weights)


def _notes(features: Features | None) -> tuple[str, ...]:
    return () if features is None else features.notes


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
