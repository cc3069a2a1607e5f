"""Compiled loop over baskets and segments: the responsibilities of segments for baskets."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS


@njit(
    types.float64(
        *(ITEMS, COUNTS, NUMBERS, MATRIX, NUMBERS, types.int64, types.int64, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS)
    ),
    nogil=True,
    cache=True,
    fastmath={"contract"},  # allows fused multiply-add; the flags that assume away NaN and infinity stay off
    error_model="numpy",
)
def responsibilities(indices, offsets, weights, log_odds, bias, start, stop, counts, shares, each):  # type: ignore[no-untyped-def]
    """Return Σ w log Σ_c exp(bias_c + log_odds_c · x_Y) over the baskets from start to stop.

    With responsibilities r_c, and unless they are empty, counts[i, c] += Σ w r_c over the baskets that contain i,
    shares[c] += Σ w r_c, and each[basket] is the logarithm. `log_odds` is (n_items, n_segments), contiguous per item.
    """
    m = len(bias)
    r = np.empty(m)
    total = 0.0
    for basket in range(start, stop):
        for c in range(m):
            r[c] = bias[c]
        for place in range(offsets[basket], offsets[basket + 1]):
            row = log_odds[indices[place]]
            for c in range(m):
                r[c] += row[c]
        highest = r[0]
        for c in range(1, m):
            highest = max(highest, r[c])
        if highest == -np.inf:  # impossible in every segment
            if weights[basket] > 0:
                total = -np.inf
            if len(each):
                each[basket] = -np.inf
            continue
        sum_ = 0.0
        for c in range(m):
            r[c] = math.exp(r[c] - highest)
        for c in range(m):
            sum_ += r[c]
        value = highest + math.log(sum_)
        total += weights[basket] * value
        if len(each):
            each[basket] = value
        if len(counts):
            scale = weights[basket] / sum_
            for c in range(m):
                r[c] *= scale
                shares[c] += r[c]
            for place in range(offsets[basket], offsets[basket + 1]):
                row = counts[indices[place]]
                for c in range(m):
                    row[c] += r[c]
    return total
