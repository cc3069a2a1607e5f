"""Damped Newton's method for the weights of quality: concave, so that there is one optimum, wherever it starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.kernels.symmetric.quality import QualityLaw
from dpplearn.learners.quality.design import Design

FARTHEST = 4.0  # how far a quality may move in a step
MOST_STEPS = 100
EXACT = 1e-11  # the slope of every weight at the optimum
SMALLEST_STEP = 2.0**-30
SUFFICIENT = 1e-4  # of the ascent that the slope promises


@dataclass(frozen=True, eq=False)
class Target:
    """What the weights are to bring about: items as frequent as m, under a similarity and a law; and the ridge."""

    S: Floats  # (n_items, n_items)
    m: Floats  # (n_items,)
    design: Design
    nonempty: bool
    ridge: float = 0.0  # per basket: the weights of features lose ridge/2 · θ²

    @property
    def penalty(self) -> Floats:
        """Of every weight."""
        return np.asarray(self.ridge * self.design.shrunk)

    def law(self, theta: Floats) -> QualityLaw:
        return QualityLaw.of(self.S, self.design.quality(theta), nonempty=self.nonempty)

    def value(self, theta: Floats, law: QualityLaw) -> float:
        """mᵀu − log Z, less the ridge: all of the likelihood that depends on the weights."""
        fit = float(self.m @ self.design.quality(theta)) - law.log_normaliser
        return fit - float(self.penalty @ theta**2) / 2

    def gradient(self, theta: Floats, law: QualityLaw) -> Floats:
        """Fᵀ(m − k), less the ridge."""
        return np.asarray(self.design.slopes(self.m - law.mean) - self.penalty * theta)

    def information(self, law: QualityLaw) -> Floats:
        """The negative Hessian, Fᵀ C F and the ridge."""
        return np.asarray(self.design.information(law.covariance) + np.diag(self.penalty))


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best weights, the law there, and what they are worth."""

    theta: Floats
    law: QualityLaw
    value: float
    steps: int


def first_weights(target: Target) -> Floats:
    """Where independent items have their frequencies: logit(m), or as near to it as features come."""
    m = np.clip(target.m, 1e-6, 1 - 1e-6)
    u = np.log(m) - np.log1p(-m)
    if target.design.free:
        return np.asarray(u)
    return np.asarray(np.linalg.lstsq(target.design.F, u, rcond=None)[0])


def best_weights(target: Target, theta: Floats | None = None) -> Optimum:
    """θ ← θ + t H⁻¹ g, with no quality moved by more than 4, and t halved until the objective rises as it should."""
    theta = first_weights(target) if theta is None else theta
    law = target.law(theta)
    value = target.value(theta, law)
    for step in range(MOST_STEPS):
        g = target.gradient(theta, law)
        if np.abs(g).max(initial=0.0) <= EXACT:
            return Optimum(theta, law, value, step)
        direction = _solved(target.information(law), g)
        direction /= max(1.0, float(np.abs(target.design.quality(direction)).max()) / FARTHEST)
        slope, t = float(g @ direction), 1.0
        rounding = 100 * EPSILON * max(1.0, abs(value))
        while True:
            new_law = target.law(theta + t * direction)
            new = target.value(theta + t * direction, new_law)
            if new >= value + SUFFICIENT * t * slope - rounding:
                break
            t /= 2
            if t < SMALLEST_STEP:
                return Optimum(theta, law, value, step)
        theta, law, value = theta + t * direction, new_law, new
    return Optimum(theta, law, value, MOST_STEPS)


def _solved(H: Floats, g: Floats) -> Floats:
    """H⁻¹ g; with a little more on the diagonal where H is singular to rounding."""
    scale = max(float(H.diagonal().max()), EPSILON)
    for more in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        try:
            factor = np.linalg.cholesky(H + more * scale * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, g)))
    return g / scale
