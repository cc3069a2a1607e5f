"""The learner of quality: Newton's method for the strengths of similarities, each at its best weights. [KT11a]"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from dpplearn.arrays import Bools, Floats
from dpplearn.learners.loop import Step
from dpplearn.learners.quality.blend import MAX_STRENGTH
from dpplearn.learners.quality.problem import Profile, QualityProblem

DIFFERENCE = 1e-4  # of strengths, for the curvature by differences of gradients
MIN_CURVATURE = 1e-10
MIN_STEP_SIZE = 2.0**-20
MAX_CHANGE = 0.2  # of a strength in a step: a longer one may end at the saddle where no items are alike


def quality(starts: Sequence[Floats], problem: QualityProblem) -> Iterator[Step]:
    """Yield steps in the strengths from the best of some starts. The weights need no start: they have one optimum."""
    now = max((problem.profile(phi) for phi in starts), key=lambda profile: profile.value)
    step_size, evaluations = 0.0, float(len(starts))
    while True:
        found = {"phi": now.phi, "theta": now.optimum.theta}
        kernel = partial(problem.kernel, now.phi, now.optimum.theta)
        yield Step(kernel, now.value, step_size, evaluations, parameters=found)
        now, step_size, evaluations = _next(now, problem)


def _next(now: Profile, problem: QualityProblem) -> tuple[Profile, float, float]:
    """Return the end of a step along the Newton direction, clipped at the bounds and halved until it ascends."""
    free = _free(now)
    if not free.any():
        return now, 0.0, 0.0
    direction = np.zeros(len(now.phi))
    H = curvature(now, problem, free)
    direction[free] = _ascent(H, now.gradient[free])
    direction /= max(1.0, float(np.abs(direction).max()) / MAX_CHANGE)
    tried, t = float(free.sum()), 1.0
    while t >= MIN_STEP_SIZE:
        there = problem.profile(np.clip(now.phi + t * direction, 0, MAX_STRENGTH), now.optimum.theta)
        tried += 1
        if there.value > now.value:
            return there, t, tried
        t /= 2
    return now, 0.0, tried


def _free(now: Profile) -> Bools:
    """Return the strengths that are not at a bound that the gradient points across."""
    return ~(((now.phi <= 0) & (now.gradient <= 0)) | ((now.phi >= MAX_STRENGTH) & (now.gradient >= 0)))


def curvature(now: Profile, problem: QualityProblem, free: Bools, *, central: bool = False) -> Floats:
    """Return the Hessian of the profile in some strengths, by differences of gradients; one-sided at a bound."""
    places = np.flatnonzero(free).tolist()
    rows = []
    for place in places:
        ahead = DIFFERENCE if now.phi[place] + DIFFERENCE <= MAX_STRENGTH else -DIFFERENCE
        one = _moved(now, problem, place, ahead)
        other, apart = now, ahead
        if central and 0 <= now.phi[place] - ahead <= MAX_STRENGTH:
            other, apart = _moved(now, problem, place, -ahead), 2 * ahead
        rows.append((one.gradient - other.gradient)[places] / apart)
    H = np.array(rows).reshape(len(places), len(places))
    return np.asarray((H + H.T) / 2)


def _moved(now: Profile, problem: QualityProblem, place: int, by: float) -> Profile:
    phi = now.phi.copy()
    phi[place] += by
    return problem.profile(phi, now.optimum.theta)


def _ascent(H: Floats, g: Floats) -> Floats:
    """Return −H⁻¹ g, with the eigenvalues of H taken as negative."""
    values, vectors = np.linalg.eigh(H)
    size = np.maximum(np.abs(values), max(MIN_CURVATURE, 1e-6 * float(np.abs(values).max())))
    return np.asarray(vectors @ ((vectors.T @ g) / size))
