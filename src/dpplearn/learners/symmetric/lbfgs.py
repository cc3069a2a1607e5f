"""L-BFGS on the factor B of L = B Bᵀ. [LN89], in the compact form of [BNS94]

Our own rather than scipy's because a fit must be able to stop after any step, and go on from a file to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import NO_MEMORY, Memory, Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.saddles import prepared
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor

PAIRS = 10  # how many steps are remembered
FIRST_SCALE = 0.5  # times the gradient: the first step, where nothing is known of the curvature
SUFFICIENT = 1e-4  # share of the promised ascent that a step must bring
SHORTEST = 1e-10
SMALL_SLOPE = 1e-3  # above, a promise is beyond any rounding
CONCAVE = 1e-10  # the least cosine between a step and the change of the gradient along it

SHRINK_EVERY = 20  # steps

ROWS = PAIRS + 1  # one to write into, so that the memory of a step stays as it was until the next step is there
_PLACES = [np.arange(count - PAIRS, count) % ROWS for count in range(ROWS)]

Objective = Callable[[Floats], tuple[float, Floats]]
FewerColumns = Callable[[Floats, Floats], tuple[Floats, Floats] | None]


def lbfgs(kernel: Kernel, problem: Problem, memory: Memory = NO_MEMORY) -> Iterator[Step]:
    """L-BFGS on B as it is."""
    likelihood = FactorLikelihood(problem)
    if memory:
        return ascend(likelihood, memory["Z"], memory["columns"], Curvature.remembered(memory))
    B = factor(prepared(kernel, problem.baskets))
    return ascend(likelihood, B, np.ones(len(B)), Curvature.unknown(B.size))


def ascend(
    objective: Objective,
    Z: Floats,
    columns: Floats,
    curvature: Curvature,
    fewer_columns: FewerColumns | None = None,
    step: int = 0,
) -> Iterator[Step]:
    """Steps in Z where B = Z diag(columns): the scale of the columns is the geometry of the search.

    Now and then `fewer_columns` may offer a smaller Z, which is taken unless the likelihood falls.
    """

    def scaled(Z: Floats) -> tuple[float, Floats]:
        value, gradient = objective(Z * columns)
        gradient *= columns
        return value, gradient

    value, gradient = scaled(Z)
    step_size, evaluations = 0.0, 1
    while True:
        memory = {"Z": Z, "columns": columns, "step": np.array([step]), **curvature.memory}
        yield Step(partial(Kernel.from_factor, Z, columns), value, step_size, evaluations, memory)
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


class Found(NamedTuple):
    """A step, where it leads, and how many were tried. No step where none keeps its promise, and none tried where
    less is promised than rounding leaves of a value."""

    step_size: float
    x: Floats
    value: float
    gradient: Floats
    tried: int


def line_search(
    objective: Objective, x: Floats, value: float, direction: Floats, slope: float, rounding: float
) -> Found:
    """The first of 1 and ever shorter steps that brings enough."""
    step_size, tried = 1.0 if slope > rounding else 0.0, 0
    while step_size >= SHORTEST:
        new_x = x + direction if step_size == 1 else x + step_size * direction
        new_value, gradient = objective(new_x)
        tried += 1
        if new_value >= value + SUFFICIENT * step_size * slope:
            return Found(step_size, new_x, new_value, gradient, tried)
        missed = step_size * slope - (new_value - value)  # of a parabola through both values, the top is at:
        step_size *= float(np.clip(step_size * slope / (2 * missed), 0.1, 0.5)) if np.isfinite(missed) else 0.1
    return Found(0.0, x, value, direction, tried)


@dataclass
class Curvature:
    """The inverse Hessian (of minus the objective) that the last steps s and changes y of the gradient tell of."""

    vectors: Floats  # (2 ROWS, n): the steps, then the changes; pair number i is in row i % ROWS of each
    SY: Floats  # (PAIRS, PAIRS): products of steps and changes, the oldest pair first
    YY: Floats  # (PAIRS, PAIRS): of changes with each other
    count: int  # of pairs so far

    @classmethod
    def unknown(cls, n: int) -> Curvature:
        return cls(np.zeros((2 * ROWS, n)), np.zeros((PAIRS, PAIRS)), np.zeros((PAIRS, PAIRS)), 0)

    @classmethod
    def remembered(cls, memory: Memory) -> Curvature:
        vectors, SY, YY = (memory[name].copy() for name in ("vectors", "SY", "YY"))
        return cls(vectors, SY, YY, int(memory["count"][0]))

    @property
    def memory(self) -> Memory:
        return {"vectors": self.vectors, "SY": self.SY, "YY": self.YY, "count": np.array([self.count])}

    @property
    def rows(self) -> Ints:
        """Where the steps of the remembered pairs are, the oldest first; the changes are ROWS rows further."""
        return _PLACES[self.count % ROWS] if self.count >= PAIRS else np.arange(self.count)

    def learn(self, s: Floats, y: Floats) -> None:
        """Remember a pair, in the place of the oldest, unless it says that the objective is not concave there."""
        s, y = s.reshape(-1), y.reshape(-1)
        if not s @ y > CONCAVE * math.sqrt((s @ s) * (y @ y)):
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
        """H g = γ g + S R⁻ᵀ ((D + γ YᵀY) R⁻¹ Sᵀg − γ Yᵀg) − γ Y R⁻¹ Sᵀg, with R the upper triangle of SᵀY, D its
        diagonal and γ = sᵀy/yᵀy of the last pair. [BNS94, eq. 3.1]"""
        from scipy.linalg.lapack import dtrtrs

        if not self.count:
            return FIRST_SCALE * gradient
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
