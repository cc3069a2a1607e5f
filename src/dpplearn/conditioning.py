"""What a DPP says once some items are known to be in, or out."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernel import Kernel

CONDITIONING_ROUNDING = 1e-6  # dividing by a small probability magnifies rounding
IMPOSSIBLE = "{}: under this model that has probability zero, so nothing follows from it"


def conditioned(kernel: Kernel, include: Ints, exclude: Ints) -> tuple[Kernel, Ints]:
    """The DPP of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain.

    K_R − K_RA K_A⁻¹ K_AR, then K_R + K_RB (I − K_B)⁻¹ K_BR: in K, so that eigenvalues of 1 are no obstacle.
    """
    sizes = kernel.possible_sizes
    if len(include) > sizes[-1] or kernel.n_items - len(exclude) < sizes[0]:
        raise InputError(IMPOSSIBLE.format(f"a set has {sizes[0]} to {sizes[-1]} items"))
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    K, rest = kernel.K, np.setdiff1d(np.arange(kernel.n_items), include)
    if len(include):
        K_A = _factor(K[np.ix_(include, include)], "no set holds all the included items")
        half = _solve(K_A, K[np.ix_(include, rest)])
        K = K[np.ix_(rest, rest)] - half.T @ half
    inside = np.searchsorted(rest, remaining)
    outside = np.searchsorted(rest, exclude)
    kept = K[np.ix_(inside, inside)]
    if len(exclude):
        absent = np.eye(len(outside)) - K[np.ix_(outside, outside)]
        half = _solve(_factor(absent, "no such set leaves out all the excluded items"), K[np.ix_(outside, inside)])
        kept = kept + half.T @ half
    return Kernel.from_K(kept, rounding=CONDITIONING_ROUNDING), remaining


def next_item(kernel: Kernel, basket: Ints) -> tuple[Floats, Floats]:
    """For every item i the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A.

    Both are Schur complements: L_ii − L_iA L_A⁻¹ L_Ai, and the same of K. The score is NaN where P(A) is zero
    although P(A ⊆ Y) is not, which happens when eigenvalues of K are exactly 1 and A is too small.
    """
    if len(basket) > kernel.rank:
        raise InputError(IMPOSSIBLE.format(f"no set has more than {kernel.rank} items"))
    K = kernel.K
    half = _solve(_factor(K[np.ix_(basket, basket)], "no set holds all the items of the basket"), K[basket])
    probability = np.clip(K.diagonal() - (half**2).sum(axis=0), 0, 1)
    score = _scores(kernel, basket)
    probability[basket] = score[basket] = 0
    if len(basket) == kernel.rank:  # what the complements show is rounding
        probability[:] = score[:] = 0
    return score, probability


def _scores(kernel: Kernel, basket: Ints) -> Floats:
    E, n = kernel.bordered.matrix, kernel.n_items
    diagonal = E.diagonal()[:n]
    known = np.concatenate([basket, np.arange(n, len(E))])
    if not len(known):
        return diagonal.copy()
    minor, cross = E[np.ix_(known, known)], E[known, :n]
    if len(known) == len(basket):
        half = _solve(_factor(minor, "no set holds all the items of the basket"), cross)
        score: Floats = diagonal - (half**2).sum(axis=0)
    else:
        signs, _ = np.linalg.slogdet(minor)
        if np.linalg.matrix_rank(minor) < len(known) or signs == 0:
            return np.full(n, np.nan)
        score = diagonal - np.einsum("ij,ij->j", cross, np.linalg.solve(minor, cross))
    limit = (len(known) + 1) * np.finfo(float).eps * np.abs(diagonal)
    return np.where(score <= limit, 0, score)


def _factor(matrix: Floats, impossible: str) -> Floats:
    """The Cholesky factor; a pivot of rounding size means an event of probability zero."""
    try:
        factor = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if np.any(factor.diagonal() ** 2 < len(matrix) * np.finfo(float).eps * matrix.diagonal()) or (
        not factor.diagonal().all()
    ):
        raise InputError(IMPOSSIBLE.format(impossible))
    return factor


def _solve(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    solution: Floats = solve_triangular(factor, right, lower=True)
    return solution
