"""EM whose eigenvectors turn by the natural gradient: no line search, one evaluation of the statistics per step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.em import e_step
from dpplearn.learners.symmetric.problem import SymmetricProblem, has_fallen, step_sizes

LARGEST_ANGLE = 1.0  # in radians, of one eigenvector toward another in one step
LARGEST_EIGENVALUE = 1 - BORDER  # beyond, the statistics take longer, and less than 1e-5 nats is to be gained


def natural_em(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield steps of the paper's eigenvalue update and the natural rotation, halved where the likelihood falls."""
    kernel = prepared(kernel, problem.baskets)
    stats = statistics(kernel, problem.baskets, problem.threads)
    value = log_likelihood(kernel, stats)
    step_size, evaluations = 0.0, 1
    while True:
        yield Step(kernel, value, step_size, evaluations)
        T = e_step(kernel, stats)
        marginals = np.clip(T.diagonal(), 0, np.maximum(LARGEST_EIGENVALUE, kernel.eigenvalues))
        angles = natural_angles(kernel.eigenvalues, T)
        for number, step_size in enumerate(step_sizes(), 1):
            lam = kernel.eigenvalues + step_size * (marginals - kernel.eigenvalues)
            candidate = SpectralDPP(np.clip(lam, 0, 1), kernel.eigenvectors @ rotation(step_size * angles))
            stats = statistics(candidate, problem.baskets, problem.threads)
            if not has_fallen(new_value := log_likelihood(candidate, stats), value):
                evaluations = number
                break
        else:
            return
        kernel, value = candidate, new_value


def natural_angles(lam: Floats, T: Floats) -> Floats:
    """Return Θ_ba = s_ab / I_ab, score over complete-data information of each rotation, with bounded angles.

    s_ab = 2 M_ab (r²_a − r²_b) = 2 (T_ba − T_ab), and I_ab = 4 [λ_a (1 − λ_b) + λ_b (1 − λ_a)].
    """
    information = 4 * (np.outer(lam, 1 - lam) + np.outer(1 - lam, lam))
    angles = np.divide(2 * (T - T.T), information, out=np.zeros_like(T), where=information > 0)
    return np.asarray(angles * min(1.0, LARGEST_ANGLE / max(np.abs(angles).max(), LARGEST_ANGLE)))


def rotation(angles: Floats) -> Floats:
    """Return (I − Θ/2)⁻¹ (I + Θ/2), Cayley's rotation: exp(Θ) to second order, orthogonal, and cheaper."""
    half, one = angles / 2, np.eye(len(angles))
    return np.asarray(np.linalg.solve(one - half, one + half))
