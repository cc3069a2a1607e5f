"""Standard errors of weights and strengths, from the curvature of the likelihood where it is largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.learners.quality.blend import MOST
from dpplearn.learners.quality.newton import best_weights
from dpplearn.learners.quality.problem import Profile, QualityProblem
from dpplearn.learners.quality.quality import NEAR, curvature

NOTHING = 1e-13  # the information in a basket on a weight that is none but rounding
FLAT = 1e-9  # of information, relative to that of single weights: what is none
LEVEL = 1e-6  # the curvature in a strength that is none but rounding
INVOLVED = 1e-4  # of a direction in which there is none


@dataclass(frozen=True, eq=False)
class Errors:
    """The covariance of the weights, and that of the strengths τ and w; NaN of a strength at its bound, of weights that
    the data do not determine, and of all weights where τ is at its upper bound, as their level then says no more than
    how near to 1 it may come."""

    of_weights: Floats
    of_strengths: Floats


def standard_errors(learned: QualityProblem, final: QualityProblem, end: Profile, theta: Floats) -> Errors:
    """The inverse of the information in both together, by its blocks: that of the weights, H⁻¹/n, and what learning the
    strengths adds to it, (∂θ/∂φ) V (∂θ/∂φ)ᵀ with V = (−∂²profile)⁻¹/n.

    The strengths were `learned` from frequencies as they are, the weights θ are `final`, perhaps from smoothed ones.
    """
    n, phi = learned.number, end.phi
    target = final.target(phi)
    of_weights = _inverse(target.information(target.law(theta))) / n
    inside = (phi > 0) & (phi < MOST)
    of_strengths = np.full((len(phi), len(phi)), np.nan)
    if inside.any():
        values, vectors = np.linalg.eigh(-curvature(end, learned, inside, central=True))
        flat = values <= LEVEL
        V = (vectors[:, ~flat] / (n * values[~flat])) @ vectors[:, ~flat].T
        J, change = _moves(final, phi, theta)[:, inside], learned.blend.strengths(phi)[1][:, inside]
        of_weights = _unless(J @ vectors[:, flat], of_weights + J @ V @ J.T)
        of_strengths = _unless(change @ vectors[:, flat], change @ V @ change.T)
        of_strengths[~inside] = of_strengths[:, ~inside] = np.nan
    if learned.blend.uniform and phi[0] >= MOST:
        of_weights = np.full_like(of_weights, np.nan)
    return Errors(np.asarray(of_weights), of_strengths)


def _unless(moved: Floats, covariance: Floats) -> Floats:
    """NaN of what is moved in some direction of which the data say nothing."""
    free = (np.abs(moved) > INVOLVED).any(axis=1)
    covariance[free] = covariance[:, free] = np.nan
    return covariance


def _inverse(H: Floats) -> Floats:
    """H⁻¹; NaN of weights that may change together without any change of the likelihood."""
    told = H.diagonal() > NOTHING
    unit = np.where(told, np.sqrt(np.where(told, H.diagonal(), 1)), 1)
    values, vectors = np.linalg.eigh(H / np.outer(unit, unit) * np.outer(told, told))
    flat = values <= FLAT
    inverse = (vectors / np.where(flat, 1, values)) @ np.where(flat[:, None], 0, vectors.T) / np.outer(unit, unit)
    return _unless(vectors[:, flat], np.asarray(inverse))


def _moves(problem: QualityProblem, phi: Floats, theta: Floats) -> Floats:
    """∂θ/∂φ: how the best weights change with each strength."""
    columns = []
    for place in range(len(phi)):
        ahead = np.zeros(len(phi))
        ahead[place] = NEAR if phi[place] + NEAR <= MOST else -NEAR
        columns.append((best_weights(problem.target(phi + ahead), theta).theta - theta) / ahead[place])
    return np.column_stack(columns)
