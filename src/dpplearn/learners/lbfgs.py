"""L-BFGS: curvature from the last steps [LN89], and a line search.

scipy's version has a loop of its own. Here `loop.run` decides after every step whether to go on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats

PAIRS = 10  # steps that are remembered
SUFFICIENT = 1e-4  # fraction of the predicted ascent that a step must bring
MIN_STEP_SIZE = 1e-10
MIN_COSINE = 1e-10  # between a step and the change of the gradient; below, the objective is not concave there

Objective = Callable[[Floats], tuple[float, Floats]]  # to the value and its gradient


class Point(NamedTuple):
    """A point of the search, and the step that led to it."""

    x: Floats
    value: float
    gradient: Floats
    step_size: float = 0.0
    evaluations: int = 1


def ascend(
    objective: Objective, at: Point, first_direction: Callable[[Floats], Floats], rounding: Callable[[Point], float]
) -> Iterator[Point]:
    """Yield the points after `at`, each higher than the last; end where no step ascends.

    `first_direction` gives the direction from the gradient while no curvature is known. `rounding` bounds the error of
    a value: where a step promises less, the same point is yielded again, so that the loop can see that nothing is left
    to gain.
    """
    curvature, tried = Curvature(), 0
    while True:
        known = bool(curvature.pairs)
        direction = curvature.times(at.gradient) if known else first_direction(at.gradient)
        found = line_search(objective, at, direction, rounding(at))
        tried += found.evaluations
        if found.step_size:
            curvature.learn(found.step_size * direction, at.gradient - found.gradient)
        elif known:  # the remembered curvature misleads, or this is the optimum
            curvature = Curvature()
            continue
        elif found.evaluations:
            return
        at, tried = found._replace(evaluations=tried), 0
        yield at


def line_search(objective: Objective, at: Point, direction: Floats, rounding: float) -> Point:
    """Return the point of the first of 1 and ever shorter steps that ascends enough; `at` with step size 0 if none."""
    slope = float(np.vdot(at.gradient, direction))
    step_size, tried = 1.0 if slope > rounding else 0.0, 0
    while step_size >= MIN_STEP_SIZE:
        x = at.x + step_size * direction
        value, gradient = objective(x)
        tried += 1
        if value >= at.value + SUFFICIENT * step_size * slope:
            return Point(x, value, gradient, step_size, tried)
        # the maximum of the parabola through both values and the slope
        missed = step_size * slope - (value - at.value)
        step_size *= float(np.clip(step_size * slope / (2 * missed), 0.1, 0.5)) if np.isfinite(missed) else 0.1
    return at._replace(step_size=0.0, evaluations=tried)


class Curvature:
    """Approximate inverse Hessian of minus the objective, from the last steps s and changes y of minus the gradient."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=PAIRS)  # s, y and sᵀy, the oldest pair first

    def learn(self, s: Floats, y: Floats) -> None:
        """Replace the oldest pair, unless the new one shows that the objective is not concave there."""
        sy = float(np.vdot(s, y))
        if sy > MIN_COSINE * math.sqrt(float(np.vdot(s, s)) * float(np.vdot(y, y))):
            self.pairs.append((s, y, sy))

    def times(self, gradient: Floats) -> Floats:
        """Return H g by the two-loop recursion, from H = sᵀy/yᵀy of the last pair. [LN89]"""
        direction, alphas = gradient.copy(), []
        for s, y, sy in reversed(self.pairs):
            alphas.append(float(np.vdot(s, direction)) / sy)
            direction -= alphas[-1] * y
        _, y, sy = self.pairs[-1]
        direction *= sy / float(np.vdot(y, y))
        for (s, y, sy), alpha in zip(self.pairs, reversed(alphas), strict=True):
            direction += (alpha - float(np.vdot(y, direction)) / sy) * s
        return direction
