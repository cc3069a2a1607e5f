"""The compiled loop of the sampler, over a few items at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.dense_sampling import eliminate, first_item_probabilities
from dpplearn.distributions.compiled.signatures import MATRIX, OUT_MATRIX

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.int64(MATRIX, types.npy_rng, OUT_MATRIX), **OPTIONS)
def first_of(K, rng, work):  # type: ignore[no-untyped-def]
    """The first item of a set of the DPP with marginal kernel K, given that it is not empty."""
    chances = np.empty(len(K))
    target = rng.random() * first_item_probabilities(K, work, chances)
    for p in range(len(K)):
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
