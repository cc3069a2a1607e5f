"""The compiled loops over minors of I + W Wᵀ + X Yᵀ − Y Xᵀ, a set at a time: what lies together are the columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.distributions.compiled.signatures import COUNTS, ITEMS, NUMBERS, OUT_NUMBERS

FACTORS = types.Array(types.float32, 2, "C", readonly=True)
OUT_FACTORS = types.float32[:, ::1]
PARTS = types.float32[:, ::1]
SQUARE = types.float64[:, ::1]
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.void(PARTS, PARTS, PARTS, types.int64, SQUARE), **OPTIONS)
def gram(W, X, Y, k, minor):  # type: ignore[no-untyped-def]
    """The lower half and the upper of I + W Wᵀ + X Yᵀ − Y Xᵀ, four columns at a time."""
    last = k - 1
    for i in range(k):
        w, x, y = W[i], X[i], Y[i]
        for j in range(0, i + 1, 4):
            a, b, c = min(j + 1, last), min(j + 2, last), min(j + 3, last)
            w0, w1, w2, w3 = W[j], W[a], W[b], W[c]
            s0 = s1 = s2 = s3 = np.float32(0)
            for p in range(len(w)):
                s0 += w[p] * w0[p]
                s1 += w[p] * w1[p]
                s2 += w[p] * w2[p]
                s3 += w[p] * w3[p]
            x0, x1, x2, x3 = X[j], X[a], X[b], X[c]
            y0, y1, y2, y3 = Y[j], Y[a], Y[b], Y[c]
            t0 = t1 = t2 = t3 = np.float32(0)
            for p in range(len(x)):
                t0 += x[p] * y0[p] - y[p] * x0[p]
                t1 += x[p] * y1[p] - y[p] * x1[p]
                t2 += x[p] * y2[p] - y[p] * x2[p]
                t3 += x[p] * y3[p] - y[p] * x3[p]
            for column, even, odd in ((c, s3, t3), (b, s2, t2), (a, s1, t1), (j, s0, t0)):
                minor[i, column] = even + odd
                minor[column, i] = even - odd
        minor[i, i] += 1.0


@njit(types.float64(types.int64, SQUARE), **OPTIONS)
def invert(k, minor):  # type: ignore[no-untyped-def]
    """log det of a matrix whose pivots are at least 1, which becomes its inverse, by Gauss and Jordan's elimination."""
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
    """w (B + Bᵀ) W, w (Bᵀ − B) Y and w (B − Bᵀ) X, with B the inverse."""
    last = k - 1
    for i in range(k):
        dw, dx, dy = dW[i], dX[i], dY[i]
        for p in range(len(dw)):
            dw[p] = 0
        for p in range(len(dx)):
            dx[p] = 0
            dy[p] = 0
        for j in range(0, k, 4):
            a, b, c = min(j + 1, last), min(j + 2, last), min(j + 3, last)
            at1, at2, at3 = weight * (j + 1 < k), weight * (j + 2 < k), weight * (j + 3 < k)
            e0 = np.float32(weight * (inverse[i, j] + inverse[j, i]))
            e1 = np.float32(at1 * (inverse[i, a] + inverse[a, i]))
            e2 = np.float32(at2 * (inverse[i, b] + inverse[b, i]))
            e3 = np.float32(at3 * (inverse[i, c] + inverse[c, i]))
            w0, w1, w2, w3 = W[j], W[a], W[b], W[c]
            for p in range(len(dw)):
                dw[p] += e0 * w0[p] + e1 * w1[p] + e2 * w2[p] + e3 * w3[p]
            o0 = np.float32(weight * (inverse[j, i] - inverse[i, j]))
            o1 = np.float32(at1 * (inverse[a, i] - inverse[i, a]))
            o2 = np.float32(at2 * (inverse[b, i] - inverse[i, b]))
            o3 = np.float32(at3 * (inverse[c, i] - inverse[i, c]))
            x0, x1, x2, x3 = X[j], X[a], X[b], X[c]
            y0, y1, y2, y3 = Y[j], Y[a], Y[b], Y[c]
            for p in range(len(dx)):
                dx[p] += o0 * y0[p] + o1 * y1[p] + o2 * y2[p] + o3 * y3[p]
            for p in range(len(dy)):
                dy[p] -= o0 * x0[p] + o1 * x1[p] + o2 * x2[p] + o3 * x3[p]


@njit(
    types.float64(
        FACTORS, types.int64, ITEMS, COUNTS, NUMBERS, COUNTS, types.int64, types.int64, OUT_FACTORS, OUT_NUMBERS
    ),
    **OPTIONS,
)
def minors_of(factors, repelling, items, offsets, weights, chosen, start, stop, gradient, each):  # type: ignore[no-untyped-def]
    """Σ w log det of the minors of sets chosen[start:stop]; unless they are empty, w times its gradient is added to
    `gradient`, and every logarithm written to `each`. Items are rows of the factors; a set may hold none of them."""
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
    total = 0.0
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
        logdet = invert(k, minor)
        total += weights[basket] * logdet
        if len(each):
            each[place] = logdet
        if len(gradient):
            gradient_of(W, X, Y, k, minor, weights[basket], dW, dX, dY)
            for i in range(k):
                into = gradient[items[first + i]]
                into[:repelling] += dW[i]
                into[repelling : repelling + attracting] += dX[i]
                into[repelling + attracting :] += dY[i]
    return total
