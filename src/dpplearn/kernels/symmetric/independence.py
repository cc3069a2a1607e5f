"""Zero by a bound: whether a set has a probability, and its determinants where those of K and L are lost in rounding.

K = F Fᵀ with F = V diag(√λ), one row per item, and a set is possible if the rows of its items are independent. A row
within √eps of a combination of the others, relative to its length, is such a combination: its pivot is below eps, which
K and L cannot hold. Their pivots carry rounding of some N·eps, so they cannot decide it; F has the distances
themselves, with rounding far below √eps. So pivots are trusted down to √δ, where δ = (2N + 4k)·eps bounds the rounding
of the entries of a minor with a unit diagonal: dividing by such a pivot magnifies δ to no more than √δ, and the next
one is still above that. In a bordered minor two pivots may have the root of such a small one each, so there the product
of the two smallest counts. A minor with smaller pivots is decided here.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints, Items
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.tools.threads import one_blas_thread

ALIKE = math.sqrt(EPSILON)
WORTH_LIMITING = 5_000  # numbers; on so few BLAS uses one thread anyway, and on more they would wait for one another


def doubtful_pivot(n_items: int, k: int) -> float:
    """√δ: below this a pivot of the minor of k items, scaled to a unit diagonal, leaves it in doubt."""
    return math.sqrt((2 * n_items + 4 * k) * EPSILON)


def two_smallest(pivots: Floats) -> float:
    """The product of the two smallest pivots of a bordered minor, each at most 1."""
    return float(np.prod(np.minimum(np.sort(pivots)[:2], 1)))


def zero_pivot(n_items: int, k: int) -> float:
    """Below this a pivot of k scaled items of a matrix without a factor is zero: what a learner holds on its way."""
    return (2 * math.sqrt(n_items) + 4 * k) * EPSILON


def least_distance(rows: Floats) -> float:
    """How far the row (k, n) nearest to a combination of the others is from it, relative to its length; zero where that
    is rounding, and 1 where there are no rows."""
    lengths = np.sqrt((rows**2).sum(axis=1))
    if len(rows) > rows.shape[1] or not np.all(lengths > 0):
        return 0.0
    least = float(_distances(rows / lengths[:, None]).min(initial=1))
    return least if least >= ALIKE else 0.0


def can_contain(kernel: Kernel, items: Ints | Items) -> bool:
    """Whether P(items ⊆ Y) is above zero."""
    return len(items) <= kernel.rank and least_distance(kernel.factor[items]) > 0


def log_inclusion(kernel: Kernel, items: Ints | Items) -> float:
    """log P(items ⊆ Y) = log det K_A."""
    return _log_gram(kernel.factor[items]) if can_contain(kernel, items) else -math.inf


def log_determinant(kernel: Kernel, items: Ints | Items) -> float:
    """log|det| of the set's minor of `Kernel.bordered`; −inf where P(Y = items) is zero.

    With U the eigenvectors at exactly 1, P(Y) is zero unless the columns of U_Y are independent too, and then it is
    Π(1 − λ) det(U_YᵀU_Y) det(B Bᵀ), B the rows of the others times their odds, outside the span of U_Y.
    """
    if not can_contain(kernel, items):
        return -math.inf
    finite = ~kernel.at_one
    V, lam = kernel.eigenvectors[items], kernel.eigenvalues[finite]
    B, value = V[:, finite] * np.sqrt(kernel.odds[finite]), float(np.log1p(-lam).sum())
    if not finite.all():
        U = V[:, ~finite]
        if U.shape[1] > len(U) or _distances(U.T).min() < 8 * kernel.n_items * EPSILON:
            return -math.inf
        value += _log_gram(U.T)
        B = np.linalg.qr(U, mode="complete")[0][:, U.shape[1] :].T @ B
    return value + _log_gram(B) - kernel.bordered.log_normaliser


def _log_gram(rows: Floats) -> float:
    """log det of the rows' inner products."""
    return 2 * float(np.log(_distances(rows)).sum())


def _distances(rows: Floats) -> Floats:
    """The length of each row freed of those before it, in the order that leaves most: QR with pivots.

    In another order a row that almost depends on those before it would magnify its rounding into those after it.
    """
    from scipy.linalg import lapack

    if not len(rows):
        return np.empty(0)
    with one_blas_thread() if rows.size > WORTH_LIMITING else nullcontext():
        R = lapack.dgeqp3(rows.T)[0]
    return np.asarray(np.abs(R.diagonal()))
