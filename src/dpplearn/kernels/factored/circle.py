"""det(I + zL_c) and what follows from it at any z of one segment, without a pass over all items for each z.

With w_i = z p_i/(1 + p_i (z − 1)), it is Π(1 + p_i (z − 1)) det(I + S(z) Ω)/Π(1 − p_i), S(z) = Zᵀ diag(w) Z. All that
depends on z are sums Σ_i p_i f(p_i) and Σ_i p_i f(p_i) z_iᵀ z_i with f smooth in p as long as p is far from 1/(1 − z):
for rare items, f at a few Chebyshev points gives it everywhere, to rounding, and sums over items are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.kernels.factored.kernel import FactoredKernel

Complex = npt.NDArray[Any]  # or real
Function = Callable[[Floats], Complex]  # of p

FARTHEST = 8.0  # |z| at most
EDGES = (0.0, 1e-4, 1e-3, 5e-3, 2e-2)  # of groups of items by p; those above the last have sums of their own
CLOSE = 0.02  # of log t, where a size on average needs no exact t
STEPS = 40


@dataclass(frozen=True)
class Group:
    """Items with p in one range, and the sums over them that belong to each of a few points of it."""

    items: Ints
    points: Floats
    basis: Floats  # p_i times the weight of each point in what f is at item i, (n items, n points)
    totals: Floats  # of that, (n points,)
    grams: Floats  # Zᵀ diag(that) Z, (n points, n_columns²)


@dataclass(frozen=True)
class Circle:
    """One segment, whose log-odds have been raised by a shift: z counts from there."""

    kernel: FactoredKernel
    segment: int
    omega: Floats
    shift: float
    p: Floats  # (n_items,)
    groups: list[Group]
    common: Ints  # the items that are in no group
    rows: Floats  # of Z, of these

    def sums(self, functions: list[Function]) -> tuple[Complex, Complex]:
        """Σ_i p_i f(p_i), and Σ_i p_i f(p_i) z_iᵀ z_i, of some functions f."""
        p, r = self.p[self.common], len(self.omega)
        each = np.array([p * f(p) for f in functions])
        total, matrix = each.sum(axis=1), np.zeros((len(functions), r * r), each.dtype)
        for row, weights in zip(matrix, each, strict=True):
            row[:] = (self.rows.T @ (weights[:, None] * self.rows)).ravel()
        for group in self.groups:
            at = np.array([f(group.points) for f in functions])
            total, matrix = total + at @ group.totals, matrix + at @ group.grams
        return total, matrix.reshape(-1, r, r)

    def log_ratio(self, z: Complex) -> tuple[Complex, Complex]:
        """log det(I + zL)/det(I + L) of some z but for what all share, and S(z)."""
        logs: list[Function] = [lambda p, z=each: np.log1p(p * (z - 1)) / p for each in z]  # type: ignore[misc]
        S = self.sums([inside(each) for each in z])[1]
        sign, logdet = np.linalg.slogdet(np.eye(len(self.omega)) + S @ self.omega)
        return self._totals(logs) + logdet + np.log(sign), S

    def _totals(self, functions: list[Function]) -> Complex:
        p = self.p[self.common]
        total = np.array([(p * f(p)).sum() for f in functions])
        for group in self.groups:
            total = total + np.array([f(group.points) for f in functions]) @ group.totals
        return total

    def moments(self, t: float) -> tuple[float, float]:
        """The mean and the variance of |Y| under t·L."""
        w = inside(t)
        functions: list[Function] = [w, lambda p: w(p) * (1 - p * w(p)), lambda p: p * w(p) ** 2 * (1 - p * w(p))]
        functions.append(lambda p: p * w(p) ** 2)
        totals, (S, U, P, _) = self.sums(functions)
        T = np.linalg.solve((np.eye(len(S)) + S @ self.omega).T, self.omega.T).T
        mean = totals[0] + (T * U.T).sum()
        TU = T @ U
        return float(mean), float(mean - totals[3] - 2 * (T * P.T).sum() - (TU * TU.T).sum())

    def tilt(self, size: float) -> float:
        """The t for which a set has this many items on average under t·L, about; none above FARTHEST is tried."""
        x, most = 0.0, np.log(FARTHEST)
        for _ in range(STEPS):
            mean, variance = self.moments(float(np.exp(x)))
            step = np.clip(np.log(size / mean) * mean / max(variance, EPSILON), -2, 2)
            before, x = x, min(x + step, most)
            if abs(x - before) < CLOSE:
                break
        return float(np.exp(x))


def circle_of(kernel: FactoredKernel, segment: int, shift: float = 0.0) -> Circle:
    """Of a segment, with its log-odds raised by a shift."""
    p = 1 / (1 + np.exp(-(kernel.log_odds[segment].astype(float) + shift)))
    which = np.searchsorted(EDGES, p, side="left")
    groups = [
        _group(kernel, np.flatnonzero(which == number), p, EDGES[number - 1], EDGES[number])
        for number in range(1, len(EDGES))
        if (which == number).any()
    ]
    common = np.flatnonzero(which == len(EDGES))
    rows = kernel.factors[common].astype(float)
    return Circle(kernel, segment, kernel.coupling_of(segment), shift, p, groups, common, rows)


def _group(kernel: FactoredKernel, items: Ints, p: Floats, low: float, high: float) -> Group:
    middle, half = (low + high) / 2, (high - low) / 2
    distance = (1 / (1 + FARTHEST) - middle) / half  # of the nearest pole, in units of half the range
    n = int(np.ceil(-np.log(EPSILON) / np.log(distance + np.sqrt(distance**2 - 1))))
    angles = np.pi * (np.arange(n) + 0.5) / n
    at = np.arccos(np.clip((p[items] - middle) / half, -1, 1))
    interpolation = np.cos(np.outer(np.arange(n), angles)) * (2 / n)
    interpolation[0] /= 2
    basis = p[items, None] * (np.cos(np.outer(at, np.arange(n))) @ interpolation)
    active = kernel.factors[items].any(axis=1)
    rows = kernel.factors[items[active]].astype(float)
    grams = np.array([(rows.T @ (weights[:, None] * rows)).ravel() for weights in basis[active].T])
    return Group(items, middle + half * np.cos(angles), basis, basis.sum(axis=0), grams)


def inside(z: Any) -> Function:
    """w/p as a function of p."""
    return lambda p: z / (1 + p * (z - 1))
