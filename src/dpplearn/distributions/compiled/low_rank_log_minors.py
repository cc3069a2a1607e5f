"""The compiled loop over the minors of I + V Zᵀ, in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, OUT_NUMBERS

SINGLES = types.Array(types.float32, 2, "C", readonly=True)
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(MATRIX, SINGLES, ITEMS, COUNTS, types.int64, types.int64, OUT_NUMBERS), **OPTIONS)
def log_minors(V, Z, items, offsets, start, stop, each):  # type: ignore[no-untyped-def]
    """log det (I + V Zᵀ)_Y of the sets from start to stop; every pivot is at least 1."""
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
