"""What a basket leaves of a factored kernel: the Schur complement of C, of as low a rank as it has items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.kernels.factored.kernel import FactoredKernel


@dataclass(frozen=True)
class Beside:
    """Ω beside the basket is Ω − V W, with V = Ω Z_Aᵀ and W = (I + Z_A Ω Z_Aᵀ)⁻¹ Z_A Ω: one of each per coupling."""

    kernel: FactoredKernel
    log_weights: Floats  # log π_c det (L_c)_A / det(I + L_c), how likely segments are given Y = A but for a factor
    V: Floats  # (1 or n_segments, n_columns, size of A)
    W: Floats  # (1 or n_segments, size of A, n_columns)

    @property
    def coupling(self) -> Floats:
        return self.kernel.coupling - self.V @ self.W

    @cached_property
    def segments(self) -> Floats:
        """How likely they are given Y = A."""
        return shares(self.log_weights)

    def diagonal(self, items: Ints) -> Floats:
        """C'_ii of some items, (1 or n_segments, n items)."""
        return np.array(self.kernel.diagonal[:, items] - self._taken(self.kernel.factors[items].astype(float)))

    def scores(self) -> Floats:
        """P(A ∪ i)/P(A) = Σ_c ρ_c exp(log_odds_ci) C'_ii of every item, those of A too."""
        left = self.kernel.diagonal.copy()
        left[:, self.kernel.active] -= self._taken(self.kernel.rows)
        return self._weighed(self.kernel.odds, left)

    def scores_of(self, items: Ints) -> Floats:
        return self._weighed(np.exp(self.kernel.log_odds[:, items].astype(float)), self.diagonal(items))

    def _taken(self, rows: Floats) -> Floats:
        """z V W zᵀ of every row z."""
        pairs = zip(self.V, self.W, strict=True)
        return np.array([((rows @ V) * (rows @ W.T)).sum(axis=1) for V, W in pairs])

    def _weighed(self, odds: Floats, left: Floats) -> Floats:
        if len(left) == 1:
            return np.asarray(self.segments @ odds * left[0])
        return np.asarray(np.einsum("c,ci,ci->i", self.segments, odds, left))

    @cached_property
    def most(self) -> float:
        """λ with C'_ii − C_ii ≤ λ|z_i|²: the largest eigenvalue of the symmetric part of −V W, of any coupling."""
        return max(0.0, *(_largest(V, W) for V, W in zip(self.V, self.W, strict=True)))


def beside(kernel: FactoredKernel, basket: Ints) -> Beside:
    """Of a basket A."""
    Z = kernel.factors[basket].astype(float)
    V = kernel.coupling @ Z.T
    inside = np.eye(len(basket)) + Z @ V
    log_weights = kernel.log_weights - kernel.log_normalisers
    log_weights = log_weights + kernel.log_odds[:, basket].astype(float).sum(axis=1) + np.linalg.slogdet(inside)[1]
    return Beside(kernel, log_weights, V, np.linalg.solve(inside, Z @ kernel.coupling))


def shares(log_weights: Floats) -> Floats:
    """Of 1, from their logarithms but for a common number."""
    p = np.exp(log_weights - log_weights.max())
    return np.asarray(p / p.sum())


def _largest(V: Floats, W: Floats) -> float:
    if not W.size:
        return 0.0
    triangle = np.asarray(np.linalg.qr(np.hstack([V, W.T]), mode="r"))
    small = triangle[:, : len(W)] @ triangle[:, len(W) :].T
    return float(-np.linalg.eigvalsh(small + small.T)[0] / 2)
