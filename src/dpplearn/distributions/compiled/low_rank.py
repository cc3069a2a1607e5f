"""Compiled loops over minors of a low-rank matrix, one set at a time; of I + W Wᵀ + X Yᵀ − Y Xᵀ with their gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, MATRIX, NUMBERS, OUT_NUMBERS

FACTORS = types.Array(types.float32, 2, "C", readonly=True)
OUT_FACTORS = types.float32[:, ::1]
PARTS = types.float32[:, ::1]
SQUARE = types.float64[:, ::1]
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(PARTS, PARTS, PARTS, types.int64, SQUARE), **OPTIONS)
def gram(W, X, Y, k, minor):  # type: ignore[no-untyped-def]
    """Write I + W Wᵀ + X Yᵀ − Y Xᵀ."""
    for i in range(k):
        w, x, y = W[i], X[i], Y[i]
        for j in range(i + 1):
            w_j, x_j, y_j = W[j], X[j], Y[j]
            even = odd = np.float32(0)  # the symmetric and the skew part
            for p in range(len(w)):
                even += w[p] * w_j[p]
            for p in range(len(x)):
                odd += x[p] * y_j[p] - y[p] * x_j[p]
            minor[i, j] = even + odd
            minor[j, i] = even - odd
        minor[i, i] += 1.0


@njit(types.float64(types.int64, SQUARE), **OPTIONS)
def invert(k, minor):  # type: ignore[no-untyped-def]
    """Invert a matrix whose pivots are at least 1 in place, by Gauss–Jordan elimination, and return its log det."""
    total, product = 0.0, 1.0
    for p in range(k):
        at = minor[p, :k]
        product *= at[p]
        if product > 1e200:
            total += math.log(product)
            product = 1.0
        scale = 1.0 / at[p]
        at[p] = 1.0
        for j in range(k):
            at[j] *= scale
        for i in range(k):
            if i != p:
                row = minor[i, :k]
                by = row[p]
                row[p] = 0.0
                for j in range(k):
                    row[j] -= by * at[j]
    return total + math.log(product)


@njit(types.void(PARTS, PARTS, PARTS, types.int64, SQUARE, types.float64, PARTS, PARTS, PARTS), **OPTIONS)
def gradient_of(W, X, Y, k, inverse, weight, dW, dX, dY):  # type: ignore[no-untyped-def]
    """Write w (B + Bᵀ) W, w (Bᵀ − B) Y and w (B − Bᵀ) X, with B the inverse: the gradient of w log det."""
    for i in range(k):
        dw, dx, dy = dW[i], dX[i], dY[i]
        dw[:] = 0
        dx[:] = 0
        dy[:] = 0
        for j in range(k):
            even = np.float32(weight * (inverse[i, j] + inverse[j, i]))
            odd = np.float32(weight * (inverse[j, i] - inverse[i, j]))
            w, x, y = W[j], X[j], Y[j]
            for p in range(len(dw)):
                dw[p] += even * w[p]
            for p in range(len(dx)):
                dx[p] += odd * y[p]
                dy[p] -= odd * x[p]


@njit(
    types.void(FACTORS, types.int64, ITEMS, COUNTS, NUMBERS, COUNTS, types.int64, types.int64, OUT_FACTORS), **OPTIONS
)
def add_gradient(factors, repelling, items, offsets, weights, chosen, start, stop, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of Σ w log det of the minors of sets chosen[start:stop].

    Items are rows of the factors; a set may have none of them.
    """
    r = factors.shape[1]
    attracting = (r - repelling) // 2
    largest = 0
    for place in range(start, stop):
        basket = chosen[place]
        largest = max(largest, offsets[basket + 1] - offsets[basket])
    W, dW = np.empty((largest, repelling), np.float32), np.empty((largest, repelling), np.float32)
    X, dX = np.empty((largest, attracting), np.float32), np.empty((largest, attracting), np.float32)
    Y, dY = np.empty((largest, attracting), np.float32), np.empty((largest, attracting), np.float32)
    minor = np.empty((largest, largest))
    for place in range(start, stop):
        basket = chosen[place]
        first = offsets[basket]
        k = offsets[basket + 1] - first
        for i in range(k):
            row = factors[items[first + i]]
            W[i] = row[:repelling]
            X[i] = row[repelling : repelling + attracting]
            Y[i] = row[repelling + attracting :]
        gram(W, X, Y, k, minor)
        invert(k, minor)
        gradient_of(W, X, Y, k, minor, weights[basket], dW, dX, dY)
        for i in range(k):
            into = gradient[items[first + i]]
            into[:repelling] += dW[i]
            into[repelling : repelling + attracting] += dX[i]
            into[repelling + attracting :] += dY[i]


@njit(types.void(MATRIX, FACTORS, ITEMS, COUNTS, types.int64, types.int64, OUT_NUMBERS), **OPTIONS)
def low_rank_log_minors(V, Z, items, offsets, start, stop, each):  # type: ignore[no-untyped-def]
    """Write log det (I + V Zᵀ)_Y of the sets from start to stop; every pivot is at least 1."""
    largest = 0
    for basket in range(start, stop):
        largest = max(largest, offsets[basket + 1] - offsets[basket])
    minor = np.empty((largest, largest))
    for basket in range(start, stop):
        members = items[offsets[basket] : offsets[basket + 1]]
        k = len(members)
        for i in range(k):
            v, row = V[members[i]], minor[i]
            for j in range(k):
                z = Z[members[j]]
                sum_ = 0.0
                for p in range(len(v)):
                    sum_ += v[p] * z[p]
                row[j] = sum_
            row[i] += 1.0
        each[basket] = invert(k, minor)
