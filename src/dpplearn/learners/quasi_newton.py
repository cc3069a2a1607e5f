"""L-BFGS: curvature from the last steps, and the line search. [LN89], in the compact form of [BNS94]

Not scipy's, because the loop decides after every step whether to go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints

PAIRS = 10  # how many steps are remembered
FIRST_SCALE = 0.5  # times the gradient: the first step, where nothing is known of the curvature
SUFFICIENT = 1e-4  # share of the promised ascent that a step must bring
SHORTEST = 1e-10
CONCAVE = 1e-10  # the least cosine between a step and the change of the gradient along it

ROWS = PAIRS + 1  # of the ring buffer: the pairs in use, and one spare row
_PLACES = [np.arange(count - PAIRS, count) % ROWS for count in range(ROWS)]

Objective = Callable[[Floats], tuple[float, Floats]]


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
