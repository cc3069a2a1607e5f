"""The likelihood as a function of a factor B with L = B Bᵀ: no constraint is left, and no eigenvectors are needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.learners.problem import Problem

SMALLEST = 1e-8  # P(Y ≠ ∅); below, what det(I+L) leaves above 1 is rounding

Sums = Callable[[Floats, AnyBaskets, int | None], tuple[float, Floats]]


@dataclass(frozen=True)
class FactorLikelihood:
    """B to the mean log-likelihood of the baskets and its gradient, 2 (Delta − (I+L)⁻¹) B; −inf where a basket is
    impossible. Of P(Y given Y ≠ ∅) = det L_Y / (det(I+L) − 1) where that is the law. B has as many rows as items and as
    many columns as the rank may be."""

    problem: Problem
    sums: Sums = sums_under_L  # Σ w log det L_Y and Σ w B (L_Y)⁻¹ Bᵀ

    def __call__(self, B: Floats) -> tuple[float, Floats]:
        L: Floats = B @ B.T
        logdet, delta = self.sums(L, self.problem.baskets, self.problem.threads)
        log_normaliser, inverse_times_B = normaliser(B, L)
        if self.problem.nonempty:  # log(Z − 1), whose derivative is that of log Z over P(Y ≠ ∅)
            not_empty = -math.expm1(-log_normaliser)
            log_normaliser += math.log(not_empty) if not_empty > SMALLEST else math.inf
            inverse_times_B /= max(not_empty, SMALLEST)
        gradient = delta @ B
        gradient *= 1 / self.problem.baskets.total_weight
        gradient -= inverse_times_B
        gradient *= 2
        return logdet / self.problem.baskets.total_weight - log_normaliser, gradient


def normaliser(B: Floats, L: Floats) -> tuple[float, Floats]:
    """log det(I+L) and (I+L)⁻¹ B, which for narrow B are log det(I + BᵀB) and B (I + BᵀB)⁻¹. Overwrites L."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    narrow = B.shape[1] < len(B)
    plus_one = B.T @ B if narrow else L
    plus_one.ravel()[:: len(plus_one) + 1] += 1
    cholesky, failed = dpotrf(plus_one.T, overwrite_a=1)  # of the transpose: LAPACK counts along columns
    if failed:
        return math.inf, np.zeros_like(B)
    solved = dpotrs(cholesky, B.T)[0].T if narrow else dpotrs(cholesky, B)[0]
    return 2 * float(np.log(cholesky.diagonal()).sum()), solved


def in_L(L: Floats, problem: Problem) -> tuple[float, Floats, Floats]:
    """The mean log-likelihood, Delta of the mean basket, and (I+L)⁻¹, whose difference is the gradient in L."""
    from scipy.linalg import lapack

    logdet, delta = sums_under_L(L, problem.baskets, problem.threads)
    plus_one = L.copy()
    plus_one.flat[:: len(L) + 1] += 1
    cholesky, failed = lapack.dpotrf(plus_one.T, overwrite_a=1)  # of the transpose: LAPACK counts along columns
    if failed or not np.isfinite(logdet):
        return -np.inf, delta, delta
    value = logdet / problem.baskets.total_weight - 2 * float(np.log(cholesky.diagonal()).sum())
    delta /= problem.baskets.total_weight
    return value, delta, _symmetric(lapack.dpotri(cholesky, overwrite_c=1)[0])


def _symmetric(upper: Floats) -> Floats:
    """A matrix from its upper triangle; what is below does not count."""
    full: Floats = np.triu(upper)
    full += np.triu(upper, 1).T
    return full


def factor(kernel: Kernel) -> Floats:
    """B = V diag(r), for a kernel without eigenvalues at 1."""
    return np.asarray(kernel.eigenvectors * np.sqrt(kernel.odds))
