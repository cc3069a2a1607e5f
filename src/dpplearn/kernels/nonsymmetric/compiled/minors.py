"""The compiled inner loops over minors C_Y of a matrix whose symmetric part is at least I: elimination
without pivoting.

LANES sets of equal size at a time, entry for entry side by side, so that the innermost loops are vector instructions.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit, types

from dpplearn.data.blocks import LANES
from dpplearn.kernels.symmetric.compiled.signatures import (
    GROUPS,
    ITEMS,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_NUMBERS,
)

# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
OPTIONS: Any = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
part = njit(**OPTIONS)  # compiled with the loop that calls it, and kept with that


@part
def gather(C, items, first, k, minors):  # type: ignore[no-untyped-def]
    """C_Y of LANES sets."""
    for i in range(k):
        for j in range(k):
            for lane in range(LANES):
                row, column = items[first + i * LANES + lane], items[first + j * LANES + lane]
                minors[(i * k + j) * LANES + lane] = C[row, column]


@part
def eliminate(k, minors, logdet):  # type: ignore[no-untyped-def]
    """log det of LANES minors; overwrites them."""
    product = logdet
    for lane in range(LANES):
        product[lane] = 1.0
    total = [0.0] * LANES
    for p in range(k):
        diagonal = (p * k + p) * LANES
        for lane in range(LANES):
            product[lane] *= minors[diagonal + lane]
            if product[lane] > 1e200:
                total[lane] += math.log(product[lane])
                product[lane] = 1.0
        for i in range(p + 1, k):
            below, row = (i * k + p) * LANES, i * k * LANES
            for lane in range(LANES):
                minors[below + lane] /= minors[diagonal + lane]
            for j in range(p + 1, k):
                for lane in range(LANES):
                    minors[row + j * LANES + lane] -= minors[below + lane] * minors[(p * k + j) * LANES + lane]
    for lane in range(LANES):
        logdet[lane] = total[lane] + math.log(product[lane])


@part
def invert(k, minors, logdet):  # type: ignore[no-untyped-def]
    """log det of LANES minors, which become their inverses, by Gauss and Jordan's elimination in place."""
    total = [0.0] * LANES
    product = logdet
    for lane in range(LANES):
        product[lane] = 1.0
    for p in range(k):
        diagonal = (p * k + p) * LANES
        for lane in range(LANES):
            product[lane] *= minors[diagonal + lane]
            if product[lane] > 1e200:
                total[lane] += math.log(product[lane])
                product[lane] = 1.0
            minors[diagonal + lane] = 1.0 / minors[diagonal + lane]
        for j in range(k):
            if j != p:
                for lane in range(LANES):
                    minors[(p * k + j) * LANES + lane] *= minors[diagonal + lane]
        for i in range(k):
            if i == p:
                continue
            column, row = (i * k + p) * LANES, i * k * LANES
            for j in range(k):
                if j != p:
                    for lane in range(LANES):
                        minors[row + j * LANES + lane] -= minors[column + lane] * minors[(p * k + j) * LANES + lane]
            for lane in range(LANES):
                minors[column + lane] *= -minors[diagonal + lane]
    for lane in range(LANES):
        logdet[lane] = total[lane] + math.log(product[lane])


def _for_lanes(lanes: int) -> Any:
    """The loop over all sets. Numba finds its compiled code again by this file and by what the loop closes over: the
    number of lanes, which stands in another file."""

    @njit(
        types.float64(
            MATRIX, ITEMS, NUMBERS, GROUPS, types.int64, types.int64, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS, OUT_NUMBERS
        ),
        cache=True,
        **OPTIONS,
    )
    def minors_of(C, items, weights, groups, thread, threads, delta, each, work, logdet):  # type: ignore[no-untyped-def]
        """A thread's part of Σ w log det C_Y; unless they are empty, Σ w C_Y⁻ᵀ is added to delta, and every log det C_Y
        written to `each`. `work` has room for LANES minors of the largest size."""
        _ = lanes
        total = 0.0
        for group in range(len(groups)):
            k, first_item, first, n_blocks = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
            if k == 0:
                continue
            for block in range(n_blocks * thread // threads, n_blocks * (thread + 1) // threads):
                item, place = first_item + block * k * LANES, first + block * LANES
                gather(C, items, item, k, work)
                if len(delta):
                    invert(k, work, logdet)
                else:
                    eliminate(k, work, logdet)
                for lane in range(LANES):
                    total += weights[place + lane] * logdet[lane]
                if len(each):
                    for lane in range(LANES):
                        each[place + lane] = logdet[lane]
                if len(delta):
                    for i in range(k):
                        for j in range(k):
                            for lane in range(LANES):
                                row, column = items[item + j * LANES + lane], items[item + i * LANES + lane]
                                delta[row, column] += weights[place + lane] * work[(i * k + j) * LANES + lane]
        return total

    return minors_of


minors_of = _for_lanes(LANES)
