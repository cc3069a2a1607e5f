"""SymmetricProblem: fitting a symmetric DPP; its log-likelihood in L, and line searches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import INITIALISERS, adapted
from dpplearn.models.dpp import DPP

MIN_STEP_SIZE = 1e-8  # of the authors' line search
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
        return adapted(model.kernel, model.catalogue, self.baskets, rng)

    def facts(self) -> dict[str, Any]:
        return {"shrinkage": 0.0, "shrinkage_chosen": False}


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


def step_sizes() -> Iterator[float]:
    """Yield 1, ½, ¼, … down to 1e-8: the line search of both algorithms of the paper, as its authors ran them."""
    step_size = 1.0
    while step_size >= MIN_STEP_SIZE:
        yield step_size
        step_size /= 2


def has_fallen(after: float, before: float) -> bool:
    """Return whether the log-likelihood fell by more than the rounding of a step at the optimum."""
    return not after >= before - ROUNDING * max(1.0, abs(before))
