"""fit by the learner of quality: similarity is given, the strength of it and the weights of quality are learned."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.features import Features, as_features
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.similarity import read_similarity
from dpplearn.errors import InputError
from dpplearn.fitting.data import Data
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.quality_result import QualityWeights
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import Restart
from dpplearn.fitting.watching import Callback, observers_of
from dpplearn.kernels.independent import SMOOTHING, independent_log_likelihood
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Limits, Run, run
from dpplearn.learners.quality.blend import Blend
from dpplearn.learners.quality.design import Design
from dpplearn.learners.quality.errors import Errors, standard_errors
from dpplearn.learners.quality.newton import Optimum
from dpplearn.learners.quality.problem import Profile, QualityProblem, check_possible
from dpplearn.learners.quality.quality import quality
from dpplearn.learners.quality.ridge import by_cross_validation, by_evidence
from dpplearn.models.dpp import DPP
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.threads import suitable_blas

UNIFORM = "uniform"
START = "frequencies"  # what the weights start from


def blend_of(similarity: Any, baskets: AnyBaskets) -> Blend:
    """One similarity as it is; named ones, with strengths to be learned, beside a uniform one; or that alone."""
    if similarity is None or (isinstance(similarity, str) and similarity == UNIFORM):
        return Blend((), uniform=True)
    if isinstance(similarity, Mapping):
        if not similarity or UNIFORM in similarity:
            raise InputError(
                f"similarity names {', '.join(map(str, similarity)) or 'nothing'}; expected one or more names of your "
                f"own: a {UNIFORM} one is always beside them, and alone it is similarity={UNIFORM!r}"
            )
        read = tuple(read_similarity(each, baskets.catalogue, str(name)) for name, each in similarity.items())
        return Blend(read, uniform=True, names=tuple(map(str, similarity)))
    return Blend((read_similarity(similarity, baskets.catalogue),), uniform=False, fixed=True)


def fit_quality(
    options: FitOptions, baskets: AnyBaskets, rng: Seed = None, callback: Callback | None = None
) -> FitResult:
    """`fit` with learner="quality", its options being settled for these baskets."""
    began = time.perf_counter()
    data = Data.of(baskets)
    features = None if options.features is None else as_features(options.features, baskets.catalogue)
    design = None if features is None else Design.of_features(features)
    law = options.threads, options.given_nonempty
    problem = QualityProblem(data.distinct, *law, design, blend_of(options.similarity, baskets))
    check_possible(problem, data.distinct)
    seed = int(np.random.default_rng(rng).integers(2**63))
    limits = Limits(options.how.rule, options.tolerance, options.max_iter, options.max_seconds)

    def build(restart: int, now: Run) -> DPP:
        learned = Provenance(
            learner=options.how.name, start=START, n_iter=now.n_iter, nonempty=problem.nonempty, seconds=now.seconds
        )
        assert isinstance(now.kernel, Kernel)
        training = Training.of(data.units, now.history)
        return DPP(now.kernel, data.distinct.items, nonempty=problem.nonempty, learned=learned, training=training)

    with (
        suitable_blas(baskets.n_items, options.threads),
        observers_of(1, options.progress, callback, build) as observers,
    ):

        def observe(now: Run) -> bool:
            answers = [observer(0, now) for observer in observers]
            return any(answers)

        problem = _with_ridge(problem, problem.blend.starts()[0], options, seed)
        end = run(quality(None, problem), limits, lambda: time.perf_counter() - began, observe)
        if problem.ridge and options.ridge == "evidence":  # what the strengths that were learned make of it
            problem = problem.with_ridge(by_evidence(problem, end.step.parameters["phi"]))
        return _result(options, data, problem, end, features, time.perf_counter() - began)


def _with_ridge(problem: QualityProblem, phi: Floats, options: FitOptions, seed: int) -> QualityProblem:
    if problem.of_all.free:
        return problem
    if options.ridge == "evidence":
        return problem.with_ridge(by_evidence(problem, phi))
    if options.ridge == "cross-validation":
        return problem.with_ridge(by_cross_validation(problem, phi, seed))
    return problem.with_ridge(float(options.ridge))


def _final(options: FitOptions, problem: QualityProblem, end: Profile) -> tuple[QualityProblem, Optimum]:
    """Return the weights for the learned strengths.

    With one weight per item, the weights come from smoothed frequencies, unless shrinkage=0 was asked for. Smoothing
    beforehand would bias the strengths.
    """
    if problem.of_all.free and options.smooths:
        baskets = problem.baskets
        m = (baskets.frequencies() * problem.number + SMOOTHING) / (problem.number + 2 * SMOOTHING)
        return problem.smoothed(end.phi, m)
    return problem, end.optimum


def _result(
    options: FitOptions, data: Data, problem: QualityProblem, end: Run, features: Features | None, seconds: float
) -> FitResult:
    assert end.stop is not None
    last = problem.profile(end.step.parameters["phi"], end.step.parameters["theta"])
    final, best = _final(options, problem, last)
    kernel = final.kernel(last.phi, best.theta)
    baseline = independent_log_likelihood(data.distinct, nonempty=problem.nonempty)
    learned = Provenance(
        learner=options.how.name,
        start=START,
        restarts=1,
        n_iter=end.n_iter,
        evaluations=float(end.history.evaluations[-1]),
        stop=end.stop.name,
        shrinkage=0.0,
        shrinkage_chosen=False,
        nonempty=problem.nonempty,
        log_likelihood=problem.log_likelihood(kernel),
        independent_log_likelihood=baseline,
        n_baskets=len(data.given),
        n_distinct=len(data.distinct),
        weight=data.given.total_weight,
        seconds=seconds,
    )
    training = Training.of(data.units, end.history)
    model = DPP(kernel, data.distinct.items, nonempty=problem.nonempty, learned=learned, training=training)
    errors = standard_errors(problem, final, last, best.theta)
    weights = _weights(final, last.phi, best, errors, features)
    return FitResult(model, end.history, end.stop, (Restart.of(end, START),), baseline, weights=weights)


def _weights(
    problem: QualityProblem, phi: Floats, best: Optimum, errors: Errors, features: Features | None
) -> QualityWeights:
    strengths = problem.blend.strengths(phi)[0] if len(phi) else np.zeros(0)
    return QualityWeights(
        problem.of_all.among(problem.items).names,
        best.theta,
        errors.of_weights,
        problem.blend.strength_names,
        strengths,
        errors.of_strengths,
        None if problem.of_all.free else problem.ridge,
        problem.of_all.free,
        () if features is None else features.notes,
    )
