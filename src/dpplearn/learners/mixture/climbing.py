"""The climb to a mixture: L-BFGS on numbers scaled so that all of them matter alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters, Shape
from dpplearn.learners.quasi_newton import Curvature, line_search

FIRST_STEP = 0.3  # its length, in the scaled numbers


def climb(objective: Objective, y: Floats, scale: Floats) -> Iterator[Step]:
    """Steps in y = s ∘ x, s the scale."""

    def scaled(y: Floats) -> tuple[float, Floats]:
        value, gradient = objective(y / scale)
        return value, gradient / scale

    curvature = Curvature.unknown(len(y))
    value, gradient = scaled(y)
    step_size, evaluations = 0.0, 1
    while True:
        found_at = partial(kernel_at, y, scale, objective.shape)
        yield Step(found_at, value, step_size, evaluations, {"y": y, "scale": scale})
        rounding = 1e3 * EPSILON * max(1, abs(value))
        if float(gradient @ gradient) <= rounding:  # second derivatives are about 1 in y: nothing is left to be gained
            step_size, evaluations = 0.0, 0
            continue
        direction = curvature.times(gradient) if curvature.count else first_step(gradient)
        found = line_search(scaled, y, value, direction, float(gradient @ direction), rounding)
        evaluations = found.tried
        if not found.step_size and curvature.count:  # what was learned of the curvature misleads, or this is the top
            curvature = Curvature.unknown(len(y))
            direction = first_step(gradient)
            found = line_search(scaled, y, value, direction, float(gradient @ direction), rounding)
            evaluations += found.tried
        if not found.step_size:
            return
        step_size = found.step_size
        curvature.learn(step_size * direction, gradient - found.gradient)
        y, value, gradient = found.x, found.value, found.gradient


def first_step(gradient: Floats) -> Floats:
    """Along the gradient, where nothing is known of the curvature."""
    return np.asarray(gradient * (FIRST_STEP / max(float(np.linalg.norm(gradient)), EPSILON)))


def numbers_at(step: Step, shape: Shape) -> Parameters:
    return Parameters.of(step.parameters["y"] / step.parameters["scale"], shape)


def kernel_at(y: Floats, scale: Floats, shape: Shape) -> MixtureKernel:
    return Parameters.of(y / scale, shape).kernel(shape)
