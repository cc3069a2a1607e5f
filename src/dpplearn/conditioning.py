"""What a DPP says once some items are known to be in, or out."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import EPSILON, Bools, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel

CONDITIONING_ROUNDING = 1e-6  # dividing by a small probability magnifies rounding
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
    F = np.sqrt(kernel.eigenvalues)[:, None] * kernel.eigenvectors.T
    H = np.sqrt(1 - kernel.eigenvalues)[:, None] * kernel.eigenvectors.T
    F, H = _given(F, H, include, "no set holds all the included items")
    H, F = _given(H, F, exclude, "no such set leaves out all the excluded items")
    kept = F[:, remaining]
    return Kernel.from_K(kept.T @ kept, rounding=CONDITIONING_ROUNDING), remaining


def inclusion_probability(kernel: Kernel, items: Ints) -> float:
    """P(A ⊆ Y) = det K_A."""
    factor = _cholesky(kernel.K[np.ix_(items, items)])
    if factor is None or len(items) > kernel.rank:
        return 0.0
    return float(np.exp(2 * np.log(factor.diagonal()).sum()))


def next_item(kernel: Kernel, basket: Ints) -> tuple[Floats, Floats]:
    """For every item i the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A.

    Both are Schur complements: L_ii − L_iA L_A⁻¹ L_Ai, and the same of K. The score is NaN where P(A) is zero
    although P(A ⊆ Y) is not, which happens when eigenvalues of K are exactly 1 and A is too small.
    """
    if len(basket) > kernel.rank:
        raise InputError(IMPOSSIBLE.format(f"no set has more than {kernel.rank} items"))
    probability = np.clip(_complement(kernel.K, basket), 0, 1)
    score = _complement(kernel.L, basket) if not kernel.near_one.any() else _bordered_scores(kernel, basket)
    probability[basket] = score[basket] = 0
    if len(basket) == kernel.rank:  # what the complements show is rounding
        probability[:] = score[:] = 0
    return score, probability


def _complement(matrix: Floats, basket: Ints) -> Floats:
    """M_ii − M_iA M_A⁻¹ M_Ai for every item i; zero where it is of rounding size."""
    factor = _cholesky(matrix[np.ix_(basket, basket)])
    if factor is None:
        raise InputError(IMPOSSIBLE.format("no set holds all the items of the basket"))
    half = np.linalg.solve(factor, matrix[basket])  # scipy's solve_triangular waits for threads even on 3 by 6
    left = matrix.diagonal() - (half**2).sum(axis=0)
    return np.where(left <= (len(basket) + 1) * EPSILON * matrix.diagonal(), 0, left)


def _bordered_scores(kernel: Kernel, basket: Ints) -> Floats:
    """The complement of A ∪ border in the bordered matrix, with the rule for zero of the statistics."""
    from scipy.linalg import lapack

    E, n, scale = kernel.bordered.matrix, kernel.n_items, kernel.bordered.scale
    known = np.concatenate([basket, np.arange(n, len(E))])
    unit = np.concatenate([scale[basket], np.ones(len(E) - n)])[:, None]
    minor, cross = E[np.ix_(known, known)] / unit / unit.T, E[known, :n] / unit
    pivots = np.abs(lapack.dgetrf(minor)[0].diagonal())
    if len(basket) not in kernel.possible_sizes or not pivots.min() >= len(known) * EPSILON:
        return np.full(n, np.nan)
    score = E.diagonal()[:n] - (cross * np.linalg.solve(minor, cross)).sum(axis=0)
    return np.where(score <= (len(known) + 1) * EPSILON * scale**2, 0, score)


def _given(F: Floats, H: Floats, items: Ints, impossible: str) -> tuple[Floats, Floats]:
    """The factors given `items`: what F has along theirs goes over to H. Neither keeps what is of rounding size."""
    squares = (F**2).sum(axis=0)
    Q, R = np.linalg.qr(F[:, items])
    if _too_small(R.diagonal() ** 2, squares[items]).any():
        raise InputError(IMPOSSIBLE.format(impossible))
    along = Q.T @ F
    along[np.abs(along) < len(F) * EPSILON * np.sqrt(squares)] = 0
    left = F - Q @ along
    left[:, (left**2).sum(axis=0) < (len(items) + 1) * EPSILON * squares] = 0
    return left, np.vstack([H, along])


def _cholesky(minor: Floats) -> Floats | None:
    """The factor; None where a pivot is of rounding size, as then the determinant is zero."""
    try:
        factor = np.asarray(np.linalg.cholesky(minor), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return None if _too_small(factor.diagonal() ** 2, minor.diagonal()).any() else factor


def _too_small(pivots: Floats, diagonal: Floats) -> Bools:
    """Which pivots are no more than rounding leaves of zero."""
    return np.asarray((pivots < len(pivots) * EPSILON * diagonal) | (pivots == 0))
