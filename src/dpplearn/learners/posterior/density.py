"""The posterior density of the parameters of a kernel, up to a constant, and its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.statistics import logdet_under_L, sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.posterior.kernels import ParametricKernel
from dpplearn.learners.quality.exponential import QualityLaw

ASYMMETRY = 1e-8  # of L − Lᵀ relative to L, that rounding may leave


@dataclass(frozen=True, eq=False)
class Density:
    """log p(θ given baskets) = Σ w log det L_Y − n log Z + log p(θ), up to a constant."""

    kernel: ParametricKernel
    baskets: Baskets
    nonempty: bool
    threads: int | None = None

    @cached_property
    def weight(self) -> float:
        return self.baskets.total_weight

    def log_likelihood(self, theta: Floats) -> float:
        """Return the log-likelihood of all baskets; −inf where one is impossible, or L is not a kernel."""
        L = self.kernel.L(theta)
        law = self._law(L)
        if law is None:
            return -math.inf
        return logdet_under_L(L, self.baskets, self.threads) - self.weight * law.log_normaliser

    def __call__(self, theta: Floats) -> float:
        return self.log_likelihood(theta) + self.kernel.log_prior(theta)

    def with_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the density and its gradient, from ∂/∂L = Δ − n (L + I)⁻¹/c."""
        L = self.kernel.L(theta)
        law = self._law(L)
        if law is None:
            return -math.inf, np.zeros(len(theta))
        logdet, delta = sums_under_L(L, self.baskets, self.threads)
        by_L = delta - self.weight * law.by_similarity
        value = logdet - self.weight * law.log_normaliser + self.kernel.log_prior(theta)
        return value, self.kernel.gradient(theta, by_L) + self.kernel.prior_gradient(theta)

    def _law(self, L: Floats) -> QualityLaw | None:
        """Return the distribution of L, a similarity of quality 1; None if L is not a kernel."""
        n = self.baskets.n_items
        if L.shape != (n, n):
            raise InputError(f"the kernel's function gave an array of shape {L.shape}; expected ({n}, {n})")
        if not np.isfinite(L).all():
            return None
        asymmetry = float(np.abs(L - L.T).max())
        if asymmetry > ASYMMETRY * float(np.abs(L).max()):
            raise InputError(
                f"the kernel's function gave an L that is not symmetric, by {asymmetry:.2g}; take (L + Lᵀ)/2"
            )
        try:
            return QualityLaw.of(L, np.zeros(n), nonempty=self.nonempty)
        except np.linalg.LinAlgError:
            return None
