"""The learner of quality: weights by Newton's method, and outside of that Newton's method for the strengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import Bools, Floats
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Step
from dpplearn.learners.quality.blend import MOST
from dpplearn.learners.quality.problem import Profile, QualityProblem

NEAR = 1e-4  # how far apart slopes are taken to find curvature
FLAT = 1e-10  # curvature that is none
SMALLEST_STEP = 2.0**-20
FARTHEST = 0.2  # how far a strength may move in a step, not to end beside it where no items are alike


def quality(kernel: Kernel | None, problem: QualityProblem) -> Iterator[Step]:
    """Newton's method within bounds for the strengths of similarities, each at its best weights. [KT11a]

    The weights have one optimum, so that no start matters to them, and none is looked at.
    """
    starts = problem.blend.starts()
    now = max((problem.profile(phi) for phi in starts), key=lambda profile: profile.value)
    step_size, evaluations = 0.0, float(len(starts))
    while True:
        found = {"phi": now.phi, "theta": now.optimum.theta}
        yield Step(partial(problem.kernel, now.phi, now.optimum.theta), now.value, step_size, evaluations, found)
        now, step_size, evaluations = _next(now, problem)


def _next(now: Profile, problem: QualityProblem) -> tuple[Profile, float, float]:
    """A step along the Newton direction, bent at the bounds and halved until it ascends; or none where none does."""
    free = _free(now)
    if not free.any():
        return now, 0.0, 0.0
    direction = np.zeros(len(now.phi))
    H = curvature(now, problem, free)
    direction[free] = _ascent(H, now.gradient[free])
    direction /= max(1.0, float(np.abs(direction).max()) / FARTHEST)
    tried, t = float(free.sum()), 1.0
    while t >= SMALLEST_STEP:
        there = problem.profile(np.clip(now.phi + t * direction, 0, MOST), now.optimum.theta)
        tried += 1
        if there.value > now.value:
            return there, t, tried
        t /= 2
    return now, 0.0, tried


def _free(now: Profile) -> Bools:
    """The strengths that are not held by a bound that they want to cross."""
    return ~(((now.phi <= 0) & (now.gradient <= 0)) | ((now.phi >= MOST) & (now.gradient >= 0)))


def curvature(now: Profile, problem: QualityProblem, free: Bools, *, central: bool = False) -> Floats:
    """The Hessian of the profile in some strengths, by differences of slopes; inwards at a bound."""
    places = np.flatnonzero(free).tolist()
    rows = []
    for place in places:
        ahead = NEAR if now.phi[place] + NEAR <= MOST else -NEAR
        one = _moved(now, problem, place, ahead)
        other, apart = now, ahead
        if central and 0 <= now.phi[place] - ahead <= MOST:
            other, apart = _moved(now, problem, place, -ahead), 2 * ahead
        rows.append((one.gradient - other.gradient)[places] / apart)
    H = np.array(rows).reshape(len(places), len(places))
    return np.asarray((H + H.T) / 2)


def _moved(now: Profile, problem: QualityProblem, place: int, by: float) -> Profile:
    phi = now.phi.copy()
    phi[place] += by
    return problem.profile(phi, now.optimum.theta)


def _ascent(H: Floats, g: Floats) -> Floats:
    """−H⁻¹ g, with curvature taken as downwards whatever it is."""
    values, vectors = np.linalg.eigh(H)
    size = np.maximum(np.abs(values), max(FLAT, 1e-6 * float(np.abs(values).max())))
    return np.asarray(vectors @ ((vectors.T @ g) / size))
