"""The learner of mixtures: L-BFGS on scaled parameters, segments first and then everything."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.learners.kernels import Segments
from dpplearn.learners.lbfgs import Point, ascend
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters
from dpplearn.learners.mixture.problem import MixtureProblem, MixtureStart
from dpplearn.learners.mixture.starts import with_pairs

SEGMENT_STEPS = (10, 110)  # on segments alone, before and after the scale is adapted to them
FIRST_STEP = 0.3  # length of the first step, in the scaled parameters


def mixture(start: MixtureStart, problem: MixtureProblem) -> Iterator[Step]:
    """Yield steps from a start. A random start first learns its segments without interaction."""
    at = start.parameters
    if start.random:
        if problem.segments > 1:
            at = yield from learn_segments(at, problem)
        at = with_pairs(at, problem.baskets, problem.expected_pairs(at))
        # principal axes for U, and the γ that leaves the least penalty
        at = Parameters.from_kernel(at.kernel(problem.shape), problem.shape, problem.penalty)
    scale = problem.scale_at(at)
    yield from climb(problem.at_shape, at, scale)


def learn_segments(at: Parameters, problem: MixtureProblem) -> Generator[Step, None, Parameters]:
    """Yield steps in which items do not interact, and return where they end.

    Such a step takes a fraction of the time of one with interaction, and leaves little to do for those.
    """
    alone = replace(problem, rank=0, attraction=False)
    found = replace(at, U=at.U[:, :0], A=at.A[:0])
    scale = alone.scale.flat(alone.shape)
    for number, steps in enumerate(SEGMENT_STEPS):
        climbed = climb(alone.at_shape, found, scale)
        for step in islice(climbed, steps + 1):
            last = step
            if step.step_size or not number:  # the second climb begins where the first ended
                yield replace(step, preliminary=True)
        found = Parameters.of(last.parameters["x"], alone.shape)
        scale = alone.scale_at(found)
    return replace(found, U=at.U, A=at.A)


def climb(objective: Objective, at: Parameters, scale: Floats) -> Iterator[Step]:
    """Yield steps of L-BFGS in y = s ∘ x, s the scale: in y all second derivatives are about 1."""

    def scaled(y: Floats) -> tuple[float, Floats]:
        value, gradient = objective(y / scale)
        return value, gradient / scale

    def step(at: Point) -> Step:
        x = at.x / scale
        log_likelihood = at.value + objective.penalties(Parameters.of(x, objective.shape))
        make = partial(kernel_at, x, objective)
        return Step(make, log_likelihood, at.step_size, at.evaluations, at.value, parameters={"x": x})

    y = at.flat(objective.shape) * scale
    first = Point(y, *scaled(y))
    yield step(first)
    for each in ascend(scaled, first, first_direction, rounding, is_flat):
        yield step(each)


def rounding(at: Point) -> float:
    return 1e3 * EPSILON * max(1, abs(at.value))


def is_flat(at: Point) -> bool:
    """Return whether nothing is left to gain: second derivatives are about 1 in the scaled parameters."""
    return float(at.gradient @ at.gradient) <= rounding(at)


def first_direction(gradient: Floats) -> Floats:
    """Return a step of fixed length along the gradient."""
    return np.asarray(gradient * (FIRST_STEP / max(float(np.linalg.norm(gradient)), EPSILON)))


def kernel_at(x: Floats, objective: Objective) -> Segments:
    return Parameters.of(x, objective.shape).kernel(objective.shape)
