"""L-BFGS: curvature from the last steps [LN89] in the compact form of [BNS94], and a line search.

scipy's version has a loop of its own. Here `loop.run` decides after every step whether to go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints

PAIRS = 10  # steps that are remembered
SUFFICIENT = 1e-4  # fraction of the predicted ascent that a step must bring
MIN_STEP_SIZE = 1e-10
MIN_COSINE = 1e-10  # between a step and the change of the gradient; below, the objective is not concave there

ROWS = PAIRS + 1  # of the ring buffer: the pairs in use, and one spare row
_ROWS_OF_COUNT = [np.arange(count - PAIRS, count) % ROWS for count in range(ROWS)]

Objective = Callable[[Floats], tuple[float, Floats]]  # to the value and its gradient


class Point(NamedTuple):
    """A point of the search, and the step that led to it."""

    x: Floats
    value: float
    gradient: Floats
    step_size: float = 0.0
    evaluations: int = 1


def ascend(
    objective: Objective,
    at: Point,
    first_direction: Callable[[Floats], Floats],
    rounding: Callable[[Point], float],
    is_flat: Callable[[Point], bool] = lambda at: False,
) -> Iterator[Point]:
    """Yield the points after `at`, each higher than the last; end where no step ascends.

    `first_direction` gives the direction from the gradient while no curvature is known. `rounding` bounds the error of
    a value: where a step promises less, or where the objective `is_flat`, the same point is yielded again, so that the
    loop can see that nothing is left to gain.
    """
    curvature = Curvature.unknown(at.x.size)
    while True:
        if is_flat(at):
            at = at._replace(step_size=0.0, evaluations=0)
            yield at
            continue
        direction = curvature.times(at.gradient) if curvature.count else first_direction(at.gradient)
        found, before = line_search(objective, at, direction, rounding(at)), 0
        if not found.step_size and curvature.count:  # the remembered curvature misleads, or this is the optimum
            before, curvature = found.evaluations, Curvature.unknown(at.x.size)
            direction = first_direction(at.gradient)
            found = line_search(objective, at, direction, rounding(at))
        if found.step_size:
            change = direction if found.step_size == 1 else found.step_size * direction
            curvature.learn(change, at.gradient - found.gradient)
        elif found.evaluations:
            return
        at = found._replace(evaluations=before + found.evaluations)
        yield at


def line_search(objective: Objective, at: Point, direction: Floats, rounding: float) -> Point:
    """Return the point of the first of 1 and ever shorter steps that ascends enough; `at` with step size 0 if none."""
    slope = float(np.vdot(at.gradient, direction))
    step_size, tried = 1.0 if slope > rounding else 0.0, 0
    while step_size >= MIN_STEP_SIZE:
        x = at.x + direction if step_size == 1 else at.x + step_size * direction
        value, gradient = objective(x)
        tried += 1
        if value >= at.value + SUFFICIENT * step_size * slope:
            return Point(x, value, gradient, step_size, tried)
        # the maximum of the parabola through both values and the slope
        missed = step_size * slope - (value - at.value)
        step_size *= float(np.clip(step_size * slope / (2 * missed), 0.1, 0.5)) if np.isfinite(missed) else 0.1
    return at._replace(step_size=0.0, evaluations=tried)


@dataclass
class Curvature:
    """Approximate inverse Hessian of minus the objective, from the last steps s and changes y of the gradient."""

    vectors: Floats  # (2 ROWS, n): the steps, then the changes; pair number i is in row i % ROWS of each
    SY: Floats  # (PAIRS, PAIRS): products of steps and changes, the oldest pair first
    YY: Floats  # (PAIRS, PAIRS): of changes with each other
    count: int  # of pairs so far

    @classmethod
    def unknown(cls, n: int) -> Curvature:
        return cls(np.zeros((2 * ROWS, n)), np.zeros((PAIRS, PAIRS)), np.zeros((PAIRS, PAIRS)), 0)

    @property
    def rows(self) -> Ints:
        """Rows of the remembered steps, the oldest first; the changes are ROWS rows further."""
        return _ROWS_OF_COUNT[self.count % ROWS] if self.count >= PAIRS else np.arange(self.count)

    def learn(self, s: Floats, y: Floats) -> None:
        """Replace the oldest pair, unless the new one shows that the objective is not concave there."""
        s, y = s.reshape(-1), y.reshape(-1)
        if not s @ y > MIN_COSINE * math.sqrt((s @ s) * (y @ y)):
            return
        row, last = self.count % ROWS, min(self.count, PAIRS - 1)
        self.vectors[row], self.vectors[ROWS + row] = s, y
        if self.count < PAIRS:
            self.SY, self.YY = self.SY.copy(), self.YY.copy()
        else:
            self.SY, self.YY = _without_oldest(self.SY), _without_oldest(self.YY)
        self.count += 1
        with_y, rows = self.vectors @ y, self.rows
        self.SY[: last + 1, last] = with_y[rows]
        self.YY[: last + 1, last] = self.YY[last, : last + 1] = with_y[ROWS + rows]

    def times(self, gradient: Floats) -> Floats:
        """Return H g = γ g + S R⁻ᵀ ((D + γ YᵀY) R⁻¹ Sᵀg − γ Yᵀg) − γ Y R⁻¹ Sᵀg, with R the upper triangle of SᵀY, D its
        diagonal and γ = sᵀy/yᵀy of the last pair. [BNS94, eq. 3.1]"""
        from scipy.linalg.lapack import dtrtrs

        rows, n = self.rows, min(self.count, PAIRS)
        R, YY = self.SY[:n, :n], self.YY[:n, :n]
        gamma = R[-1, -1] / YY[-1, -1]
        with_gradient = self.vectors @ gradient.reshape(-1)
        u = dtrtrs(R, with_gradient[rows])[0]
        v = dtrtrs(R, R.diagonal() * u + gamma * (YY @ u - with_gradient[ROWS + rows]), trans=1)[0]
        weights = np.zeros(2 * ROWS)
        weights[rows] = v
        weights[ROWS + rows] = -gamma * u
        product: Floats = (weights @ self.vectors).reshape(gradient.shape)
        product += gamma * gradient
        return product


def _without_oldest(products: Floats) -> Floats:
    moved = np.zeros_like(products)
    moved[:-1, :-1] = products[1:, 1:]
    return moved
