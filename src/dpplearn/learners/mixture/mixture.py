"""The learner of mixtures: L-BFGS on numbers scaled so that all of them matter alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.loop import NO_MEMORY, Memory, Step
from dpplearn.learners.mixture.parameters import Parameters, Shape
from dpplearn.learners.mixture.problem import MixtureProblem
from dpplearn.learners.mixture.starts import with_repulsion
from dpplearn.learners.quasi_newton import Curvature, line_search
from dpplearn.learners.race import of_each, race

RACE = 20  # steps; on all data tried, which of the two starts is ahead then was so after a hundred
FIRST_STEP = 0.3  # its length, in the scaled numbers


def mixture(kernel: MixtureKernel, problem: MixtureProblem, memory: Memory = NO_MEMORY) -> Iterator[Step]:
    """From the kernel, and beside it from one with the repulsion that the pairs show: near-duplicates that repel
    strongly are found from the second alone, and what attracts sooner from the first. After some steps the better goes
    on alone."""
    if "race" in memory:
        return race([climb(problem, **_remembered(each)) for each in of_each(memory)], RACE, int(memory["race"][0]))
    if memory:
        return climb(problem, **_remembered(memory))
    at = Parameters.from_kernel(kernel, problem.shape, problem.penalty)
    starts = [start for start in (at, with_repulsion(at, problem.baskets)) if start is not None]
    runs = [climb(problem, start.flat(problem.shape) * problem.scale) for start in starts]
    return race(runs, RACE) if len(runs) > 1 else runs[0]


def _remembered(memory: Memory) -> dict[str, Any]:
    return {"y": memory["y"], "curvature": Curvature.remembered(memory)}


def climb(problem: MixtureProblem, y: Floats, curvature: Curvature | None = None) -> Iterator[Step]:
    """Steps in y = s ∘ x, s the scale of the problem."""
    shape, scale = problem.shape, problem.scale

    def objective(y: Floats) -> tuple[float, Floats]:
        value, gradient = problem.objective(y / scale)
        return value, gradient / scale

    curvature = curvature or Curvature.unknown(len(y))
    value, gradient = objective(y)
    step_size, evaluations = 0.0, 1
    while True:
        found_at = partial(kernel_at, y, scale, shape)
        yield Step(found_at, value, step_size, evaluations, {"y": y, **curvature.memory})
        direction = curvature.times(gradient) if curvature.count else first_step(gradient)
        rounding = 1e3 * EPSILON * max(1, abs(value))
        found = line_search(objective, y, value, direction, float(gradient @ direction), rounding)
        evaluations = found.tried
        if not found.step_size and curvature.count:  # what was learned of the curvature misleads, or this is the top
            curvature = Curvature.unknown(len(y))
            direction = first_step(gradient)
            found = line_search(objective, y, value, direction, float(gradient @ direction), rounding)
            evaluations += found.tried
        if not found.step_size:
            return
        step_size = found.step_size
        curvature.learn(step_size * direction, gradient - found.gradient)
        y, value, gradient = found.x, found.value, found.gradient


def first_step(gradient: Floats) -> Floats:
    """Along the gradient, where nothing is known of the curvature."""
    return np.asarray(gradient * (FIRST_STEP / max(float(np.linalg.norm(gradient)), EPSILON)))


def kernel_at(y: Floats, scale: Floats, shape: Shape) -> MixtureKernel:
    return Parameters.of(y / scale, shape).kernel(shape)
