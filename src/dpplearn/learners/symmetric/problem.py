"""SymmetricProblem: fitting a symmetric DPP; its log-likelihood and gradient in L and K, and a search that climbs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import Statistics, sums_under_L
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import INITIALISERS, adapted
from dpplearn.models.dpp import DPP

STEP_SIZES = [2.0**-n for n in range(27)]  # down to 1e-8: the line search of both algorithms, as its authors ran them
ROUNDING = 1e-13  # relative, of a log-likelihood


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The baskets and their distribution. Learners start from, and arrive at, a `SpectralDPP`."""

    model_type: ClassVar[Any] = DPP
    random_start: ClassVar[str] = "wishart"

    def baseline(self) -> Any:
        """Return independent items with the frequencies of the baskets.

        Probabilities are at most 1 − 1e-5, as in all starts: that costs 1e-5 nats, and no set is impossible because it
        lacks an item.
        """
        kernel = independent(self.baskets, nonempty=self.nonempty)
        return SpectralDPP(np.minimum(kernel.eigenvalues, 1 - BORDER), kernel.eigenvectors)

    def initial(self, name: str, rng: np.random.Generator) -> SpectralDPP:
        return INITIALISERS[name](self.baskets, rng)

    def adapted(self, model: DPP, rng: np.random.Generator) -> SpectralDPP:
        return adapted(model.kernel, model.catalogue, self.baskets)

    def facts(self, step: Step) -> dict[str, Any]:
        return {"shrinkage": 0.0, "shrinkage_chosen": False}


def in_L(problem: SymmetricProblem, L: Floats) -> tuple[float, Floats, Floats]:
    """Return the mean log-likelihood, the mean Delta and (I+L)⁻¹. Delta − (I+L)⁻¹ is the gradient in L."""
    logdet, delta = sums_under_L(L, problem.baskets, problem.threads)
    log_normaliser, inverse = normaliser(np.eye(len(L)), L.copy())
    total = problem.baskets.total_weight
    return logdet / total - log_normaliser, delta / total, inverse


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


def gradient_in_K(kernel: SpectralDPP, stats: Statistics) -> Floats:
    """Return ∂/∂K of the mean log-likelihood, mean (K − I_Ȳ)⁻¹, in the eigenbasis of K.

    With c = 1/(1 − λ), V the eigenvectors away from 1 and [[P, q], [qᵀ, s]] the averaged inverse under
    [[A, U], [Uᵀ, −D]] (see `SpectralDPP.bordered`), the blocks are c VᵀPV c − diag(c), c Vᵀq/λ and diag(1/λ) + s/λλ.
    Without eigenvalues near 1, that is (I+L) Delta (I+L) − (I+L).
    """
    lam, V, near = kernel.eigenvalues, kernel.eigenvectors, kernel.near_one
    delta, n = stats.delta / stats.weight, kernel.n_items
    c = np.zeros(n)
    np.divide(1, 1 - lam, out=c, where=~near)
    M = V.T @ delta[:n, :n] @ V
    G = c[:, None] * M * c - np.diag(c)
    if near.any():
        # `delta` averages inverses of minors of E, a congruence of that matrix with [[I, U/2], [0, I]]
        q = V.T @ delta[:n, n:]
        s = delta[n:, n:] + (q[near] + q[near].T) / 2 + M[np.ix_(near, near)] / 4
        cross = c[:, None] * (q + M[:, near] / 2) / lam[near]
        G[:, near], G[near] = cross, cross.T
        G[np.ix_(near, near)] = np.diag(1 / lam[near]) + s / np.outer(lam[near], lam[near])
    return G


def climb(
    at: Any,
    evaluate: Callable[[Any], tuple[float, *tuple[Any, ...]]],
    candidates: Callable[..., Iterator[tuple[float, Any]]],
    kernel_of: Callable[[Any], SpectralDPP],
) -> Iterator[Step]:
    """Yield steps from `at`, each to the first candidate under which the log-likelihood does not fall.

    `evaluate` returns the log-likelihood of a point and what `candidates` needs besides the point. Candidates come with
    their step sizes.
    """
    value, *known = evaluate(at)
    step_size, evaluations = 0.0, 1
    while True:
        yield Step(partial(kernel_of, at), value, step_size, evaluations)
        for number, (tried, candidate) in enumerate(candidates(at, *known), 1):
            new, *known_there = evaluate(candidate)
            if new >= value - ROUNDING * max(1.0, abs(value)):
                at, value, known = candidate, new, known_there
                step_size, evaluations = tried, number
                break
        else:
            return
