"""The weights of quality given a similarity: a concave problem, solved by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import EPSILON, Bools, Floats, Ints
from dpplearn.data.features import Features
from dpplearn.learners.quality.exponential import QualityLaw

MAX_CHANGE = 4.0  # of a quality in one step
MAX_STEPS = 100
GRADIENT_TOL = 1e-11
MIN_STEP_SIZE = 2.0**-30
SUFFICIENT = 1e-4  # fraction of the predicted ascent that a step must bring
INTERCEPT = "(all items)"


@dataclass(frozen=True, eq=False)
class Design:
    """The linear map u = F θ from weights to the quality of items.

    The columns of F are a constant and the features; without features, F is the identity.
    """

    F: Floats  # (n_items, n_weights)
    names: tuple[str, ...]
    free: bool = False  # one weight per item: F is the identity

    @classmethod
    def of_items(cls, labels: tuple[object, ...]) -> Design:
        """Return a design with one weight per item."""
        return cls(np.eye(len(labels)), tuple(map(str, labels)), free=True)

    @classmethod
    def of_features(cls, features: Features) -> Design:
        """Return a design with a constant and one weight per feature."""
        ones = np.ones((len(features.matrix), 1))
        return cls(np.hstack([ones, features.matrix]), (INTERCEPT, *features.names))

    @cached_property
    def shrunk(self) -> Bools:
        """Weights with a ridge penalty: those of features."""
        return np.array([not self.free and name != INTERCEPT for name in self.names], dtype=bool)

    def quality(self, theta: Floats) -> Floats:
        """Return u = F θ."""
        return theta if self.free else np.asarray(self.F @ theta)

    def slopes(self, by_item: Floats) -> Floats:
        """Return Fᵀ x."""
        return by_item if self.free else np.asarray(self.F.T @ by_item)

    def information(self, C: Floats) -> Floats:
        """Return Fᵀ C F."""
        return C if self.free else np.asarray(self.F.T @ C @ self.F)

    def among(self, items: Ints) -> Design:
        """Return the design of some of the items."""
        if self.free:
            return Design.of_items(tuple(self.names[i] for i in items))
        return Design(self.F[items], self.names)


@dataclass(frozen=True, eq=False)
class Target:
    """The objective of the weights: frequencies m of the items, a similarity, a distribution and the ridge penalty."""

    S: Floats  # (n_items, n_items)
    m: Floats  # (n_items,)
    design: Design
    nonempty: bool
    ridge: float = 0.0  # per basket: the weights of features lose ridge/2 · θ²

    @property
    def penalty(self) -> Floats:
        """Ridge penalty of every weight."""
        return np.asarray(self.ridge * self.design.shrunk)

    def law(self, theta: Floats) -> QualityLaw:
        """Return the distribution with these weights."""
        return QualityLaw.of(self.S, self.design.quality(theta), nonempty=self.nonempty)

    def value(self, theta: Floats, law: QualityLaw) -> float:
        """Return mᵀu − log Z minus the ridge penalty: all of the likelihood that depends on the weights."""
        fit = float(self.m @ self.design.quality(theta)) - law.log_normaliser
        return fit - float(self.penalty @ theta**2) / 2

    def gradient(self, theta: Floats, law: QualityLaw) -> Floats:
        """Return Fᵀ(m − k) minus the derivative of the penalty."""
        return np.asarray(self.design.slopes(self.m - law.mean) - self.penalty * theta)

    def information(self, law: QualityLaw) -> Floats:
        """Return the negative Hessian, Fᵀ C F plus the ridge."""
        return np.asarray(self.design.information(law.covariance) + np.diag(self.penalty))


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best weights, the distribution and the value there."""

    theta: Floats
    law: QualityLaw
    value: float
    steps: int


def first_weights(target: Target) -> Floats:
    """Return initial weights: logit(m), or its least-squares approximation by features."""
    m = np.clip(target.m, 1e-6, 1 - 1e-6)
    u = np.log(m) - np.log1p(-m)
    if target.design.free:
        return np.asarray(u)
    return np.asarray(np.linalg.lstsq(target.design.F, u, rcond=None)[0])


def best_weights(target: Target, theta: Floats | None = None) -> Optimum:
    """Return the optimum by damped Newton steps θ + t H⁻¹ g: t is halved until the objective rises enough.

    The objective is concave, so there is one optimum, whatever the start.
    """
    theta = first_weights(target) if theta is None else theta
    law = target.law(theta)
    value = target.value(theta, law)
    for step in range(MAX_STEPS):
        g = target.gradient(theta, law)
        if np.abs(g).max(initial=0.0) <= GRADIENT_TOL:
            return Optimum(theta, law, value, step)
        direction = _solved(target.information(law), g)
        direction /= max(1.0, float(np.abs(target.design.quality(direction)).max()) / MAX_CHANGE)
        slope, t = float(g @ direction), 1.0
        rounding = 100 * EPSILON * max(1.0, abs(value))
        while True:
            new_law = target.law(theta + t * direction)
            new = target.value(theta + t * direction, new_law)
            if new >= value + SUFFICIENT * t * slope - rounding:
                break
            t /= 2
            if t < MIN_STEP_SIZE:
                return Optimum(theta, law, value, step)
        theta, law, value = theta + t * direction, new_law, new
    return Optimum(theta, law, value, MAX_STEPS)


def _solved(H: Floats, g: Floats) -> Floats:
    """Return H⁻¹ g; where H is singular to rounding, with a small multiple of I added."""
    scale = max(float(H.diagonal().max()), EPSILON)
    for more in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        try:
            factor = np.linalg.cholesky(H + more * scale * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, g)))
    return g / scale
