"""Determinantal point processes by enumeration of all subsets: the truth that everything else is held against.

For at most 8 items. A subset is a sorted tuple of items. A distribution over subsets is an array of length 2^N whose
entry m is the probability of the items that are the bits of m; `subsets` lists them in that order and `index` is
its inverse. Nothing here uses a formula that the library uses to be fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Subset = tuple[int, ...]


def subsets(n_items: int) -> list[Subset]:
    """All 2^N subsets, the m-th being the bits of m."""
    return [tuple(i for i in range(n_items) if m >> i & 1) for m in range(2**n_items)]


def index(Y: Iterable[int]) -> int:
    """Where a subset stands in `subsets`."""
    return sum(1 << int(i) for i in set(Y))


def normalised(p: FloatArray) -> FloatArray:
    """p over its sum."""
    return np.asarray(p / p.sum())


def probabilities_from_L(L: FloatArray) -> FloatArray:
    """P(Y) = det(L_Y) / Σ_Y' det(L_Y'), the sum taken over all subsets."""
    dets = np.array([np.linalg.det(_minor(L, Y)) for Y in subsets(len(L))])
    return normalised(dets)


def probabilities_from_K(K: FloatArray) -> FloatArray:
    """P(Y) = |det(K − I_Ȳ)|, not normalised: that it sums to 1 is for a test to find."""
    outside = [np.diag([0.0 if i in Y else 1.0 for i in range(len(K))]) for Y in subsets(len(K))]
    return np.array([abs(np.linalg.det(K - I_outside)) for I_outside in outside])


def log_likelihood(P: FloatArray, sets: Sequence[Iterable[int]], weights: Sequence[float]) -> float:
    """Σ_i w_i log P(Y_i), the weights divided by their sum."""
    w = normalised(np.asarray(weights, dtype=float))
    return float(w @ np.log([P[index(Y)] for Y in sets]))


def marginal(P: FloatArray, A: Iterable[int]) -> float:
    """P(A ⊆ Y), the sum over the subsets that contain A."""
    wanted = set(A)
    return sum(float(p) for Y, p in zip(_subsets_of(P), P, strict=True) if wanted <= set(Y))


def item_marginals(P: FloatArray) -> FloatArray:
    """P(i ∈ Y) for every item."""
    return np.array([marginal(P, [i]) for i in range(_n_items(P))])


def k_dpp(P: FloatArray, k: int) -> FloatArray:
    """P(Y | |Y| = k)."""
    return _restricted(P, [len(Y) == k for Y in _subsets_of(P)])


def size_distribution(P: FloatArray) -> FloatArray:
    """P(|Y| = k) for k = 0..N."""
    sizes = np.array([len(Y) for Y in _subsets_of(P)])
    return np.array([P[sizes == k].sum() for k in range(_n_items(P) + 1)])


def joint_with_elementary(V: FloatArray, lam: FloatArray) -> FloatArray:
    """The table p(J, Y) = Π_J λ Π_J̄ (1 − λ) · det([V_J V_Jᵀ]_Y) [|Y| = |J|], by the indices of J and of Y."""
    all_subsets = subsets(len(lam))
    table = np.zeros((len(all_subsets), len(all_subsets)))
    for j, J in enumerate(all_subsets):
        p_J = np.prod([lam[i] if i in J else 1 - lam[i] for i in range(len(lam))])
        projection = V[:, list(J)] @ V[:, list(J)].T
        for y, Y in enumerate(all_subsets):
            if len(Y) == len(J):
                table[j, y] = p_J * max(np.linalg.det(_minor(projection, Y)), 0.0)
    return table


def posterior(joint: FloatArray, Y: Iterable[int]) -> FloatArray:
    """q(J | Y) = p(J, Y) / Σ_J' p(J', Y), over all J."""
    return normalised(joint[:, index(Y)])


def e_step_marginals(V: FloatArray, lam: FloatArray, Y: Iterable[int]) -> FloatArray:
    """q(j ∈ J | Y) for every j."""
    return item_marginals(posterior(joint_with_elementary(V, lam), Y))


def bound(
    q: Sequence[FloatArray], V: FloatArray, lam: FloatArray, sets: Sequence[Iterable[int]], weights: Sequence[float]
) -> float:
    """F(q, V, λ) = Σ_i w_i (E_q_i[log p(J, Y_i)] + H(q_i)), q_i a distribution over J, the weights over their sum."""
    joint = joint_with_elementary(V, lam)
    w = normalised(np.asarray(weights, dtype=float))
    terms = [_expected_log(q_i, joint[:, index(Y)]) - _expected_log(q_i, q_i) for q_i, Y in zip(q, sets, strict=True)]
    return float(w @ terms)


def kl(q: FloatArray, p: FloatArray) -> float:
    """KL(q ‖ p) = Σ q log(q / p); inf where q puts mass where p has none."""
    return _expected_log(q, q) - _expected_log(q, p)


def _expected_log(q: FloatArray, p: FloatArray) -> float:
    """Σ q log p, with 0 log 0 = 0."""
    with np.errstate(divide="ignore"):
        return float(np.sum(q[q > 0] * np.log(p[q > 0])))


def _restricted(P: FloatArray, keep: Sequence[bool]) -> FloatArray:
    return normalised(np.where(keep, P, 0.0))


def _minor(A: FloatArray, Y: Subset) -> FloatArray:
    return A[np.ix_(Y, Y)] if Y else np.empty((0, 0))


def _n_items(P: FloatArray) -> int:
    return len(P).bit_length() - 1


def _subsets_of(P: FloatArray) -> list[Subset]:
    return subsets(_n_items(P))
