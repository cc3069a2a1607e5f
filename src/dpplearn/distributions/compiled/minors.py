"""Compiled loops over minors C_Y of a matrix whose symmetric part is at least I: elimination without pivoting.

LANES sets of equal size are eliminated at a time, with their entries side by side, so that the innermost loops become
vector instructions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from dpplearn.data import blocks
from dpplearn.distributions.compiled.definite import INT, constant, load, loop, store
from dpplearn.distributions.compiled.signatures import (
    GROUPS,
    ITEMS,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_NUMBERS,
)

LANES = 4
# numba compiles again when this file changes, but not when a constant of another file does.
assert LANES == blocks.LANES

# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
OPTIONS: Any = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
part = njit(**OPTIONS)  # compiled with the loop that calls it, and kept with that


@part
def place_of(items, first, i, lane):  # type: ignore[no-untyped-def]
    """Return item i of a set, unsigned: for signed indices numba also handles those that count from the end."""
    return np.uint64(items[first + i * LANES + lane])


@part
def gather(C, items, first, k, minors):  # type: ignore[no-untyped-def]
    """Write C_Y of LANES sets."""
    for i in range(k):
        for j in range(k):
            for lane in range(LANES):
                row, column = place_of(items, first, i, lane), place_of(items, first, j, lane)
                minors[(i * k + j) * LANES + lane] = C[row, column]


@intrinsic
def pivot_on(typing, minors, k, p):  # type: ignore[no-untyped-def]
    """Eliminate row and column p of LANES minors of k items in place (Gauss–Jordan)."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, k, p = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        pivots = builder.mul(p, k)
        diagonal = builder.add(pivots, p)
        inverse = 1.0 / load(builder, data, diagonal)
        store(builder, data, diagonal, constant(builder, 1.0))
        with loop(builder, pivots, builder.add(pivots, k)) as place:
            store(builder, data, place, load(builder, data, place) * inverse)
        for start, stop in ((INT(0), p), (builder.add(p, INT(1)), k)):
            with loop(builder, start, stop) as i:
                row = builder.mul(i, k)
                column = builder.add(row, p)
                factor = load(builder, data, column)
                store(builder, data, column, constant(builder, 0.0))
                with loop(builder, INT(0), k) as j:
                    place = builder.add(row, j)
                    taken = factor * load(builder, data, builder.add(pivots, j))
                    store(builder, data, place, load(builder, data, place) - taken)
        return context.get_dummy_value()

    return types.void(minors, types.int64, types.int64), emit


@part
def add_logs(a, b, c, d, logdet):  # type: ignore[no-untyped-def]
    logdet[0] += math.log(a)
    logdet[1] += math.log(b)
    logdet[2] += math.log(c)
    logdet[3] += math.log(d)


@part
def invert(k, minors, logdet):  # type: ignore[no-untyped-def]
    """Invert LANES minors in place and write their log det."""
    a = b = c = d = 1.0  # products of pivots, one per lane
    for lane in range(LANES):
        logdet[lane] = 0.0
    for p in range(k):
        pivot = (p * k + p) * LANES
        a *= minors[pivot]
        b *= minors[pivot + 1]
        c *= minors[pivot + 2]
        d *= minors[pivot + 3]
        if max(a, b, c, d) > 1e200:
            add_logs(a, b, c, d, logdet)
            a = b = c = d = 1.0
        pivot_on(minors, k, p)  # type: ignore[call-arg]
    add_logs(a, b, c, d, logdet)


@part
def scatter(k, minors, items, first, weights, place, delta):  # type: ignore[no-untyped-def]
    """Add the transposed minors of LANES sets to delta with their weights."""
    for i in range(k):
        for j in range(k):
            for lane in range(LANES):
                row, column = place_of(items, first, j, lane), place_of(items, first, i, lane)
                delta[row, column] += weights[place + lane] * minors[(i * k + j) * LANES + lane]


@njit(
    types.void(MATRIX, ITEMS, NUMBERS, GROUPS, types.int64, types.int64, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS),
    cache=True,
    **OPTIONS,
)
def minors_of(C, items, weights, groups, thread, threads, delta, logdets, work):  # type: ignore[no-untyped-def]
    """Write a thread's part of log det C_Y of all sets. Unless it is empty, add Σ w C_Y⁻ᵀ to delta.

    `work` is a buffer for LANES minors of the largest size.
    """
    for group in range(len(groups)):
        k, first_item, first, n_blocks = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
        if k == 0:
            continue
        for block in range(n_blocks * thread // threads, n_blocks * (thread + 1) // threads):
            item, place = first_item + block * k * LANES, first + block * LANES
            gather(C, items, item, k, work)
            invert(k, work, logdets[place : place + LANES])
            if len(delta):
                scatter(k, work, items, item, weights, place, delta)
