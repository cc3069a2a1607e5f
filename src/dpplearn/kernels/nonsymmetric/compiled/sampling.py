"""The compiled loop of the sampler."""

from __future__ import annotations

from typing import Any

from numba import njit, types

from dpplearn.kernels.symmetric.compiled.signatures import MATRIX, OUT_MATRIX

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.int64(MATRIX, types.int64, types.npy_rng, OUT_MATRIX, types.int64[::1]), **OPTIONS)
def draw(K, k, rng, work, taken):  # type: ignore[no-untyped-def]
    """One set of the DPP with marginal kernel K, its items into `taken`; how many. With k ≥ 0, the first of k items.

    Item after item is in with probability K_jj, given those before; then K of the others becomes its Schur complement,
    of K_jj or, where the item is out, of K_jj − 1. [Poulson20, Launay20]
    """
    n = len(K)
    while True:
        for i in range(n):
            for j in range(n):
                work[i, j] = K[i, j]
        size = 0
        for p in range(n):
            if rng.random() < work[p, p]:
                taken[size] = p
                size += 1
            else:
                work[p, p] -= 1
            scale = 1 / work[p, p]
            pivot = work[p]
            four = p + 1 + (n - p - 1) // 4 * 4
            for i in range(p + 1, four, 4):  # at a time: what is read of the pivot's row serves all of them
                a, b, c, d = work[i], work[i + 1], work[i + 2], work[i + 3]
                at_a, at_b, at_c, at_d = a[p] * scale, b[p] * scale, c[p] * scale, d[p] * scale
                for j in range(p + 1, n):
                    x = pivot[j]
                    a[j] -= at_a * x
                    b[j] -= at_b * x
                    c[j] -= at_c * x
                    d[j] -= at_d * x
            for i in range(four, n):
                factor = work[i, p] * scale
                for j in range(p + 1, n):
                    work[i, j] -= factor * pivot[j]
        if k < 0 or size == k:
            return size
