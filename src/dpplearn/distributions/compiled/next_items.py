"""Loops over sets for the items that may be added to each, under components √q_c M_c √q_c with dense matrices M_c.

With one matrix M for all components, one elimination per set serves all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS

MATRICES = types.Array(types.float64, 3, "C", readonly=True)
CANDIDATES = types.Array(types.int64, 2, "C", readonly=True)
FLAGS = types.Array(types.boolean, 1, "C", readonly=True)
OUT = types.float64[:, :, ::1]
OPTIONS: Any = {"nogil": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}
inner = njit(**OPTIONS)  # compiled, and cached, with the loop that calls it


@inner
def factorise(matrix, basket, factor):  # type: ignore[no-untyped-def]
    """Write the LU decomposition of M_A, lower with a unit diagonal, and return log det M_A; −inf if a pivot is ≤ 0."""
    k = len(basket)
    log_det = 0.0
    for i in range(k):
        row = matrix[basket[i]]
        for j in range(k):
            factor[i, j] = row[basket[j]]
    for p in range(k):
        if not factor[p, p] > 0:
            return -np.inf
        log_det += math.log(factor[p, p])
        for i in range(p + 1, k):
            factor[i, p] /= factor[p, p]
            for j in range(p + 1, k):
                factor[i, j] -= factor[i, p] * factor[p, j]
    return log_det


@inner
def gather(matrix, basket, items, every, half, left):  # type: ignore[no-untyped-def]
    """Write M_A,i and M_i,Aᵀ of all items or of candidates into the rows of `half`, and M_ii into `left`."""
    k, j = len(basket), len(left)
    for i in range(j):
        left[i] = matrix[i, i] if every else matrix[items[i], items[i]]
    for p in range(k):
        row = matrix[basket[p]]
        for i in range(j):
            half[p, i] = row[i if every else items[i]]
            half[k + p, i] = matrix[i if every else items[i], basket[p]]


@inner
def schur_complements(matrix, basket, items, every, factor, half, left):  # type: ignore[no-untyped-def]
    """Write M_ii − M_iA M_A⁻¹ M_Ai of all items or of candidates; `half` gets L⁻¹ M_A,i and U⁻ᵀ M_i,Aᵀ."""
    k, j = len(basket), len(left)
    gather(matrix, basket, items, every, half, left)
    for p in range(k):
        for q in range(p):
            down, across = factor[p, q], factor[q, p]
            for i in range(j):
                half[p, i] -= down * half[q, i]
                half[k + p, i] -= across * half[k + q, i]
        scale = 1 / factor[p, p]
        for i in range(j):
            half[k + p, i] *= scale
            left[i] -= half[p, i] * half[k + p, i]


@inner
def next_of_one(matrices, log_q, q, bias, log_mass, basket, items, every, factor, half, lefts, log_p, x):  # type: ignore[no-untyped-def]
    """Write log_p_c = bias_c + Σ_A log q_c + log det M_A, and with w_c = exp(log_mass_c + log_p_c − scale),
    x_i = Σ_c w_c q_ci (M_ii − M_iA M_A⁻¹ M_Ai). Return the scale, and scale + log Σ_c w_c."""
    m, j = len(q), len(x)
    scale, log_det = -np.inf, 0.0
    for c in range(m):
        if c < len(matrices):
            log_det = factorise(matrices[c], basket, factor)
            if log_det > -np.inf:
                schur_complements(matrices[c], basket, items, every, factor, half, lefts[c, :j])
        log_p[c] = bias[c] + log_det
        for i in range(len(basket)):
            log_p[c] += log_q[c, basket[i]]
        scale = max(scale, log_mass[c] + log_p[c])
    scale = scale if scale > -np.inf else 0.0
    for i in range(j):
        x[i] = 0.0
    total = 0.0
    for c in range(m):
        weight = math.exp(log_mass[c] + log_p[c] - scale)
        if weight > 0.0:
            total += weight
            left, own = lefts[min(c, len(matrices) - 1)], q[c]
            for i in range(j):
                x[i] += weight * own[i if every else items[i]] * max(left[i], 0.0)
    return scale, scale + math.log(total) if total > 0.0 else -np.inf


@inner
def largest_set(offsets, start, stop):  # type: ignore[no-untyped-def]
    """Return the size of the largest set, at least 1."""
    largest = 1
    for row in range(start, stop):
        largest = max(largest, offsets[row + 1] - offsets[row])
    return largest


@njit(
    types.void(
        *(MATRICES, MATRIX, MATRIX, NUMBERS, NUMBERS, ITEMS, COUNTS, CANDIDATES, types.boolean),
        *(types.int64, types.int64, OUT_MATRIX, OUT_NUMBERS, OUT_MATRIX),
    ),
    cache=True,
    **OPTIONS,
)
def next_items(  # type: ignore[no-untyped-def]
    matrices, log_q, q, bias, log_mass, indices, offsets, candidates, every, start, stop, log_p, scales, x
):
    """Write log_p, the scale and x of `next_of_one` for the sets from start to stop; x is 0 for the items of A.

    Candidates of −1 have x = 0.
    """
    j, largest = x.shape[1], largest_set(offsets, start, stop)
    factor, half = np.empty((largest, largest)), np.empty((2 * largest, j))
    lefts, items = np.empty((len(matrices), j)), np.empty(j, np.int64)
    for row in range(start, stop):
        basket = indices[offsets[row] : offsets[row + 1]]
        if not every:
            for place in range(j):
                items[place] = max(candidates[row, place], 0)
        scales[row], _ = next_of_one(
            matrices, log_q, q, bias, log_mass, basket, items, every, factor, half, lefts, log_p[row], x[row]
        )
        for i in range(len(basket)):
            if every:
                x[row, basket[i]] = 0.0
        if not every:
            for place in range(j):
                if candidates[row, place] < 0 or np.any(basket == candidates[row, place]):
                    x[row, place] = 0.0


@inner
def least_pivot(matrix, basket, items, every, factor, left):  # type: ignore[no-untyped-def]
    """Return det M_A times the smallest Schur complement of the items that are not in A and have M_ii > 0.

    For M with a unit diagonal, det M_A ≤ e λ, with λ the smallest eigenvalue of M_A: the others have a mean of at most
    k/(k − 1). The relative error of a Schur complement is about eps divided by λ and by its size.
    """
    det, least = 1.0, 1.0
    for p in range(len(basket)):
        det *= factor[p, p]
    for i in range(len(left)):
        item = i if every else items[i]
        if left[i] < least and matrix[item, item] > 0.0 and not np.any(basket == item):
            least = left[i]
    return det * least


@inner
def comes_before(x, y, items, a, b):  # type: ignore[no-untyped-def]
    """Return whether candidate a ranks above candidate b: by x, then by y, then by position."""
    if x[a] != x[b]:
        return x[a] > x[b]
    if y[a] != y[b]:
        return y[a] > y[b]
    return items[a] < items[b]


TERMS = types.Tuple([MATRICES, MATRIX, MATRIX, NUMBERS])  # type: ignore[no-untyped-call]
BEST = types.Tuple(  # type: ignore[no-untyped-call]
    [types.int64[:, ::1], OUT_NUMBERS, OUT_NUMBERS, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS, OUT_MATRIX]
)


@njit(
    types.void(
        *(TERMS, TERMS, NUMBERS, ITEMS, COUNTS, FLAGS, types.boolean, types.int64, types.int64, OUT_NUMBERS, BEST)
    ),
    cache=True,
    **OPTIONS,
)
def top_items(  # type: ignore[no-untyped-def]
    of_scores, of_probabilities, log_mass, indices, offsets, candidate, inclusion, start, stop, least, best
):
    """Write the k candidates with the highest x > 0 of `next_of_one`, best first, for the sets from start to stop.

    M, log q, q and bias `of_scores` give x; those `of_probabilities` give y, the same for P(A ∪ i ⊆ Y). Ties are broken
    by y, if `inclusion` is true, then by position. Unless it is empty, `least` gets the smallest `least_pivot` of each
    set, for a single component.
    """
    C, log_odds, odds, bias = of_scores
    T, log_q, q, no_bias = of_probabilities
    top, log_p, scales, top_x, log_q_total, scales_q, top_y = best
    n, k, largest = odds.shape[1], top.shape[1], largest_set(offsets, start, stop)
    factor, half = np.empty((largest, largest)), np.empty((2 * largest, n))
    lefts = np.empty((max(len(C), len(T)), n))
    x, sorted_x, y, of_components = np.empty(n), np.empty(n), np.zeros(n), np.empty(len(odds))
    items, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(start, stop):
        basket = indices[offsets[row] : offsets[row + 1]]
        scales[row], log_p[row] = next_of_one(
            C, log_odds, odds, bias, log_mass, basket, items, True, factor, half, lefts, of_components, x
        )
        if len(least):
            least[row] = least_pivot(C[0], basket, items, True, factor, lefts[0])
        for i in range(len(basket)):
            x[basket[i]] = 0.0
        positive = 0
        for i in range(n):
            if candidate[i] and x[i] > 0.0:
                sorted_x[positive] = x[i]
                positive += 1
        last = 0.0
        if k and k < positive:
            last = np.partition(sorted_x[:positive], positive - k)[positive - k]
        j = 0  # candidates that are among the first k, or tie with the last of them
        for i in range(n):
            if k and candidate[i] and x[i] > 0.0 and x[i] >= last:
                items[j], x[j] = i, x[i]
                j += 1
        if inclusion:
            scales_q[row], log_q_total[row] = next_of_one(
                T, log_q, q, no_bias, log_mass, basket, items[:j], False, factor, half, lefts, of_components, y[:j]
            )
            if len(least):
                least[row] = min(least[row], least_pivot(T[0], basket, items, False, factor, lefts[0, :j]))
        for a in range(j):  # insertion sort
            b = a
            while b > 0 and comes_before(x, y, items, a, order[b - 1]):
                order[b] = order[b - 1]
                b -= 1
            order[b] = a
        for place in range(min(j, k)):
            a = order[place]
            top[row, place], top_x[row, place], top_y[row, place] = items[a], x[a], y[a]
        for place in range(j, k):
            top[row, place], top_x[row, place], top_y[row, place] = -1, np.nan, np.nan


@njit(types.void(MATRICES, CANDIDATES, OUT, OUT), cache=True, **OPTIONS)
def nested_minors(matrices, orders, log_dets, left):  # type: ignore[no-untyped-def]
    """Write log det M_A and M_ii − M_iA M_A⁻¹ M_Ai for every prefix A of every order and every matrix M.

    `matrices` is (g, k + 1, k + 1) with the further item i last, `orders` (o, k), the results (o, k + 1, g). After p
    steps of elimination in this order, the last diagonal entry is the Schur complement of the first p items, so one
    elimination serves all prefixes. Every M has a symmetric part of at least I: no pivoting.
    """
    g, size = matrices.shape[0], matrices.shape[1]
    k = size - 1
    work = np.empty((size, size))
    for o in range(len(orders)):
        for c in range(g):
            for i in range(size):
                row = orders[o, i] if i < k else k
                for j in range(size):
                    work[i, j] = matrices[c, row, orders[o, j] if j < k else k]
            log_det = 0.0
            log_dets[o, 0, c] = 0.0
            left[o, 0, c] = work[k, k]
            for p in range(k):
                log_det += math.log(work[p, p]) if work[p, p] > 0 else -np.inf
                for i in range(p + 1, size):
                    factor = work[i, p] / work[p, p]
                    for j in range(p + 1, size):
                        work[i, j] -= factor * work[p, j]
                log_dets[o, p + 1, c] = log_det
                left[o, p + 1, c] = max(work[k, k], 0.0)
