"""The paper's baseline K-Ascent: projected gradient on K. [GKFT14, Algorithm 1]"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.determinants import eigh_apart
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import Statistics, log_likelihood, mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.symmetric.problem import SymmetricProblem, step_sizes


def k_ascent(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Step along the gradient in K, clip the eigenvalues to [0, 1], halve the step until the likelihood rises."""
    step_size, tried = 0.0, 0
    while True:
        stats = statistics(kernel, problem.baskets, problem.threads)
        before = log_likelihood(kernel, stats)
        yield Step(kernel, before, step_size, 1 + tried / 2)
        G = gradient(kernel, stats)
        for number, step_size in enumerate(step_sizes(), 1):
            candidate = projected(kernel, step_size * G)
            if mean_log_likelihood(candidate, problem.baskets, problem.threads) > before:
                kernel, tried = candidate, number
                break
        else:
            return


def gradient(kernel: SpectralDPP, stats: Statistics) -> Floats:
    """Return ∂/∂K of the mean log-likelihood, mean (K − I_Ȳ)⁻¹, in the eigenbasis of K.

    With c = 1/(1 − λ), W the eigenvectors away from 1 and [[P, q], [qᵀ, s]] the averaged bordered inverse, the
    blocks are c WᵀPW c − diag(c), c Wᵀq/λ and diag(1/λ) + s/λλ. Without a border, that is (I+L) Delta (I+L) − (I+L).
    """
    lam, V, near = kernel.eigenvalues, kernel.eigenvectors, kernel.near_one
    delta = stats.delta / stats.weight
    n = kernel.n_items
    W, c, border = V[:, ~near], 1 / (1 - lam[~near]), lam[near]
    G = np.empty((n, n))
    G[np.ix_(~near, ~near)] = c[:, None] * (W.T @ delta[:n, :n] @ W) * c - np.diag(c)
    if near.any():
        cross = c[:, None] * (W.T @ delta[:n, n:]) / border
        G[np.ix_(~near, near)] = cross
        G[np.ix_(near, ~near)] = cross.T
        G[np.ix_(near, near)] = np.diag(1 / border) + delta[n:, n:] / np.outer(border, border)
    return G


def projected(kernel: SpectralDPP, move: Floats) -> SpectralDPP:
    """Return K + move, given in the eigenbasis of K, with eigenvalues clipped to [0, 1]."""
    lam, Q = eigh_apart(np.diag(kernel.eigenvalues) + move)
    return SpectralDPP(np.clip(lam, 0, 1), kernel.eigenvectors @ Q)
