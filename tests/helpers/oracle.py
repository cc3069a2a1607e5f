"""Determinantal point processes by enumeration of all subsets: the truth that everything else is held against.

For at most 8 items. A subset is a sorted tuple of items. A distribution over subsets is an array of length 2^N whose
entry m is the probability of the items that are the bits of m; `subsets` lists them in that order and `index` is
its inverse. Nothing here uses a formula that the library uses to be fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from golden.reference import elementary, minors
from golden.reference import subsets as membership

FloatArray = NDArray[np.float64]
Subset = tuple[int, ...]


def subsets(n_items: int) -> list[Subset]:
    """All 2^N subsets, the m-th being the bits of m."""
    return [tuple(np.flatnonzero(row).tolist()) for row in membership(n_items)]


def index(Y: Iterable[int]) -> int:
    """Where a subset stands in `subsets`."""
    return sum(1 << int(i) for i in set(Y))


def normalised(p: FloatArray) -> FloatArray:
    """p over its sum."""
    return np.asarray(p / p.sum())


def probabilities_from_L(L: FloatArray) -> FloatArray:
    """P(Y) = det(L_Y) / Σ_Y' det(L_Y'), the sum taken over all subsets."""
    return normalised(minors(L, membership(len(L))))


def probabilities_from_K(K: FloatArray) -> FloatArray:
    """P(Y) = |det(K − I_Ȳ)|, not normalised: that it sums to 1 is for a test to find."""
    outside = ~membership(len(K))[:, None] * np.eye(len(K))
    return np.asarray(np.abs(np.linalg.det(K - outside)))


def log_likelihood(P: FloatArray, sets: Sequence[Iterable[int]], weights: Sequence[float]) -> float:
    """Σ_i w_i log P(Y_i), the weights divided by their sum."""
    return float(np.average(np.log([P[index(Y)] for Y in sets]), weights=weights))


def held(P: FloatArray) -> NDArray[np.bool_]:
    """Which items each subset has, for a distribution over subsets, (2^N, N)."""
    return np.asarray(membership(len(P).bit_length() - 1))


def marginal(P: FloatArray, A: Iterable[int]) -> float:
    """P(A ⊆ Y), the sum over the subsets that contain A."""
    return float(P[held(P)[:, list(A)].all(axis=1)].sum())


def item_marginals(P: FloatArray) -> FloatArray:
    """P(i ∈ Y) for every item."""
    return P @ held(P)


def k_dpp(P: FloatArray, k: int) -> FloatArray:
    """P(Y | |Y| = k)."""
    return normalised(np.where(held(P).sum(axis=1) == k, P, 0))


def size_distribution(P: FloatArray) -> FloatArray:
    """P(|Y| = k) for k = 0..N."""
    return np.bincount(held(P).sum(axis=1), P)


def posterior(joint: FloatArray, Y: Iterable[int]) -> FloatArray:
    """q(J | Y) = p(J, Y) / Σ_J' p(J', Y), over all J; the joint distribution is that of `golden.reference`."""
    return normalised(joint[:, index(Y)])


def bound(
    q: Sequence[FloatArray], V: FloatArray, lam: FloatArray, sets: Sequence[Iterable[int]], weights: Sequence[float]
) -> float:
    """F(q, V, λ) = Σ_i w_i (E_q_i[log p(J, Y_i)] + H(q_i)), q_i a distribution over J, the weights over their sum."""
    joint = elementary(lam, V)
    return float(np.average([-kl(q_i, joint[:, index(Y)]) for q_i, Y in zip(q, sets, strict=True)], weights=weights))


def kl(q: FloatArray, p: FloatArray) -> float:
    """KL(q ‖ p) = Σ q log(q / p), with 0 log 0 = 0; inf where q puts mass where p has none."""
    with np.errstate(divide="ignore"):
        return float(np.sum(q[q > 0] * np.log(q[q > 0] / p[q > 0])))
