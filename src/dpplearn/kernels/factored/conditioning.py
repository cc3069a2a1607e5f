"""What a factored kernel says once some items are known to be in, or out; all in as many dimensions as Z has columns.

With items A in, Ω becomes Ω (I + Z_Aᵀ Z_A Ω)⁻¹ on the others: C' = I + Z Ω' Zᵀ is the Schur complement of C. With
others R summed over, it becomes Ω (I + S Ω)⁻¹ with S = Z_Rᵀ diag(p_R) Z_R, which differs between segments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.factored.kernel import FactoredKernel, coupled, quadratic, weighted_gram
from dpplearn.kernels.nonsymmetric.conditioning import IMPOSSIBLE

NO_SHARE = 1e-15  # of a segment that adds nothing to a probability


def conditioned(kernel: FactoredKernel, include: Ints, exclude: Ints) -> tuple[FactoredKernel, Ints]:
    """The law of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain."""
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    log_weights, omega = _beside(kernel, include)
    even = np.full(kernel.n_segments, 1 / kernel.n_segments)
    log_odds, Z = kernel.log_odds[:, remaining], kernel.factors[remaining]
    log_weights = log_weights + FactoredKernel(even, log_odds, Z, omega).log_normalisers
    return FactoredKernel(_shares(log_weights), log_odds, Z, omega), remaining


def _beside(kernel: FactoredKernel, basket: Ints) -> tuple[Floats, Floats]:
    """log π_c det (L_c)_A / Z_c, how likely the segments are given Y = A but for a factor; and Ω beside A."""
    Z = kernel.factors[basket].astype(float)
    log_weights = kernel.log_weights - kernel.log_normalisers
    log_weights = log_weights + kernel.log_odds[:, basket].astype(float).sum(axis=1)
    found = [coupled(omega, Z.T @ Z) for omega in kernel.coupling]
    return log_weights + np.array([logdet for logdet, _ in found]), np.array([omega for _, omega in found])


def restricted(kernel: FactoredKernel, items: Ints) -> FactoredKernel:
    """The law of Y ∩ S: Ω with the others summed over, or T with S taken out again, whichever are fewer."""
    few = 2 * len(items) < kernel.n_items
    chosen = items if few else np.setdiff1d(np.arange(kernel.n_items), items)
    rows = kernel.factors[chosen].astype(float)
    omega = []
    for c in range(kernel.n_segments):
        S = weighted_gram(rows, kernel.chances(c)[chosen])
        omega.append(coupled(kernel.cores[c], -S)[1] if few else coupled(kernel.coupling_of(c), S)[1])
    return FactoredKernel(kernel.weights, kernel.log_odds[:, items], kernel.factors[items], np.array(omega))


def K_of(kernel: FactoredKernel, segment: int, items: Ints, others: Ints | None = None) -> Floats:
    """The part of K_c with the rows of some items, and their columns or those of others."""
    columns = items if others is None else others
    p = kernel.chances(segment)
    u, rows, across = np.sqrt(p * (1 - p)), kernel.factors[items].astype(float), kernel.factors[columns].astype(float)
    K = u[items, None] * (rows @ kernel.cores[segment] @ across.T) * u[columns]
    K[items[:, None] == columns] += p[items[np.isin(items, columns)]]
    return np.asarray(K)


def inclusion_probability(kernel: FactoredKernel, items: Ints) -> float:
    """P(A ⊆ Y) = Σ_c π_c det (K_c)_A."""
    dets = [np.linalg.det(K_of(kernel, c, items)) for c in range(kernel.n_segments)]
    return float(kernel.weights @ np.array(dets))


def segment_probabilities(kernel: FactoredKernel, basket: Ints) -> Floats:
    """How likely each segment is given that Y holds all of the basket."""
    logdet = [np.linalg.slogdet(K_of(kernel, c, basket))[1] for c in range(kernel.n_segments)]
    return _shares(kernel.log_weights + np.array(logdet))


def pairs_with(kernel: FactoredKernel, item: int) -> Floats:
    """P(i, j ∈ Y) of one item with every other; what stands on its own place means nothing."""
    both, one, everything = np.zeros(kernel.n_items), np.array([item]), kernel.active
    for c, (weight, p) in enumerate(zip(kernel.weights, kernel.marginals, strict=True)):
        of_segment = p[item] * p
        if kernel.factors[item].any():
            down, across = K_of(kernel, c, one, everything)[0], K_of(kernel, c, everything, one)[:, 0]
            of_segment[everything] -= down * across
        both += weight * of_segment
    return both


def scores(kernel: FactoredKernel, basket: Ints) -> Floats:
    """P(A ∪ i)/P(A) of every item i; zero for those of A.

    That is (1 + z_i Ω' z_iᵀ) Σ_c ρ_c exp(log_odds_ci), Ω' beside A and ρ_c how likely segment c is given Y = A.
    """
    log_weights, omega = _beside(kernel, basket)
    rho, found = _shares(log_weights), np.zeros(kernel.n_items)
    liked = np.exp(kernel.log_odds.astype(float))
    inside = np.ones((len(omega), kernel.n_items))
    for each, matrix in zip(inside, omega, strict=True):
        each[kernel.active] += quadratic(kernel.rows, matrix)
    found = rho @ liked * inside[0] if len(omega) == 1 else np.einsum("c,ci,ci->i", rho, liked, inside)
    found[basket] = 0
    return np.asarray(found)


def probabilities(kernel: FactoredKernel, basket: Ints, items: Ints) -> Floats:
    """P(i ∈ Y given A ⊆ Y) of some items; zero for those of A."""
    shares = segment_probabilities(kernel, basket)
    if not np.isfinite(shares).all():
        raise InputError(IMPOSSIBLE)
    found = np.zeros(len(items))
    rows = kernel.factors[items].astype(float)
    for c in np.flatnonzero(shares > NO_SHARE).tolist():
        p = kernel.chances(c)
        u = np.sqrt(p * (1 - p))
        left = p[items] + u[items] ** 2 * quadratic(rows, kernel.cores[c])
        if len(basket):
            Z, T = kernel.factors[basket].astype(float) * u[basket, None], kernel.cores[c]
            across = np.linalg.solve(K_of(kernel, c, basket), (Z @ T) @ rows.T)
            left -= u[items] ** 2 * np.einsum("ij,ji->i", rows @ (T @ Z.T), across)
        found += shares[c] * left
    return np.where(np.isin(items, basket), 0.0, np.clip(found, 0, 1))


def next_of(kernel: FactoredKernel, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
    """The score and the probability of one item, beside each of some baskets that do not hold it."""
    score, probability = np.empty(len(baskets)), np.empty(len(baskets))
    z, liked, one = kernel.factors[item].astype(float), np.exp(kernel.log_odds[:, item].astype(float)), np.array([item])
    for row, basket in enumerate(baskets):
        log_weights, omega = _beside(kernel, basket)
        score[row] = _shares(log_weights) @ (liked * (1 + np.einsum("i,cij,j->c", z, omega, z)))
        probability[row] = probabilities(kernel, basket, one)[0]
    return score, probability


def _shares(log_weights: Floats) -> Floats:
    p = np.exp(log_weights - log_weights.max())
    return np.asarray(p / p.sum())
