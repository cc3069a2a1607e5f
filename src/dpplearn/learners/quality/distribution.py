"""The distribution of sets as an exponential family in item quality, and the best quality for a given similarity.

L = D S D with D = diag(e^{u/2}), u = F θ. For a given S the log-likelihood is concave in θ, and Newton's method finds
its maximum. [KT11a]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.learners.symmetric.problem import STEP_SIZES

MAX_QUALITY = 300.0  # |u| is clipped here, where e^u is still a number
SMALL_LOG_DET = 1e-3  # below this, log det(I + L) loses its digits in 1 + L and is taken from eigenvalues

RIDGE = 1e-10  # on second derivatives, relative to the largest: weights may be undetermined
MAX_CHANGE = 4.0  # of a quality in one step
MAX_STEPS = 100
GRADIENT_TOL = 1e-11
ROUNDING = 1e-12  # of the objective, relative: more than its last digits, as L may be near singular
SUFFICIENT = 1e-4  # fraction of the predicted ascent that a step must bring


@dataclass(frozen=True, eq=False)
class QualityDistribution:
    """P(Y) ∝ exp(Σ_{i ∈ Y} u_i) det S_Y, over all sets or over those that are not empty.

    log Z is convex in u: its gradient is the mean of the indicators of items, its Hessian their covariance. [KT11a]

    Examples
    --------
    >>> distribution = QualityDistribution.of(np.eye(2), np.zeros(2))
    >>> distribution.mean.round(6).tolist(), round(distribution.log_normaliser, 4)
    ([0.5, 0.5], 1.3863)
    """

    d: Floats  # (n_items,) e^{u/2}
    inverse: Floats  # (n_items, n_items) (L + I)⁻¹
    K: Floats  # (n_items, n_items) of the distribution over all sets
    log_normaliser: float
    share: float  # c: P(Y ≠ ∅) under the distribution over all sets where that is conditioned on, else 1

    @classmethod
    def of(cls, S: Floats, u: Floats, *, nonempty: bool = False) -> QualityDistribution:
        """Return the distribution with this similarity and quality.

        S is symmetric and positive semidefinite; `nonempty` conditions on nonempty sets.
        """
        d = np.exp(np.clip(u, -MAX_QUALITY, MAX_QUALITY) / 2)
        L = d[:, None] * S * d
        factor = np.linalg.cholesky(L + np.eye(len(L)))
        log_det = 2 * float(np.log(factor.diagonal()).sum())
        if nonempty and log_det < SMALL_LOG_DET:  # P(Y ≠ ∅) is then nearly 0
            log_det = float(np.log1p(np.linalg.eigvalsh(L)).sum())
        half = np.linalg.inv(factor)
        inverse = half.T @ half
        K = L @ inverse
        share = -math.expm1(-log_det) if nonempty else 1.0
        of_share = math.log(share) if share > 0 else -math.inf
        return cls(d, inverse, np.asarray((K + K.T) / 2), log_det + of_share, share)

    @property
    def mean(self) -> Floats:
        """Inclusion probabilities k_i = K_ii/c: the gradient of log Z."""
        return np.asarray(self.K.diagonal() / self.share)

    @property
    def covariance(self) -> Floats:
        """Covariance C_ij = (K_ii K_jj − K_ij²)/c − k_i k_j, C_ii = k_i − k_i²: the Hessian of log Z."""
        own, k = self.K.diagonal(), self.mean
        C = (np.outer(own, own) - self.K**2) / self.share - np.outer(k, k)
        np.fill_diagonal(C, k - k**2)
        return np.asarray(C)

    @property
    def by_similarity(self) -> Floats:
        """Derivative ∂ log Z/∂S = D (L + I)⁻¹ D/c."""
        return np.asarray(self.d[:, None] * self.inverse * self.d / self.share)


@dataclass(frozen=True, eq=False)
class Target:
    """The objective of the weights θ of u = F θ: mᵀu − log Z − ½ Σ_j ρ_j θ_j², with the similarity S given."""

    S: Floats  # (n_items, n_items)
    m: Floats  # (n_items,) frequencies
    F: Floats  # (n_items, n_weights)
    penalty: Floats  # (n_weights,) ρ, per basket
    nonempty: bool

    def at(self, theta: Floats) -> tuple[QualityDistribution, float]:
        """Return the distribution and the objective: what depends on the weights, minus the penalty."""
        distribution = QualityDistribution.of(self.S, self.F @ theta, nonempty=self.nonempty)
        value = float(self.m @ (self.F @ theta) - self.penalty @ theta**2 / 2)
        return distribution, value - distribution.log_normaliser

    def gradient(self, theta: Floats, distribution: QualityDistribution) -> Floats:
        """Return Fᵀ(m − k) minus the derivative of the penalty."""
        return np.asarray(self.F.T @ (self.m - distribution.mean) - self.penalty * theta)

    def information(self, distribution: QualityDistribution) -> Floats:
        """Return the negative Hessian, Fᵀ C F plus the penalty."""
        return np.asarray(self.F.T @ distribution.covariance @ self.F + np.diag(self.penalty))


def best_weights(target: Target, theta: Floats | None = None) -> tuple[Floats, QualityDistribution, float]:
    """Return the best weights, the distribution and the value there, by damped Newton steps θ + t H⁻¹ g.

    t is halved until the objective rises enough. The objective is concave, so there is one optimum, whatever the start:
    by default the least-squares approximation of logit(m) by F θ.
    """
    if theta is None:
        m = np.clip(target.m, 1e-6, 1 - 1e-6)
        theta = np.asarray(np.linalg.lstsq(target.F, np.log(m) - np.log1p(-m), rcond=None)[0])
    distribution, value = target.at(theta)
    for _ in range(MAX_STEPS):
        g = target.gradient(theta, distribution)
        if np.abs(g).max(initial=0.0) <= GRADIENT_TOL:
            break
        H = target.information(distribution)
        H.flat[:: len(H) + 1] += RIDGE * max(float(H.diagonal().max()), EPSILON)
        direction = np.linalg.solve(H, g)
        direction /= max(1.0, float(np.abs(target.F @ direction).max()) / MAX_CHANGE)
        least = value - ROUNDING * max(1.0, abs(value))
        for t in STEP_SIZES:
            there, new = target.at(theta + t * direction)
            if new >= least + SUFFICIENT * t * float(g @ direction):
                break
        else:
            break
        theta, distribution, value = theta + t * direction, there, new
    return theta, distribution, value
