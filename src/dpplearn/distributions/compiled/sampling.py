"""Compiled loops of the samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, MATRIX, OUT_MATRIX

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(MATRIX, MATRIX, types.int64[:, ::1]), **OPTIONS)
def choose_k(inclusion, uniforms, chosen):  # type: ignore[no-untyped-def]
    """Choose k eigenvectors per draw, from the last to the first; inclusion[n, l] is the probability of taking
    eigenvector n when l are still needed."""
    draws, n = uniforms.shape
    k = inclusion.shape[1] - 1
    for draw in range(draws):
        left = k
        for j in range(n - 1, -1, -1):
            if left == 0:
                break
            if uniforms[draw, j] < inclusion[j, left]:
                left -= 1
                chosen[draw, left] = j


@njit(types.void(MATRIX, MATRIX, COUNTS, COUNTS, types.npy_rng, types.int64[::1]), **OPTIONS)
def draw_items(vectors, squares, chosen, offsets, rng, items):  # type: ignore[no-untyped-def]
    """Draw one set from the projection DPP of the eigenvectors of each draw, by rejection. [BTA23]

    The next item is proposed by its probability of being first, |v_i|², and accepted with the share of v_i that
    is not in the span of the items already taken.
    """
    n_items = vectors.shape[0]
    cumulative = np.empty(n_items)
    for draw in range(len(offsets) - 1):
        active = chosen[offsets[draw] : offsets[draw + 1]]
        k = len(active)
        if k == 0:
            continue
        basis = np.empty((k, k))
        v = np.empty(k)
        cumulative[:] = 0.0
        for a in range(k):
            row = active[a]
            for i in range(n_items):
                cumulative[i] += squares[row, i]
        for i in range(1, n_items):
            cumulative[i] += cumulative[i - 1]
        taken = 0
        while taken < k:
            i = np.searchsorted(cumulative, rng.random() * cumulative[n_items - 1], side="right")
            if i == n_items:
                continue
            length = 0.0
            for a in range(k):
                v[a] = vectors[i, active[a]]
                length += v[a] * v[a]
            threshold = rng.random() * length
            for t in range(taken):
                overlap = 0.0
                for a in range(k):
                    overlap += basis[t, a] * v[a]
                length -= overlap * overlap
                if length < threshold:
                    break
            if length < threshold:
                continue
            for _ in range(2):  # once leaves rounding along the basis, twice does not
                for t in range(taken):
                    overlap = 0.0
                    for a in range(k):
                        overlap += basis[t, a] * v[a]
                    for a in range(k):
                        v[a] -= overlap * basis[t, a]
            length = 0.0
            for a in range(k):
                length += v[a] * v[a]
            if length == 0.0:
                continue
            length = np.sqrt(length)
            for a in range(k):
                basis[taken, a] = v[a] / length
            items[offsets[draw] + taken] = i
            taken += 1


@njit(types.int64(MATRIX, types.int64, types.float64, types.npy_rng, OUT_MATRIX, types.int64[::1]), **OPTIONS)
def draw(K, k, some, rng, work, taken):  # type: ignore[no-untyped-def]
    """Draw a set of the DPP with marginal kernel K into `taken` and return its size.

    With k ≥ 0, draw until a set has k items. With some = P(Y ≠ ∅) > 0, draw a nonempty set: its first item is p with
    probability P(p ∈ Y, no item before p ∈ Y)/some.

    Item after item is in with probability K_jj, given those before; then K of the others becomes its Schur complement,
    of K_jj or, where the item is out, of K_jj − 1. [Poulson20, Launay20]
    """
    n = len(K)
    while True:
        for i in range(n):
            for j in range(n):
                work[i, j] = K[i, j]
        size = 0
        left = some * rng.random() if some > 0.0 else 0.0
        none = 1.0  # P(no item before p ∈ Y)
        total = 0.0  # of the probabilities of first items
        for p in range(n):
            if some > 0.0 and size == 0:
                left -= none * work[p, p]
                total += none * work[p, p]
                none *= 1.0 - work[p, p]
                inside = left < 0.0
            else:
                inside = rng.random() < work[p, p]
            if inside:
                taken[size] = p
                size += 1
            else:
                work[p, p] -= 1
            scale = 1 / work[p, p]
            pivot = work[p]
            four = p + 1 + (n - p - 1) // 4 * 4
            for i in range(p + 1, four, 4):  # four rows share the loads of the pivot row: 4 times as fast
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
        if (k < 0 and (size > 0 or some <= 0.0)) or size == k:
            return size
        some = min(some, total)  # they differ by rounding, which may leave no first item
