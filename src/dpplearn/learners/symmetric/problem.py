"""SymmetricProblem: fitting a symmetric DPP; its log-likelihood in L and in a factor B, and line searches.

With L = B Bᵀ, a search in B has no constraints and needs no eigenvectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import INITIALISERS, adapted
from dpplearn.models.dpp import DPP

MIN_NONEMPTY = 1e-8  # P(Y ≠ ∅); below, det(I+L) − 1 is rounding
MIN_STEP_SIZE = 1e-8  # of the authors' line search
ROUNDING = 1e-13  # relative, of a log-likelihood

Sums = Callable[[Floats, AnyBaskets, int | None], tuple[float, Floats]]


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The baskets and their distribution. Learners start from, and arrive at, a `SpectralDPP`."""

    model_type: ClassVar[Any] = DPP

    def baseline(self) -> SpectralDPP:
        """Return independent items with the frequencies of the baskets.

        Probabilities are at most 1 − 1e-5, as in all starts: that costs 1e-5 nats, and no set is impossible because it
        lacks an item.
        """
        kernel = independent(self.baskets, nonempty=self.nonempty)
        return SpectralDPP(np.minimum(kernel.eigenvalues, 1 - BORDER), kernel.eigenvectors)

    def initial(self, name: str, rng: np.random.Generator) -> SpectralDPP:
        return INITIALISERS[name](self.baskets, rng)

    def adapted(self, model: DPP, rng: np.random.Generator) -> SpectralDPP:
        return adapted(model.kernel, model.catalogue, self.baskets, rng)


@dataclass(frozen=True)
class FactorLikelihood:
    """Function from B to the mean log-likelihood of the baskets and its gradient, 2 (Delta − (I+L)⁻¹) B.

    The value is −inf where a basket is impossible. Given Y ≠ ∅, P(Y) = det L_Y / (det(I+L) − 1). B has one row per item
    and as many columns as the rank may be.
    """

    problem: SymmetricProblem
    sums: Sums = sums_under_L  # Σ w log det L_Y and Σ w B (L_Y)⁻¹ Bᵀ

    def __call__(self, B: Floats) -> tuple[float, Floats]:
        L: Floats = B @ B.T
        logdet, delta = self.sums(L, self.problem.baskets, self.problem.threads)
        log_normaliser, inverse_times_B = normaliser(B, L)
        if self.problem.nonempty:  # log(Z − 1), whose derivative is that of log Z over P(Y ≠ ∅)
            nonempty = -math.expm1(-log_normaliser)
            log_normaliser += math.log(nonempty) if nonempty > MIN_NONEMPTY else math.inf
            inverse_times_B /= max(nonempty, MIN_NONEMPTY)
        gradient = delta @ B
        gradient *= 1 / self.problem.baskets.total_weight
        gradient -= inverse_times_B
        gradient *= 2
        return logdet / self.problem.baskets.total_weight - log_normaliser, gradient


def normaliser(B: Floats, L: Floats) -> tuple[float, Floats]:
    """Return log det(I+L) and (I+L)⁻¹ B, which for narrow B are log det(I + BᵀB) and B (I + BᵀB)⁻¹. Overwrites L."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    narrow = B.shape[1] < len(B)
    plus_one = B.T @ B if narrow else L
    plus_one.ravel()[:: len(plus_one) + 1] += 1
    cholesky, failed = dpotrf(plus_one.T, overwrite_a=1)  # of the transpose: LAPACK counts along columns
    if failed:
        return math.inf, np.zeros_like(B)
    solved = dpotrs(cholesky, B.T)[0].T if narrow else dpotrs(cholesky, B)[0]
    return 2 * float(np.log(cholesky.diagonal()).sum()), solved


def in_L(L: Floats, problem: SymmetricProblem) -> tuple[float, Floats, Floats]:
    """Return the mean log-likelihood, the mean Delta and (I+L)⁻¹. Delta − (I+L)⁻¹ is the gradient in L."""
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
    """Return the symmetric matrix with this upper triangle."""
    full: Floats = np.triu(upper)
    full += np.triu(upper, 1).T
    return full


def factor(kernel: SpectralDPP) -> Floats:
    """Return B = V diag(r), for a kernel without eigenvalues at 1."""
    return np.asarray(kernel.eigenvectors * np.sqrt(kernel.odds))


def step_sizes() -> Iterator[float]:
    """Yield 1, ½, ¼, … down to 1e-8: the line search of both algorithms of the paper, as its authors ran them."""
    step_size = 1.0
    while step_size >= MIN_STEP_SIZE:
        yield step_size
        step_size /= 2


def has_fallen(after: float, before: float) -> bool:
    """Return whether the log-likelihood fell by more than the rounding of a step at the optimum."""
    return not after >= before - ROUNDING * max(1.0, abs(before))
