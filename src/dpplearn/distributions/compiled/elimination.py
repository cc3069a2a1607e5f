"""Compiled eliminations, one set at a time: nested minors, and minors of I + V Zᵀ in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, OUT_NUMBERS

SINGLES = types.Array(types.float32, 2, "C", readonly=True)
MATRICES = types.Array(types.float64, 3, "C", readonly=True)
ORDERS = types.Array(types.int64, 2, "C", readonly=True)
OUT = types.float64[:, :, ::1]
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(MATRICES, ORDERS, OUT, OUT), **OPTIONS)
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


@njit(types.void(MATRIX, SINGLES, ITEMS, COUNTS, types.int64, types.int64, OUT_NUMBERS), **OPTIONS)
def low_rank_log_minors(V, Z, items, offsets, start, stop, each):  # type: ignore[no-untyped-def]
    """Write log det (I + V Zᵀ)_Y of the sets from start to stop; every pivot is at least 1."""
    largest = 0
    for basket in range(start, stop):
        largest = max(largest, offsets[basket + 1] - offsets[basket])
    minor = np.empty((largest, largest))
    for basket in range(start, stop):
        members = items[offsets[basket] : offsets[basket + 1]]
        k = len(members)
        for i in range(k):
            v, row = V[members[i]], minor[i]
            for j in range(k):
                z = Z[members[j]]
                sum_ = 0.0
                for p in range(len(v)):
                    sum_ += v[p] * z[p]
                row[j] = sum_
            row[i] += 1.0
        logdet = 0.0
        for p in range(k):
            pivot = minor[p]
            logdet += math.log(pivot[p])
            for i in range(p + 1, k):
                row = minor[i]
                by = row[p] / pivot[p]
                for j in range(p + 1, k):
                    row[j] -= by * pivot[j]
        each[basket] = logdet
