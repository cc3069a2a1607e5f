"""EM: eigenvalues in closed form, eigenvectors by rotations.

`em` is Algorithm 2 of [GKFT14], with a line search along the gradient. `natural_em` turns the eigenvectors by the
natural gradient, which needs no line search and one evaluation of the statistics per step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import Statistics, log_likelihood, mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import CAP, prepared
from dpplearn.learners.symmetric.problem import SymmetricProblem, has_fallen, step_sizes

LARGEST_ANGLE = 1.0  # in radians, of one eigenvector toward another in one step
LARGEST_EIGENVALUE = 1 - BORDER  # beyond, the statistics take longer, and less than 1e-5 nats is to be gained


def em(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Alternate the eigenvalue update and the eigenvector step; each raises the likelihood or leaves it."""
    step_size, tried = 0.0, 0
    while True:
        stats = statistics(kernel, problem.baskets, problem.threads)
        yield Step(kernel, log_likelihood(kernel, stats), step_size, 1 + tried / 2)
        T = e_step(kernel, stats)
        kernel = SpectralDPP(capped(T.diagonal(), kernel.eigenvalues), kernel.eigenvectors)
        kernel, step_size, tried = rotated(kernel, 2 * (T - T.T), problem)


def e_step(kernel: SpectralDPP, stats: Statistics) -> Floats:
    """Return T = M diag(r²) with M = Vᵀ Delta V.

    Its diagonal is the mean E-step marginal q(j ∈ J given Y), and 2 (T − Tᵀ) is the gradient VᵀG − GᵀV of the rotation.
    [GKFT14, section 4]

    For an eigenvalue near 1, Delta v r² is the border column of the averaged inverse.
    """
    V, near = kernel.eigenvectors, kernel.near_one
    delta = stats.delta / stats.weight
    n = kernel.n_items
    M = V.T @ delta[:n, :n] @ V
    if not near.any():
        return np.asarray(M * kernel.odds)
    D = (1 - kernel.eigenvalues[near]) / kernel.eigenvalues[near]
    Vq = V.T @ delta[:n, n:]
    s = delta[n:, n:]
    T = np.empty_like(M)
    T[:, ~near] = M[:, ~near] * kernel.odds[~near]
    T[np.ix_(near, ~near)] = D[:, None] * Vq[~near].T * kernel.odds[~near]
    T[:, near] = Vq
    T[np.ix_(near, near)] = np.eye(len(D)) + D[:, None] * s
    return T


def capped(marginals: Floats, eigenvalues: Floats) -> Floats:
    """Return the new eigenvalues, at most 0.999 as in the authors' program, or their old values if those are larger."""
    return np.clip(marginals, 0, np.maximum(CAP, eigenvalues))


def rotated(kernel: SpectralDPP, skew: Floats, problem: SymmetricProblem) -> tuple[SpectralDPP, float, int]:
    """Return V exp(η S) for the first η of the line search that raises the likelihood, η, and the likelihoods tried.

    If no η raises it, V stays as it is and η is 0.
    """
    if not skew.any():
        return kernel, 0.0, 0
    from scipy.linalg import expm

    before = mean_log_likelihood(kernel, problem.baskets, problem.threads)
    for tried, step_size in enumerate(step_sizes(), 2):
        candidate = SpectralDPP(kernel.eigenvalues, kernel.eigenvectors @ expm(step_size * skew))
        if mean_log_likelihood(candidate, problem.baskets, problem.threads) > before:
            return candidate, step_size, tried
    return kernel, 0.0, tried


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
