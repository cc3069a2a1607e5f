"""Compiled loop over minors of the bordered matrix, for kernels with eigenvalues near 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS, SETS

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}


@njit(types.void(MATRIX, NUMBERS, SETS, NUMBERS, types.float64, OUT_NUMBERS, OUT_MATRIX, types.boolean), **OPTIONS)
def bordered(C, log_scale, sets, weights, smallest, logdet, delta, want_delta):  # type: ignore[no-untyped-def]
    """Write log|det| of the minors Y ∪ border of an indefinite C and add their weighted inverses to delta, by
    Gauss–Jordan elimination with row pivots.

    The last m rows of C, those after the items that log_scale counts, are the border. A set whose two smallest
    pivots multiply to less than `smallest` is left out, with a log det of −inf.
    """
    n, k = sets.shape
    n_items = len(log_scale)
    m = len(C) - n_items
    size = k + m
    members = np.empty(size, np.int64)
    work = np.empty((size, size))
    swaps = np.empty(size, np.int64)
    for a in range(m):
        members[k + a] = n_items + a
    for row in range(n):
        value = 0.0
        for i in range(k):
            members[i] = sets[row, i]
            value += log_scale[sets[row, i]]
        for i in range(size):
            for j in range(size):
                work[i, j] = C[members[i], members[j]]
        left_out = False
        least = second = 1.0
        for j in range(size):
            best = j
            for i in range(j + 1, size):
                if abs(work[i, j]) > abs(work[best, j]):
                    best = i
            pivot = work[best, j]
            if abs(pivot) < least:
                least, second = abs(pivot), least
            elif abs(pivot) < second:
                second = abs(pivot)
            if not (least * second >= smallest and abs(pivot) >= 0):  # the last is false for NaN
                left_out = True
                break
            swaps[j] = best
            if best != j:
                for c in range(size):
                    work[j, c], work[best, c] = work[best, c], work[j, c]
            value += math.log(abs(pivot))
            work[j, j] = 1.0
            for c in range(size):
                work[j, c] /= pivot
            for i in range(size):
                if i != j and (want_delta or i > j):
                    factor = work[i, j]
                    work[i, j] = 0.0
                    for c in range(size):
                        work[i, c] -= factor * work[j, c]
        logdet[row] = -np.inf if left_out else value
        if want_delta and not left_out:
            for j in range(size - 1, -1, -1):
                if swaps[j] != j:
                    for i in range(size):
                        work[i, j], work[i, swaps[j]] = work[i, swaps[j]], work[i, j]
            for i in range(size):
                for j in range(i, size):
                    delta[members[i], members[j]] += weights[row] * 0.5 * (work[i, j] + work[j, i])
