"""The algorithms of the paper, EM and K-Ascent, and a faster EM.

`em` is Algorithm 2 of [GKFT14]: eigenvalues in closed form, and eigenvectors by rotations with a line search along the
gradient. `k_ascent` is Algorithm 1, its baseline: projected gradient on K. `natural_em` turns the eigenvectors by the
natural gradient, which needs no line search and one evaluation of the statistics per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.determinants import eigh_apart
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import Statistics, log_likelihood, mean_log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import CAP, prepared
from dpplearn.learners.symmetric.problem import STEP_SIZES, SymmetricProblem, climb, gradient_in_K

LARGEST_ANGLE = 1.0  # in radians, of one eigenvector toward another in one step
LARGEST_EIGENVALUE = 1 - BORDER  # beyond, the statistics take longer, and less than 1e-5 nats is to be gained


def em(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Alternate the eigenvalue update and the eigenvector step; each raises the likelihood or leaves it."""
    step_size, tried = 0.0, 0
    while True:
        stats = statistics(kernel, problem.baskets, problem.threads)
        yield Step(kernel, log_likelihood(kernel, stats), step_size, 1 + tried / 2)
        T = e_step(kernel, stats)
        kernel = SpectralDPP(capped(T.diagonal(), kernel.eigenvalues, CAP), kernel.eigenvectors)
        kernel, step_size, tried = rotated(kernel, 2 * (T - T.T), problem)


def e_step(kernel: SpectralDPP, stats: Statistics) -> Floats:
    """Return T = VᵀΔV diag(r²), where r²_j = λ_j/(1 − λ_j), and Δ is the mean of (L_Y)⁻¹, zero outside Y.

    T_jj is the mean posterior probability q(j ∈ J | Y) that eigenvector j was chosen, and 2 (T − Tᵀ) is the gradient
    VᵀG − GᵀV of the rotation. [GKFT14, section 4] In terms of the gradient in K, T is (I − Λ) G Λ + Λ, for every
    eigenvalue up to and including 1.
    """
    lam = kernel.eigenvalues
    return np.asarray((1 - lam)[:, None] * gradient_in_K(kernel, stats) * lam + np.diag(lam))


def capped(marginals: Floats, eigenvalues: Floats, cap: float) -> Floats:
    """Return the new eigenvalues, at most `cap`, or their old values if those are larger."""
    return np.clip(marginals, 0, np.maximum(cap, eigenvalues))


def rotated(kernel: SpectralDPP, skew: Floats, problem: SymmetricProblem) -> tuple[SpectralDPP, float, int]:
    """Return V exp(η S) for the first η of the line search that raises the likelihood, η, and how many likelihoods
    were computed.

    If no η raises it, V stays as it is and η is 0.
    """
    if not skew.any():
        return kernel, 0.0, 0
    from scipy.linalg import expm

    def candidate(step_size: float) -> SpectralDPP:
        return SpectralDPP(kernel.eigenvalues, kernel.eigenvectors @ expm(step_size * skew))

    before = mean_log_likelihood(kernel, problem.baskets, problem.threads)
    found, step_size, tried = line_search(problem, kernel, candidate, before)
    return found, step_size, tried + 1


def line_search(
    problem: SymmetricProblem, kernel: SpectralDPP, candidate: Callable[[float], SpectralDPP], before: float
) -> tuple[SpectralDPP, float, int]:
    """Return the candidate of the first step size that raises the likelihood, that step size, and how many were tried.

    If no step size raises it, return the kernel and 0.
    """
    for tried, step_size in enumerate(STEP_SIZES, 1):
        found = candidate(step_size)
        if mean_log_likelihood(found, problem.baskets, problem.threads) > before:
            return found, step_size, tried
    return kernel, 0.0, tried


def k_ascent(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Step along the gradient in K, clip the eigenvalues to [0, 1], halve the step until the likelihood rises."""
    step_size, tried = 0.0, 0
    while True:
        stats = statistics(kernel, problem.baskets, problem.threads)
        before = log_likelihood(kernel, stats)
        yield Step(kernel, before, step_size, 1 + tried / 2)
        G = gradient_in_K(kernel, stats)
        kernel, step_size, tried = line_search(problem, kernel, partial(projected, kernel, G), before)
        if not step_size:
            return


def projected(kernel: SpectralDPP, G: Floats, step_size: float) -> SpectralDPP:
    """Return K + step_size G, G in the eigenbasis of K, with eigenvalues clipped to [0, 1]."""
    lam, Q = eigh_apart(np.diag(kernel.eigenvalues) + step_size * G)
    return SpectralDPP(np.clip(lam, 0, 1), kernel.eigenvectors @ Q)


def natural_em(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield steps of the paper's eigenvalue update and the natural rotation, halved where the likelihood falls."""

    def evaluate(kernel: SpectralDPP) -> tuple[float, Statistics]:
        stats = statistics(kernel, problem.baskets, problem.threads)
        return log_likelihood(kernel, stats), stats

    def candidates(kernel: SpectralDPP, stats: Statistics) -> Iterator[tuple[float, SpectralDPP]]:
        T, lam = e_step(kernel, stats), kernel.eigenvalues
        change, angles = capped(T.diagonal(), lam, LARGEST_EIGENVALUE) - lam, natural_angles(lam, T)
        for step_size in STEP_SIZES:
            V = kernel.eigenvectors @ rotation(step_size * angles)
            yield step_size, SpectralDPP(np.clip(lam + step_size * change, 0, 1), V)

    return climb(prepared(kernel, problem.baskets), evaluate, candidates, lambda kernel: kernel)


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
