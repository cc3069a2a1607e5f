"""The compiled inner loops of the statistics.

One SIMD lane per set: every arithmetic operation works on LANES sets of equal size, and nothing is allocated for a
basket. A small size has straight-line code of its own, in which everything is a register or a slot of the stack;
the other sizes share one set of loops.

C is L scaled to a unit diagonal, so that a pivot is compared with 1; the rows and columns of items that cannot occur
are NaN. A minor is factored as C_Y = l D lᵀ, l unit lower triangular, and its inverse is TᵀD⁻¹T with T = −l⁻¹.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from dpplearn.data import blocks
from dpplearn.data.blocks import LANES
from dpplearn.distributions.compiled import any_sets as for_any
from dpplearn.distributions.compiled import lanes, sets
from dpplearn.distributions.compiled import small_sets as for_small
from dpplearn.distributions.compiled.any_sets import any_sets
from dpplearn.distributions.compiled.lanes import INT
from dpplearn.distributions.compiled.sets import Arrays
from dpplearn.distributions.compiled.signatures import (
    GROUPS,
    ITEMS,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_NUMBERS,
    TWO_SUMS,
)
from dpplearn.distributions.compiled.small_sets import SMALL, small_sets

TILE = 16
# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}


def _sets_of_one_size(want_delta: bool) -> Any:
    """The intrinsic for blocks start to stop of sets of k ≥ 2 items, whose first item and weight are at item and place.

    `out` is delta, or the log determinants unless it is empty; `work` begins with the sums.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = Arrays(context, builder, signature, arguments, not want_delta)
        with builder.if_else(builder.icmp_signed("<=", arrays.k, INT(SMALL))) as (small, other):
            with small:
                small_sets(builder, arrays, want_delta)
            with other:
                any_sets(builder, arrays, want_delta)
        return context.get_dummy_value()

    @intrinsic
    def sets_of_one_size(typing: Any, C, items, item, weights, place, k, smallest, start, stop, out, work):  # type: ignore[no-untyped-def]
        return types.void(C, items, item, weights, place, k, smallest, start, stop, out, work), emit

    return sets_of_one_size


_add_inverses = _sets_of_one_size(want_delta=True)
_take_logarithms = _sets_of_one_size(want_delta=False)


@njit(types.float64(MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS), **OPTIONS)
def scale(L, item_weights, C, inverse, log_scale):  # type: ignore[no-untyped-def]
    """C from L, 1/√L_ii (0 for an item that cannot occur), log L_ii, and Σ item weight · log L_ii."""
    n = len(L)
    total = 0.0
    for i in range(n):
        square = L[i, i]
        if square > 0 and square < np.inf:
            inverse[i] = 1 / math.sqrt(square)
            log_scale[i] = math.log(square)
        else:
            inverse[i] = np.nan
            log_scale[i] = -np.inf
        if item_weights[i] > 0:
            total += item_weights[i] * log_scale[i]
    for i in range(n):
        for j in range(n):
            C[i, j] = L[i, j] * inverse[i] * inverse[j]
    for i in range(n):
        C[i, i] = 1.0
        if not inverse[i] > 0:
            C[i, i] = np.nan
            inverse[i] = 0.0
    return total


def _version() -> int:
    """Of all other files that the loop is made of."""
    sources = [Path(str(module.__file__)).read_bytes() for module in (blocks, lanes, sets, for_small, for_any)]
    return int.from_bytes(hashlib.sha256(b"".join(sources)).digest()[:7])


def _of_version(version: int) -> Any:
    """The loop over all sets. Numba finds its compiled code again by this file and by what the loop closes over: the
    version, as it is made of other files too."""

    given = (MATRIX, NUMBERS, NUMBERS, ITEMS, NUMBERS, GROUPS, NUMBERS, *[types.int64] * 3)

    @njit(TWO_SUMS(*given, OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS), **OPTIONS)
    def definite(C, inverse, alone, items, weights, groups, smallest, rank, thread, threads, delta, each, work):  # type: ignore[no-untyped-def]
        """Σ w log det C_Y and the weight of the sets left out; and, unless they are empty, Delta or every log det C_Y.

        A thread's share of the sets that `smallest` has a number for: those with a pivot below it are left out, as are
        sets of more than `rank` items. Of sets of one item, only the weight of every item matters (`alone`), and the
        first thread counts it. Delta comes as zeros, or with something in its upper triangle, and that of C; it leaves
        as that of L, whole.
        """
        _ = version
        n = len(delta)
        for place in range(2 * LANES):
            work[place] = 0.0
        logdet = impossible = 0.0
        for group in range(len(groups)):
            k, item, first, n_blocks = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
            start, stop = n_blocks * thread // threads, n_blocks * (thread + 1) // threads
            if k > rank:
                for place in range(first + LANES * start, first + LANES * stop):
                    impossible += weights[place]
            elif 2 <= k < len(smallest):
                if n > 0:
                    _add_inverses(C, items, item, weights, first, k, smallest[k], start, stop, delta, work)
                else:
                    _take_logarithms(C, items, item, weights, first, k, smallest[k], start, stop, each, work)
        for i in range(len(alone)):
            if thread > 0 or rank < 1:  # a rank of 0 has counted them above
                continue
            if not inverse[i] > 0:
                impossible += alone[i]
            elif n > 0:
                delta[i, i] += alone[i]
        for top in range(0, n, TILE):  # tile by tile, because the rows that one column meets are far apart
            for left in range(top, n, TILE):
                for i in range(top, min(top + TILE, n)):
                    for j in range(max(left, i), min(left + TILE, n)):
                        value = delta[i, j] * inverse[i] * inverse[j]
                        delta[i, j] = value
                        delta[j, i] = value
        for lane in range(LANES):
            logdet += work[lane]
            impossible += work[LANES + lane]
        return logdet, impossible

    return definite


definite = _of_version(_version())
