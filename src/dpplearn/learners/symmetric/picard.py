"""The fixed-point iteration L ← L + a L (Delta − (I+L)⁻¹) L. [MS15]"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.problem import SymmetricProblem, has_fallen, in_L

BOLD, SAFE = 1.3, 1.0  # values of a: above 1 often faster; at 1 the likelihood cannot fall


def picard(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield steps with a = 1.3 where that ascends, and else with a = 1."""
    L = np.array(prepared(kernel, problem.baskets).L)
    value, delta, inverse = in_L(L, problem)
    step_size, evaluations = 0.0, 1
    while True:
        yield Step(partial(SpectralDPP.from_L, L), value, step_size, evaluations)
        move = L @ (delta - inverse) @ L
        evaluations = 0
        for step_size in (BOLD, SAFE):
            candidate = L + step_size * (move + move.T) / 2
            if step_size == SAFE or is_positive(candidate):
                evaluations += 1
                new = in_L(candidate, problem)
                if not has_fallen(new[0], value):
                    break
        else:
            return
        L, (value, delta, inverse) = candidate, new


def is_positive(L: Floats) -> bool:
    """Return whether L is positive semidefinite, up to rounding."""
    from scipy.linalg import lapack

    rounding = len(L) * EPSILON * max(float(L.diagonal().max()), EPSILON)
    return not lapack.dpotrf(L.T + rounding * np.eye(len(L)), overwrite_a=1)[1]
