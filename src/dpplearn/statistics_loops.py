"""The compiled inner loops of the statistics. Imported only when first used: numba is slow to load.

One SIMD lane a set: the innermost loops run over a block of sets of equal size, so that every arithmetic
operation works on several sets at once, and nothing is allocated for a basket.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

MATRIX = types.Array(types.float64, 2, "C", readonly=True)
VECTOR = types.Array(types.float64, 1, "C", readonly=True)
SETS = types.Array(types.int32, 2, "C", readonly=True)
OUT_MATRIX = types.float64[:, ::1]
OUT_VECTOR = types.float64[::1]

# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
compiled: Any = njit(
    types.void(MATRIX, VECTOR, SETS, VECTOR, OUT_VECTOR, OUT_MATRIX, types.boolean),
    nogil=True,
    cache=True,
    fastmath={"contract"},
    error_model="numpy",
)


@compiled
def definite(C, log_scale, sets, weights, logdet, delta, want_delta):  # type: ignore[no-untyped-def]
    """log det and weighted inverses of the minors of C, positive semidefinite with a unit diagonal.

    Sweeps every pivot of each minor in turn, which leaves minus the inverse. The weighted inverses are added
    into the upper triangle of delta. A pivot of rounding size makes the determinant zero.
    """
    n, k = sets.shape
    lanes = 64 if k <= 8 else (32 if k <= 16 else 16)
    smallest = k * 2.220446049250313e-16
    work = np.empty((k, k, lanes))
    column = np.empty((k, lanes))
    ratio = np.empty(lanes)
    product = np.empty(lanes)
    total = np.empty(lanes)
    dead = np.empty(lanes, np.bool_)
    for start in range(0, n, lanes):
        block = min(lanes, n - start)
        for i in range(k):
            for j in range(i + 1):
                for s in range(block):
                    work[i, j, s] = C[sets[start + s, i], sets[start + s, j]]
                for s in range(block, lanes):
                    work[i, j, s] = 1.0 if i == j else 0.0
        for s in range(lanes):
            product[s] = 1.0
            total[s] = 0.0
            dead[s] = False
        for j in range(k):
            for s in range(lanes):
                pivot = work[j, j, s]
                if not pivot >= smallest:
                    dead[s] = True
                    pivot = 1.0
                product[s] *= pivot
                if product[s] < 1e-200:  # pivots lie between 1e-16 and 1, so the product cannot leave the range
                    total[s] += math.log(product[s])
                    product[s] = 1.0
                work[j, j, s] = 1.0 / pivot
            first = 0 if want_delta else j + 1
            for i in range(first, k):
                if i < j:
                    for s in range(lanes):
                        column[i, s] = work[j, i, s]
                elif i > j:
                    for s in range(lanes):
                        column[i, s] = work[i, j, s]
            for i in range(first, k):
                if i == j:
                    continue
                for s in range(lanes):
                    ratio[s] = column[i, s] * work[j, j, s]
                for c in range(first, i + 1):
                    if c != j:
                        for s in range(lanes):
                            work[i, c, s] -= ratio[s] * column[c, s]
                if i < j:
                    for s in range(lanes):
                        work[j, i, s] = ratio[s]
                else:
                    for s in range(lanes):
                        work[i, j, s] = ratio[s]
            for s in range(lanes):
                work[j, j, s] = -work[j, j, s]
        for s in range(block):
            if dead[s]:
                logdet[start + s] = -np.inf
                continue
            value = total[s] + math.log(product[s])
            for i in range(k):
                value += log_scale[sets[start + s, i]]
            logdet[start + s] = value
            if want_delta:
                weight = -weights[start + s]
                for j in range(k):
                    row = sets[start + s, j]
                    for i in range(j, k):
                        delta[row, sets[start + s, i]] += weight * work[i, j, s]
