"""L-BFGS on the factor B of L = B Bᵀ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.quasi_newton import Curvature, Objective, line_search
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor

SMALL_SLOPE = 1e-3  # above, a promise is beyond any rounding
SHRINK_EVERY = 20  # steps

FewerColumns = Callable[[Floats, Floats], tuple[Floats, Floats] | None]


def lbfgs(kernel: Kernel, problem: Problem) -> Iterator[Step]:
    """L-BFGS on B as it is."""
    B = factor(prepared(kernel, problem.baskets))
    return ascend(FactorLikelihood(problem), B, np.ones(len(B)))


def ascend(
    objective: Objective, Z: Floats, columns: Floats, fewer_columns: FewerColumns | None = None
) -> Iterator[Step]:
    """Steps in Z where B = Z diag(columns): the scale of the columns is the geometry of the search.

    Now and then `fewer_columns` may offer a smaller Z, which is taken unless the likelihood falls.
    """

    def scaled(Z: Floats) -> tuple[float, Floats]:
        value, gradient = objective(Z * columns)
        gradient *= columns
        return value, gradient

    curvature, step = Curvature.unknown(Z.size), 0
    value, gradient = scaled(Z)
    step_size, evaluations = 0.0, 1
    while True:
        yield Step(partial(Kernel.from_factor, Z, columns), value, step_size, evaluations)
        step += 1
        extra = 0
        if fewer_columns is not None and step % SHRINK_EVERY == 0:
            smaller = fewer_columns(Z * columns, gradient / columns)
            if smaller is not None:
                kept, extra = (Z, columns), 1
                Z, columns = smaller
                new_value, new_gradient = scaled(Z)
                if new_value >= value:
                    value, gradient, curvature = new_value, new_gradient, Curvature.unknown(Z.size)
                else:
                    Z, columns = kept
        direction = curvature.times(gradient)
        slope = float(np.vdot(gradient, direction))
        rounding = rounding_of(value, Z * columns) if slope < SMALL_SLOPE else 0.0
        found = line_search(scaled, Z, value, direction, slope, rounding)
        evaluations = extra + found.tried
        if not found.step_size and curvature.count:  # what was learned of the curvature misleads, or this is the top
            curvature = Curvature.unknown(Z.size)
            direction = curvature.times(gradient)
            rounding = rounding_of(value, Z * columns)
            found = line_search(scaled, Z, value, direction, float(np.vdot(gradient, direction)), rounding)
            evaluations += found.tried
        step_size = found.step_size
        if not step_size and found.tried:
            return
        if step_size:
            if step_size != 1:
                direction *= step_size
            curvature.learn(direction, gradient - found.gradient)
            Z, value, gradient = found.x, found.value, found.gradient


def rounding_of(value: float, B: Floats) -> float:
    """How exactly a value is known: to its own rounding, and to that of L, whose large eigenvalues hide the small."""
    return EPSILON * (1e3 * max(1, abs(value)) + 10 * float(np.vdot(B, B)))
