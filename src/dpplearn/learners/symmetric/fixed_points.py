"""Fixed-point iterations on L: Picard iteration [MS15] and minorisation-maximisation [KH23]."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.distributions.determinants import eigh_apart
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.problem import SymmetricProblem, climb, in_L

BOLD, SAFE = 1.3, 1.0  # values of a: above 1 often faster; at 1 the likelihood cannot fall

ACCELERATED_STEPS = 5
MARGIN = 0.15  # what keeps the accelerated equation away from the end of where it has a solution


def picard(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield steps with a = 1.3 where that ascends, and else with a = 1."""

    def candidates(L: Floats, delta: Floats, inverse: Floats) -> Iterator[tuple[float, Floats]]:
        move = L @ (delta - inverse) @ L
        for a in (BOLD, SAFE):
            candidate = L + a * (move + move.T) / 2
            if a == SAFE or is_positive(candidate):
                yield a, candidate

    return climb(prepared(kernel, problem.baskets).L, partial(in_L, problem), candidates, SpectralDPP.from_L)


def is_positive(L: Floats) -> bool:
    """Return whether L is positive semidefinite, up to rounding."""
    from scipy.linalg import lapack

    rounding = len(L) * EPSILON * max(float(L.diagonal().max()), EPSILON)
    return not lapack.dpotrf(L.T + rounding * np.eye(len(L)), overwrite_a=1)[1]


def mm(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield steps: the first five solve the accelerated equation X G X = Q, or the plain one where that falls."""
    accelerated = iter(range(ACCELERATED_STEPS))

    def candidates(L: Floats, delta: Floats, inverse: Floats) -> Iterator[tuple[float, Floats]]:
        tries = (0.0,) if next(accelerated, None) is None else (acceleration(L, delta), 0.0)
        for mu in tries:
            yield 1 + abs(mu), solution(inverse + mu * delta, (1 + mu) * L @ delta @ L)

    return climb(prepared(kernel, problem.baskets).L, partial(in_L, problem), candidates, SpectralDPP.from_L)


def acceleration(L: Floats, delta: Floats) -> float:
    """Return μ = min(max(−1, −1/λ_max(Delta (L+I))) + 0.15, 0)."""
    C = np.linalg.cholesky(L + np.eye(len(L)))
    largest = float(np.linalg.eigvalsh(C.T @ delta @ C)[-1])
    return min(max(-1.0, -1 / largest if largest > 0 else -1.0) + MARGIN, 0.0)


def solution(G: Floats, Q: Floats) -> Floats:
    """Return the X ⪰ 0 with X G X = Q, for G ≻ 0: C (C⁻¹ Q C⁻ᵀ)^½ Cᵀ with C Cᵀ = G⁻¹."""
    F = np.linalg.cholesky((G + G.T) / 2)  # so that C = F⁻ᵀ
    inner = F.T @ ((Q + Q.T) / 2) @ F
    values, vectors = eigh_apart((inner + inner.T) / 2)  # zero rows stay exactly zero
    half = np.linalg.solve(F.T, vectors * np.sqrt(np.sqrt(np.maximum(values, 0))))
    X: Floats = half @ half.T
    return X
