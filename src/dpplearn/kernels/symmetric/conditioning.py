"""What a DPP says once some items are known to be in, or out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.independence import (
    doubtful_pivot,
    least_distance,
    log_determinant,
    log_inclusion,
    two_smallest,
)
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.tools.words import count

Measure = Callable[[Kernel, Ints], float]  # the logarithm of a determinant of a set's minor
IMPOSSIBLE = "{}: under this model that has probability zero, so nothing follows from it"


def conditioned(kernel: Kernel, include: Ints, exclude: Ints) -> tuple[Kernel, Ints]:
    """The DPP of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain.

    K_R − K_RA K_A⁻¹ K_AR, then K_R + K_RB (I − K_B)⁻¹ K_BR: in K, so that eigenvalues of 1 are no obstacle, and in
    factors K = FᵀF and I − K = HᵀH, so that an event of probability 1e-12 costs six digits and not twelve. What is
    out under K is in under I − K.
    """
    sizes = kernel.possible_sizes
    if len(include) > sizes[-1] or kernel.n_items - len(exclude) < sizes[0]:
        raise InputError(IMPOSSIBLE.format(f"a set has {sizes[0]} to {sizes[-1]} items"))
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    F, H = kernel.factor.T, np.sqrt(1 - kernel.eigenvalues)[:, None] * kernel.eigenvectors.T
    F, H = _given(F, H, include, "no set holds all the included items")
    H, F = _given(H, F, exclude, "no such set leaves out all the excluded items")
    return Kernel.from_K_factor(F[:, remaining].T), remaining


def inclusion_probability(kernel: Kernel, items: Ints) -> float:
    """P(A ⊆ Y) = det K_A."""
    return float(np.exp(log_inclusion(kernel, items)))


def next_item(kernel: Kernel, basket: Ints) -> tuple[Floats, Floats]:
    """For every item i the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A.

    Both are Schur complements: L_ii − L_iA L_A⁻¹ L_Ai, and the same of K. The score is NaN where P(A) is zero
    although P(A ⊆ Y) is not, which happens when eigenvalues of K are exactly 1 and A is too small.
    """
    if len(basket) > kernel.rank:
        raise InputError(IMPOSSIBLE.format(f"no set has more than {count(kernel.rank, 'item')}"))
    probability = _decided(kernel, basket, _complement(kernel.K, basket), log_inclusion)
    if np.isnan(probability).any():
        raise InputError(IMPOSSIBLE.format("no set holds all the items of the basket"))
    score = _complement(kernel.L, basket) if not kernel.near_one.any() else _bordered_complement(kernel, basket)
    return _decided(kernel, basket, score, log_determinant), np.minimum(probability, 1)


def _complement(matrix: Floats, basket: Ints) -> Floats:
    """M_ii − M_iA M_A⁻¹ M_Ai for every item i; NaN where pivots leave it in doubt."""
    diagonal, smallest = matrix.diagonal(), doubtful_pivot(len(matrix), len(basket) + 1)
    try:
        factor = np.asarray(np.linalg.cholesky(matrix[np.ix_(basket, basket)]), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full(len(matrix), np.nan)
    half = np.linalg.solve(factor, matrix[basket])  # scipy's solve_triangular waits for threads even on 3 by 6
    left = diagonal - (half**2).sum(axis=0)
    trusted = np.all(factor.diagonal() ** 2 >= smallest * diagonal[basket]) & (left >= smallest * diagonal)
    return np.where(trusted, left, np.nan)


def _bordered_complement(kernel: Kernel, basket: Ints) -> Floats:
    """The same of A ∪ border in the bordered matrix."""
    from scipy.linalg import lapack

    E, n, scale = kernel.bordered.matrix, kernel.n_items, kernel.bordered.scale
    known = np.concatenate([basket, np.arange(n, len(E))])
    unit = np.concatenate([scale[basket], np.ones(len(E) - n)])[:, None]
    minor, cross = E[np.ix_(known, known)] / unit / unit.T, E[known, :n] / unit
    smallest = doubtful_pivot(n, len(known) + 1)
    if not two_smallest(np.abs(lapack.dgetrf(minor)[0].diagonal())) >= smallest:
        return np.full(n, np.nan)
    left = E.diagonal()[:n] - (cross * np.linalg.solve(minor, cross)).sum(axis=0)
    return np.where(left >= smallest * scale**2, left, np.nan)


def _decided(kernel: Kernel, basket: Ints, left: Floats, log_measure: Measure) -> Floats:
    """What each item multiplies a determinant by: where in doubt, from the kernel's factor; NaN if it is zero without
    them. Zero for the items of the basket."""
    left[basket] = 0
    doubtful = np.flatnonzero(np.isnan(left))
    if len(doubtful) and (alone := log_measure(kernel, basket)) > -np.inf:
        left[doubtful] = [np.exp(log_measure(kernel, np.append(basket, i)) - alone) for i in doubtful]
    return left


def _given(F: Floats, H: Floats, items: Ints, impossible: str) -> tuple[Floats, Floats]:
    """The factors given `items`: what F has along theirs goes over to H. Neither keeps what is of rounding size."""
    squares = (F**2).sum(axis=0)
    distance = least_distance(F[:, items].T)
    if not distance > 0:
        raise InputError(IMPOSSIBLE.format(impossible))
    Q = np.linalg.qr(F[:, items])[0]
    along = Q.T @ F
    along[np.abs(along) < len(F) * EPSILON * np.sqrt(squares)] = 0
    left = F - Q @ along
    left -= Q @ (Q.T @ left)  # once leaves rounding along the items, twice does not
    left[:, items] = 0
    smallest = doubtful_pivot(F.shape[1], len(items) + 1)
    doubtful = (distance**2 < smallest) | ((left**2).sum(axis=0) < smallest * squares)
    for i in np.setdiff1d(np.flatnonzero(doubtful), items):
        if not least_distance(F[:, np.append(items, i)].T) > 0:
            left[:, i] = 0
    return left, np.vstack([H, along])
