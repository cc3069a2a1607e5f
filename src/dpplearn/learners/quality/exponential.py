"""L = D S D with D = diag(e^{u/2}): the law of sets as one of exponential form in the quality u, S being given."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats

LARGEST = 300.0  # of |u|: e^u is a number, and what is likelier cannot be told from certain

SMALL = 1e-3  # log det(I + L) that rounding to 1 + L would spoil


@dataclass(frozen=True, eq=False)
class QualityLaw:
    """P(Y) ∝ exp(Σ_{i ∈ Y} u_i) det S_Y, over all sets or over those that are not empty.

    log Z is convex in u: its gradient is the mean of the indicators of items, its Hessian their covariance. [KT11a]

    Examples
    --------
    >>> law = QualityLaw.of(np.eye(2), np.zeros(2))
    >>> law.mean.round(6).tolist(), round(law.log_normaliser, 4)
    ([0.5, 0.5], 1.3863)
    """

    d: Floats  # (n_items,) e^{u/2}
    inverse: Floats  # (n_items, n_items) (L + I)⁻¹
    K: Floats  # (n_items, n_items) of the law over all sets
    log_normaliser: float
    share: float  # c: P(Y ≠ ∅) under the law over all sets where that is conditioned on, else 1

    @classmethod
    def of(cls, S: Floats, u: Floats, *, nonempty: bool = False) -> QualityLaw:
        """The law of a similarity and a quality.

        Parameters
        ----------
        S
            Symmetric and positive semidefinite.
        u
            One per item.
        nonempty
            Whether the law is that of sets given that they are not empty.

        Returns
        -------
        QualityLaw

        Examples
        --------
        >>> QualityLaw.of(np.eye(2), np.zeros(2), nonempty=True).mean.round(4).tolist()
        [0.6667, 0.6667]
        """
        d = np.exp(np.clip(u, -LARGEST, LARGEST) / 2)
        L = d[:, None] * S * d
        factor = np.linalg.cholesky(L + np.eye(len(L)))
        log_det = 2 * float(np.log(factor.diagonal()).sum())
        if nonempty and log_det < SMALL:  # all that is left of it where sets are almost never more than empty
            log_det = float(np.log1p(np.linalg.eigvalsh(L)).sum())
        half = np.linalg.inv(factor)
        inverse = half.T @ half
        K = L @ inverse
        share = -math.expm1(-log_det) if nonempty else 1.0
        of_share = math.log(share) if share > 0 else -math.inf
        return cls(d, inverse, np.asarray((K + K.T) / 2), log_det + of_share, share)

    @property
    def mean(self) -> Floats:
        """k_i = K_ii/c, how often an item is in a set: the gradient of log Z."""
        return np.asarray(self.K.diagonal() / self.share)

    @property
    def covariance(self) -> Floats:
        """C_ij = (K_ii K_jj − K_ij²)/c − k_i k_j, C_ii = k_i − k_i²: the Hessian of log Z."""
        own, k = self.K.diagonal(), self.mean
        C = (np.outer(own, own) - self.K**2) / self.share - np.outer(k, k)
        np.fill_diagonal(C, k - k**2)
        return np.asarray(C)

    @property
    def by_similarity(self) -> Floats:
        """∂ log Z/∂S = D (L + I)⁻¹ D/c."""
        return np.asarray(self.d[:, None] * self.inverse * self.d / self.share)
