"""The compiled loop of the sampler, over a few items at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.kernels.symmetric.compiled.signatures import MATRIX, OUT_MATRIX

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(OUT_MATRIX, types.int64, types.float64), **OPTIONS)
def eliminate(work, p, pivot):  # type: ignore[no-untyped-def]
    """The Schur complement on what comes after p."""
    row = work[p]
    for i in range(p + 1, len(work)):
        below = work[i]
        by = below[p] / pivot
        for j in range(p + 1, len(work)):
            below[j] -= by * row[j]


@njit(types.int64(MATRIX, types.npy_rng, OUT_MATRIX), **OPTIONS)
def first_of(K, rng, work):  # type: ignore[no-untyped-def]
    """The first item of a set of the DPP with marginal kernel K, given that it is not empty."""
    n = len(K)
    work[:] = K
    chances = np.empty(n)  # of being the first
    none = 1.0
    total = 0.0
    for p in range(n):
        inside = min(max(work[p, p], 0.0), 1.0)
        chances[p] = none * inside
        total += chances[p]
        none *= 1.0 - inside
        eliminate(work, p, work[p, p] - 1.0)
    target = rng.random() * total
    for p in range(n):
        target -= chances[p]
        if target < 0.0:
            return p
    return np.argmax(chances)


@njit(types.int64(MATRIX, types.boolean, types.npy_rng, types.int64[::1]), **OPTIONS)
def draw(K, some, rng, taken):  # type: ignore[no-untyped-def]
    """A set of the DPP with marginal kernel K, with `some` given that it is not empty, into `taken`; how many.

    Item after item is in with probability K_pp, given those before; then K of the others becomes its Schur complement,
    of K_pp or, where the item is out, of K_pp − 1. [Poulson20, Launay20]
    """
    work = np.empty_like(K)
    first = first_of(K, rng, work) if some else -1
    work[:] = K
    size = 0
    for p in range(len(K)):
        inside = p == first if p <= first else rng.random() < work[p, p]
        if inside:
            taken[size] = p
            size += 1
        eliminate(work, p, work[p, p] - (0.0 if inside else 1.0))
    return size
