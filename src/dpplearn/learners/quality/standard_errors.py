"""Standard errors of weights and strengths, from the curvature of the likelihood at its maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.learners.quality.blend import MAX_STRENGTH
from dpplearn.learners.quality.learner import DIFFERENCE, curvature
from dpplearn.learners.quality.problem import Profile, QualityProblem
from dpplearn.learners.quality.target import best_weights

MIN_INFORMATION = 1e-13  # per basket on one weight; below, it is rounding
MIN_EIGENVALUE = 1e-9  # of the information relative to that of single weights
MIN_CURVATURE = 1e-6  # in a strength
MIN_LOADING = 1e-4  # of a weight on a direction without information, from which on its error is unknown


@dataclass(frozen=True, eq=False)
class Errors:
    """Covariance matrices of the weights and of the strengths τ and w.

    NaN for a strength at a bound, for weights that the data do not determine, and for all weights where τ is at its
    upper bound, which then determines their level.
    """

    of_weights: Floats
    of_strengths: Floats


def standard_errors(learned: QualityProblem, final: QualityProblem, end: Profile, theta: Floats) -> Errors:
    """Return the inverse of the joint information by blocks.

    For the weights that is H⁻¹/n plus (∂θ/∂φ) V (∂θ/∂φ)ᵀ with V = (−∂²profile)⁻¹/n, the variance of the strengths. The
    strengths were `learned` from plain frequencies; the weights θ are `final`, perhaps from smoothed ones.
    """
    n, phi = learned.number, end.phi
    target = final.target(phi)
    of_weights = _inverse(target.information(target.law(theta))) / n
    inside = (phi > 0) & (phi < MAX_STRENGTH)
    of_strengths = np.full((len(phi), len(phi)), np.nan)
    if inside.any():
        values, vectors = np.linalg.eigh(-curvature(end, learned, inside, central=True))
        flat = values <= MIN_CURVATURE
        V = (vectors[:, ~flat] / (n * values[~flat])) @ vectors[:, ~flat].T
        J, change = _moves(final, phi, theta)[:, inside], learned.blend.strengths(phi)[1][:, inside]
        of_weights = _unless(J @ vectors[:, flat], of_weights + J @ V @ J.T)
        of_strengths = _unless(change @ vectors[:, flat], change @ V @ change.T)
        of_strengths[~inside] = of_strengths[:, ~inside] = np.nan
    if learned.blend.uniform and phi[0] >= MAX_STRENGTH:
        of_weights = np.full_like(of_weights, np.nan)
    return Errors(np.asarray(of_weights), of_strengths)


def _unless(moved: Floats, covariance: Floats) -> Floats:
    """Return the covariance with NaN for what moves in a direction without information."""
    free = (np.abs(moved) > MIN_LOADING).any(axis=1)
    covariance[free] = covariance[:, free] = np.nan
    return covariance


def _inverse(H: Floats) -> Floats:
    """Return H⁻¹, with NaN for weights that can change together without changing the likelihood."""
    known = H.diagonal() > MIN_INFORMATION
    unit = np.where(known, np.sqrt(np.where(known, H.diagonal(), 1)), 1)
    values, vectors = np.linalg.eigh(H / np.outer(unit, unit) * np.outer(known, known))
    flat = values <= MIN_EIGENVALUE
    inverse = (vectors / np.where(flat, 1, values)) @ np.where(flat[:, None], 0, vectors.T) / np.outer(unit, unit)
    return _unless(vectors[:, flat], np.asarray(inverse))


def _moves(problem: QualityProblem, phi: Floats, theta: Floats) -> Floats:
    """Return ∂θ/∂φ of the best weights."""
    columns = []
    for place in range(len(phi)):
        ahead = np.zeros(len(phi))
        ahead[place] = DIFFERENCE if phi[place] + DIFFERENCE <= MAX_STRENGTH else -DIFFERENCE
        columns.append((best_weights(problem.target(phi + ahead), theta).theta - theta) / ahead[place])
    return np.column_stack(columns)
