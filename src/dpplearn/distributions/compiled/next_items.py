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
FLAGS = types.Array(types.boolean, 1, "C", readonly=True)
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
def schur_complements(matrix, basket, items, every, factor, half, left):  # type: ignore[no-untyped-def]
    """Write M_ii − M_iA M_A⁻¹ M_Ai of some items, or of every item; `half` gets L⁻¹ M_A,i and U⁻ᵀ M_i,Aᵀ."""
    k, j = len(basket), len(items)
    for i in range(j):  # row by row: a column of a large matrix has an entry in every page of memory
        row = matrix[items[i]]
        left[i] = row[items[i]]
        for p in range(k):
            half[k + p, i] = row[basket[p]]
    for p in range(k):
        row = matrix[basket[p]]
        for i in range(j):
            half[p, i] = row[i if every else items[i]]
        for q in range(p):
            down, across = factor[p, q], factor[q, p]
            for i in range(j):
                half[p, i] -= down * half[q, i]
                half[k + p, i] -= across * half[k + q, i]
        scale = 1 / factor[p, p]
        for i in range(j):
            half[k + p, i] *= scale
            left[i] -= half[p, i] * half[k + p, i]
    for i in range(j):
        left[i] = max(left[i], 0.0)


@inner
def next_of_one(terms, log_mass, basket, items, every, factor, half, lefts, log_w, x):  # type: ignore[no-untyped-def]
    """Write x_i = Σ_c w_c q_ci (M_ii − M_iA M_A⁻¹ M_Ai). Return log Σ_c exp(log_w_c) and a scale.

    log_w_c = log_mass_c + bias_c + Σ_A log q_c + log det M_A, and w_c = exp(log_w_c − scale).
    """
    matrices, log_q, q, bias = terms
    m, j, log_det = len(q), len(items), -np.inf
    for c in range(m):
        if c < len(matrices):
            log_det = factorise(matrices[c], basket, factor)
            if log_det > -np.inf:
                schur_complements(matrices[c], basket, items, every, factor, half, lefts[c])
        log_w[c] = log_mass[c] + bias[c] + log_det
        for i in range(len(basket)):
            log_w[c] += log_q[c, basket[i]]
    scale, total = max(np.max(log_w), -1e300), 0.0
    x[:j] = 0.0
    for c in range(m):
        weight = math.exp(log_w[c] - scale)
        if weight > 0.0:
            total += weight
            left, own = lefts[min(c, len(matrices) - 1)], q[c]
            for i in range(j):
                x[i] += weight * own[i if every else items[i]] * left[i]
    return scale + math.log(total) if total > 0.0 else -np.inf, scale


@inner
def least_pivot(matrix, basket, items, factor, left):  # type: ignore[no-untyped-def]
    """Return det M_A times the smallest Schur complement of the items that are not in A and have M_ii > 0.

    For M with a unit diagonal, det M_A ≤ e λ, with λ the smallest eigenvalue of M_A: the others have a mean of at most
    k/(k − 1). The relative error of a Schur complement is about eps divided by λ and by its size.
    """
    det, least = 1.0, 1.0
    for p in range(len(basket)):
        det *= factor[p, p]
    for i in range(len(items)):
        if left[i] < least and matrix[items[i], items[i]] > 0.0 and not np.any(basket == items[i]):
            least = left[i]
    return det * least


@inner
def choose(x, candidate, items, values):  # type: ignore[no-untyped-def]
    """Write the candidates with the largest x > 0, best first, equal ones by position, and x. Return how many."""
    found, any_item = 0, len(candidate) == 0
    for i in range(len(x)):
        if (any_item or candidate[i]) and x[i] > 0.0 and (found < len(items) or x[i] > values[found - 1]):
            place = min(found, len(items) - 1)
            while place > 0 and x[i] > values[place - 1]:
                items[place], values[place] = items[place - 1], values[place - 1]
                place -= 1
            items[place], values[place] = i, x[i]
            found = min(found + 1, len(items))
    return found


TERMS = types.Tuple([MATRICES, MATRIX, MATRIX, NUMBERS])  # type: ignore[no-untyped-call]
BEST = types.Tuple(  # type: ignore[no-untyped-call]
    [types.int64[:, ::1], OUT_NUMBERS, OUT_MATRIX, OUT_NUMBERS, OUT_MATRIX]
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
    """Write the k candidates with the largest x > 0 of `next_of_one`, best first, for the sets from start to stop.

    The terms M, log q, q and bias `of_scores` give x; those `of_probabilities`, if wanted, the same for P(A ∪ i ⊆ Y).
    Equal candidates are ordered by position. Unless it is empty, `least` gets the smallest `least_pivot` of each set,
    for a single component.
    """
    top, log_p, log_x, log_q, log_y = best
    C, T, q, k, largest = of_scores[0], of_probabilities[0], of_scores[2], top.shape[1], 1
    for row in range(start, stop):
        largest = max(largest, offsets[row + 1] - offsets[row])
    m, n = q.shape
    factor, half, lefts = np.empty((largest, largest)), np.empty((2 * largest, n)), np.empty((max(len(C), len(T)), n))
    x, values, y, log_w, everything = np.empty(n), np.empty(k), np.empty(n), np.empty(m), np.arange(n)
    for row in range(start, stop):
        basket = indices[offsets[row] : offsets[row + 1]]
        log_p[row], scale = next_of_one(of_scores, log_mass, basket, everything, True, factor, half, lefts, log_w, x)
        if len(least):
            least[row] = least_pivot(C[0], basket, everything, factor, lefts[0])
        for i in range(len(basket)):
            x[basket[i]] = 0.0
        found = choose(x, candidate, top[row], values) if k else 0
        items = top[row, :found]
        for place in range(found):
            log_x[row, place] = scale + math.log(values[place])
        if inclusion:
            log_q[row], scale = next_of_one(
                of_probabilities, log_mass, basket, items, False, factor, half, lefts, log_w, y
            )
            for place in range(found):
                log_y[row, place] = scale + math.log(y[place])
            if len(least):
                least[row] = min(least[row], least_pivot(T[0], basket, items, factor, lefts[0]))
        top[row, found:], log_x[row, found:], log_y[row, found:] = -1, np.nan, np.nan
