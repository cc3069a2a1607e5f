"""The paper's EM: eigenvalues in closed form, eigenvectors by a line search on the rotations. [GKFT14, Algorithm 2]"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import Statistics, log_likelihood, mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import CAP
from dpplearn.learners.symmetric.problem import SymmetricProblem, step_sizes


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
    delta = stats.bordered_delta / stats.weight
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
