"""The compiled inner loops over baskets and segments: how likely each segment is, given a basket."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from dpplearn.distributions.compiled.signatures import (
    ITEMS,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_NUMBERS,
)

OFFSETS = types.Array(types.int64, 1, "C", readonly=True)


# e^x = 2^k e^r, k whole and |r| at most log(2)/2, where the series to the 13th power ends below 1e-17.
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDS = 1.5 * 2.0**52  # a small number that is added to it becomes whole, and is in its last bits
ONES = 1023  # the exponent of 1, as it stands in the bits of a number
LOWEST = -700.0  # below, e^x is taken for e^-700, which is nothing beside the 1 of the likeliest segment
SERIES = tuple(1 / math.factorial(power) for power in range(13, -1, -1))


@intrinsic
def power_of_two(typing, rounded):  # type: ignore[no-untyped-def]
    """2^k of a k that was added to ROUNDS + ONES."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(arguments[0], ir.IntType(64))
        return builder.bitcast(builder.shl(bits, ir.IntType(64)(52)), ir.DoubleType())

    return types.float64(types.float64), emit


@njit(nogil=True, fastmath={"contract"}, error_model="numpy", inline="always")
def exp(x):  # type: ignore[no-untyped-def]
    """e^x of an x that is not positive, in instructions that the compiler can vectorise, which a call is not. NaN
    stays."""
    x = LOWEST if x < LOWEST else x
    k = (x * LOG2_E + ROUNDS) - ROUNDS
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = SERIES[0]
    for term in SERIES[1:]:
        total = total * r + term
    return total * power_of_two(k + (ROUNDS + ONES))  # type: ignore[call-arg]


def compiled(signature: Any) -> Any:
    # contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
    return njit(signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


@compiled(
    types.float64(
        *(ITEMS, OFFSETS, NUMBERS, MATRIX, NUMBERS, types.int64, types.int64, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS)
    )
)
def responsibilities(indices, offsets, weights, log_odds, bias, start, stop, counts, shares, each):  # type: ignore[no-untyped-def]
    """Σ w log Σ_c exp(bias_c + log_odds_c · x_Y) over the baskets from start to stop, and unless they are empty:
    counts[i, c] += Σ w r_c over the baskets that hold i, shares[c] += Σ w r_c, and each basket's own logarithm.

    `log_odds` is (n_items, n_segments): what a basket reads of an item lies together.
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
            r[c] = exp(r[c] - highest)
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
