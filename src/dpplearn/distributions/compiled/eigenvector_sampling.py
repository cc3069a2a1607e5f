"""The compiled inner loops of the samplers. Imported only when first used: numba is slow to load."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, MATRIX

OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(MATRIX, MATRIX, types.int64[:, ::1]), **OPTIONS)
def choose_k(inclusion, uniforms, chosen):  # type: ignore[no-untyped-def]
    """Exactly k eigenvectors per draw, from the last to the first; inclusion[n, l] is the probability of taking
    eigenvector n when l are still to come."""
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
    """For each draw one set from the projection DPP of its eigenvectors, by rejection. [BTA23]

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
