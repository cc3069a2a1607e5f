"""Loops over sets for the items that may be added to each, under components √q_c M_c √q_c."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS

MATRICES = types.Array(types.float64, 3, "C", readonly=True)
CANDIDATES = types.Array(types.int64, 2, "C", readonly=True)
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
def left_of_all(matrix, basket, factor, half, left):  # type: ignore[no-untyped-def]
    """Write M_ii − M_iA M_A⁻¹ M_Ai for every item i; `half` gets L⁻¹ M_A,all and U⁻ᵀ M_all,Aᵀ."""
    n, k = len(matrix), len(basket)
    for i in range(n):
        left[i] = matrix[i, i]
    for p in range(k):
        row = matrix[basket[p]]
        for i in range(n):
            half[p, i] = row[i]
            half[k + p, i] = matrix[i, basket[p]]
        for q in range(p):
            down, across = factor[p, q], factor[q, p]
            for i in range(n):
                half[p, i] -= down * half[q, i]
                half[k + p, i] -= across * half[k + q, i]
        scale = 1 / factor[p, p]
        for i in range(n):
            half[k + p, i] *= scale
            left[i] -= half[p, i] * half[k + p, i]


@inner
def left_of_one(matrix, basket, factor, i, down, across):  # type: ignore[no-untyped-def]
    """Return M_ii − M_iA M_A⁻¹ M_Ai for one item."""
    left = matrix[i, i]
    for p in range(len(basket)):
        d, a = matrix[basket[p], i], matrix[i, basket[p]]
        for q in range(p):
            d -= factor[p, q] * down[q]
            a -= factor[q, p] * across[q]
        down[p], across[p] = d, a / factor[p, p]
        left -= down[p] * across[p]
    return left


@inner
def left_of(matrix, basket, items, every, factor, half, left):  # type: ignore[no-untyped-def]
    """Write the Schur complements of all items, or of candidates, of which −1 has none."""
    if every:
        left_of_all(matrix, basket, factor, half, left)
    else:
        for place in range(len(items)):
            if items[place] >= 0:
                left[place] = left_of_one(matrix, basket, factor, items[place], half[0], half[1])
            else:
                left[place] = 0.0


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
    """For the sets from start to stop: log_p[c] = bias_c + Σ_A log q_c + log det M_A, and with
    w_c = exp(log_mass_c + log_p[c] − scale), x_i = Σ_c w_c q_ci (M_ii − M_iA M_A⁻¹ M_Ai), 0 for the items of A.

    With one matrix for all components, one elimination per set serves all of them.
    """
    m, n = q.shape
    j, largest = x.shape[1], 2
    for row in range(start, stop):
        largest = max(largest, offsets[row + 1] - offsets[row])
    factor, half, left = np.empty((largest, largest)), np.empty((2 * largest, max(n, largest))), np.empty(j)
    weights, log_dets, lefts = np.empty(m), np.empty(m), np.empty((1 if len(matrices) == 1 else m, j))
    nothing = np.empty(0, np.int64)
    for row in range(start, stop):
        basket = indices[offsets[row] : offsets[row + 1]]
        items = nothing if every else candidates[row]
        for c in range(m):
            if c < len(matrices):
                log_dets[c] = factorise(matrices[c], basket, factor)
                if log_dets[c] > -np.inf:
                    left_of(matrices[c], basket, items, every, factor, half, lefts[c])
            else:
                log_dets[c] = log_dets[0]
            log_p[row, c] = bias[c] + log_dets[c]
            for i in range(len(basket)):
                log_p[row, c] += log_q[c, basket[i]]
        scale = -np.inf
        for c in range(m):
            weights[c] = log_mass[c] + log_p[row, c]
            scale = max(scale, weights[c])
        scales[row] = scale if scale > -np.inf else 0.0
        for place in range(j):
            left[place] = 0.0
        for c in range(m):
            weight = math.exp(weights[c] - scales[row])
            if not weight > 0.0:
                continue
            own = lefts[min(c, len(matrices) - 1)]
            if every:
                for i in range(n):
                    left[i] += weight * q[c, i] * max(own[i], 0.0)
            else:
                for place in range(j):
                    if items[place] >= 0:
                        left[place] += weight * q[c, items[place]] * max(own[place], 0.0)
        for place in range(j):
            x[row, place] = left[place]
        for i in range(len(basket)):
            if every:
                x[row, basket[i]] = 0.0
            else:
                for place in range(j):
                    if items[place] == basket[i]:
                        x[row, place] = 0.0
