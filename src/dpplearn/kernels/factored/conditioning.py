"""What a factored kernel says once some items are known to be in, or out; all in as many dimensions as Z has columns.

With items A in, Ω becomes Ω (I + Z_Aᵀ Z_A Ω)⁻¹ on the others: C' = I + Z Ω' Zᵀ is the Schur complement of C. With
others R summed over, it becomes Ω (I + S Ω)⁻¹ with S = Z_Rᵀ diag(p_R) Z_R, which differs between segments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.factored.beside import beside, shares
from dpplearn.kernels.factored.kernel import FactoredKernel, coupled, quadratic, weighted_gram
from dpplearn.kernels.nonsymmetric.conditioning import IMPOSSIBLE

NO_SHARE = 1e-15  # of a segment that adds nothing to a probability
MANY = 1024  # items; for more, the marginals of all items are worth their time


def conditioned(kernel: FactoredKernel, include: Ints, exclude: Ints) -> tuple[FactoredKernel, Ints]:
    """The law of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain."""
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    state = beside(kernel, include)
    even = np.full(kernel.n_segments, 1 / kernel.n_segments)
    log_odds, Z, omega = kernel.log_odds[:, remaining], kernel.factors[remaining], state.coupling
    log_weights = state.log_weights + FactoredKernel(even, log_odds, Z, omega).log_normalisers
    return FactoredKernel(shares(log_weights), log_odds, Z, omega), remaining


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


def K_of(kernel: FactoredKernel, items: Ints) -> Floats:
    """The part of every K_c with these rows and columns, (n_segments, n items, n items)."""
    p, Z = _chances(kernel, items), kernel.factors[items].astype(float)
    u = np.sqrt(p * (1 - p))
    K = u[:, :, None] * (Z @ kernel.cores @ Z.T) * u[:, None, :]
    K[:, np.arange(len(items)), np.arange(len(items))] += p
    return np.asarray(K)


def _chances(kernel: FactoredKernel, items: Ints) -> Floats:
    """p_c of some items, (n_segments, n items)."""
    return np.asarray(1 / (1 + np.exp(-kernel.log_odds[:, items].astype(float))))


def inclusion_probability(kernel: FactoredKernel, items: Ints) -> float:
    """P(A ⊆ Y) = Σ_c π_c det (K_c)_A."""
    return float(kernel.weights @ np.linalg.det(K_of(kernel, items)))


def segment_probabilities(kernel: FactoredKernel, basket: Ints) -> Floats:
    """How likely each segment is given that Y holds all of the basket."""
    return _likely(kernel, K_of(kernel, basket))


def _likely(kernel: FactoredKernel, K: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return shares(kernel.log_weights + np.linalg.slogdet(K)[1])


def pairs_with(kernel: FactoredKernel, item: int) -> Floats:
    """P(i, j ∈ Y) of one item with every other; what stands on its own place means nothing."""
    both, z, active = np.zeros(kernel.n_items), kernel.factors[item].astype(float), kernel.active
    for c, (weight, marginal) in enumerate(zip(kernel.weights, kernel.marginals, strict=True)):
        of_segment = marginal[item] * marginal
        if z.any():
            p, T = kernel.chances(c), kernel.cores[c]
            u = p * (1 - p)
            of_segment[active] -= u[item] * u[active] * (kernel.rows @ (T @ z)) * (kernel.rows @ (z @ T))
        both += weight * of_segment
    return both


def scores(kernel: FactoredKernel, basket: Ints) -> Floats:
    """P(A ∪ i)/P(A) of every item i; zero for those of A."""
    found = beside(kernel, basket).scores()
    found[basket] = 0
    return found


def probabilities(kernel: FactoredKernel, basket: Ints, items: Ints) -> Floats:
    """P(i ∈ Y given A ⊆ Y) of some items; zero for those of A: Σ_c ρ_c (K_ii − K_iA K_A⁻¹ K_Ai)_c."""
    K = K_of(kernel, basket)
    likely = _likely(kernel, K)
    if not np.isfinite(likely).all():
        raise InputError(IMPOSSIBLE)
    keep = np.flatnonzero(likely > NO_SHARE)
    cores, rows = kernel.cores[keep], kernel.factors[items].astype(float)
    inside, p = _chances(kernel, basket)[keep], _chances(kernel, items)[keep]
    scaled = kernel.factors[basket] * np.sqrt(inside * (1 - inside))[:, :, None]
    down, across = cores @ scaled.transpose(0, 2, 1), np.linalg.solve(K[keep], scaled @ cores)
    found, many = np.zeros(len(items)), len(items) > MANY
    for row, c in enumerate(keep.tolist()):
        u = p[row] * (1 - p[row])
        left = kernel.marginals[c, items] if many else p[row] + u * quadratic(rows, cores[row])
        if len(basket):
            left = left - u * ((rows @ down[row]) * (rows @ across[row].T)).sum(axis=1)
        found += likely[c] * left
    return np.where(np.isin(items, basket), 0.0, np.clip(found, 0, 1))


def next_of(kernel: FactoredKernel, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
    """The score and the probability of one item, beside each of some baskets that do not hold it."""
    one = np.array([item])
    score = [beside(kernel, basket).scores_of(one)[0] for basket in baskets]
    return np.array(score), np.array([probabilities(kernel, basket, one)[0] for basket in baskets])
