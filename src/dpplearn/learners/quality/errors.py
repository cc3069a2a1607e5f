"""Standard errors of weights and strengths, from the curvature of the likelihood where it is largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.learners.quality.blend import MOST
from dpplearn.learners.quality.newton import best_weights
from dpplearn.learners.quality.problem import Profile, QualityProblem
from dpplearn.learners.quality.quality import NEAR, curvature


@dataclass(frozen=True, eq=False)
class Errors:
    """The covariance of the weights, and that of the strengths τ and w; NaN of a strength at its bound, and of all
    weights where τ is at its upper one, as their level then says no more than how near to 1 it may come."""

    of_weights: Floats
    of_strengths: Floats


def standard_errors(learned: QualityProblem, final: QualityProblem, end: Profile, theta: Floats) -> Errors:
    """The inverse of the information in both together, by its blocks: that of the weights, H⁻¹/n, and what learning the
    strengths adds to it, (∂θ/∂φ) V (∂θ/∂φ)ᵀ with V = (−∂²profile)⁻¹/n.

    The strengths were `learned` from frequencies as they are, the weights θ are `final`, perhaps from smoothed ones.
    """
    n, phi = learned.number, end.phi
    target = final.target(phi)
    of_weights = np.linalg.pinv(target.information(target.law(theta)), hermitian=True) / n
    inside = (phi > 0) & (phi < MOST)
    of_strengths = np.full((len(phi), len(phi)), np.nan)
    if inside.any():
        V = np.linalg.pinv(-curvature(end, learned, inside, central=True), hermitian=True) / n
        J = _moves(final, phi, theta)[:, inside]
        of_weights = of_weights + J @ V @ J.T
        change = learned.blend.strengths(phi)[1]
        of_strengths = change[:, inside] @ V @ change[:, inside].T
        of_strengths[~inside] = of_strengths[:, ~inside] = np.nan
    if learned.blend.uniform and phi[0] >= MOST:
        of_weights = np.full_like(of_weights, np.nan)
    return Errors(np.asarray(of_weights), of_strengths)


def _moves(problem: QualityProblem, phi: Floats, theta: Floats) -> Floats:
    """∂θ/∂φ: how the best weights change with each strength."""
    columns = []
    for place in range(len(phi)):
        ahead = np.zeros(len(phi))
        ahead[place] = NEAR if phi[place] + NEAR <= MOST else -NEAR
        columns.append((best_weights(problem.target(phi + ahead), theta).theta - theta) / ahead[place])
    return np.column_stack(columns)
