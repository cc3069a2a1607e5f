"""The compiled loops of the next item: Schur complements of a basket in every segment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.kernels.symmetric.compiled.signatures import MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS

MATRICES = types.Array(types.float64, 3, "C", readonly=True)
BASKET = types.Array(types.int64, 1, "C", readonly=True)
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}


@njit(types.float64(MATRIX, BASKET, OUT_MATRIX), **OPTIONS)
def factorise(matrix, basket, factor):  # type: ignore[no-untyped-def]
    """M_A = (lower) (upper), lower having a unit diagonal, both in the place of M_A; and log det M_A, −inf where a
    pivot is not above 0."""
    k = len(basket)
    logdet = 0.0
    for i in range(k):
        for j in range(k):
            factor[i, j] = matrix[basket[i], basket[j]]
    for p in range(k):
        if not factor[p, p] > 0:
            return -np.inf
        logdet += math.log(factor[p, p])
        for i in range(p + 1, k):
            factor[i, p] /= factor[p, p]
            for j in range(p + 1, k):
                factor[i, j] -= factor[i, p] * factor[p, j]
    return logdet


@njit(types.float64(MATRIX, BASKET, OUT_MATRIX, OUT_MATRIX, OUT_NUMBERS), **OPTIONS)
def complement(matrix, basket, factor, half, left):  # type: ignore[no-untyped-def]
    """M_ii − M_iA M_A⁻¹ M_Ai for every item i, and log det M_A; −inf where a pivot is not above 0.

    `half` becomes lower⁻¹ M_A,all, and the columns upper⁻ᵀ M_all,Aᵀ are found beside it.
    """
    n, k = len(matrix), len(basket)
    logdet = factorise(matrix, basket, factor)
    if logdet == -np.inf:
        return logdet
    for i in range(n):
        left[i] = matrix[i, i]
    for p in range(k):
        row = matrix[basket[p]]
        for i in range(n):
            half[p, i] = row[i]
            half[k + p, i] = matrix[i, basket[p]]
        for q in range(p):
            down, across = factor[p, q], factor[q, p]
            for i in range(n):
                half[p, i] -= down * half[q, i]
                half[k + p, i] -= across * half[k + q, i]
        scale = 1 / factor[p, p]
        for i in range(n):
            half[k + p, i] *= scale
            left[i] -= half[p, i] * half[k + p, i]
    return logdet


@njit(types.boolean(OUT_NUMBERS), **OPTIONS)
def normalise(shares):  # type: ignore[no-untyped-def]
    """From logarithms to shares of 1; False if all are −inf."""
    highest = shares.max()
    if highest == -np.inf:
        return False
    total = 0.0
    for c in range(len(shares)):
        shares[c] = math.exp(shares[c] - highest)
        total += shares[c]
    for c in range(len(shares)):
        shares[c] /= total
    return True


@njit(
    types.boolean(MATRICES, MATRICES, MATRIX, NUMBERS, NUMBERS, BASKET, OUT_NUMBERS, OUT_NUMBERS),
    **OPTIONS,
)
def next_item(interaction, K, log_odds, log_weights, lognormalisers, basket, score, probability):  # type: ignore[no-untyped-def]
    m, n = log_odds.shape
    k = len(basket)
    factor, half, left = np.empty((k, k)), np.empty((2 * k, n)), np.empty(n)
    shares, inside = np.empty(m), np.empty((m, n))
    for c in range(m):
        shares[c] = log_weights[c] - lognormalisers[c]
        for i in range(k):
            shares[c] += log_odds[c, basket[i]]
    shared = len(interaction) == 1
    if not shared:
        for c in range(m):
            shares[c] += complement(interaction[c], basket, factor, half, inside[c])
    normalise(shares)
    for i in range(n):
        score[i] = 0.0
    for c in range(m):
        for i in range(n):
            score[i] += shares[c] * math.exp(log_odds[c, i]) * (1.0 if shared else inside[c, i])
    if shared:
        complement(interaction[0], basket, factor, half, left)
        for i in range(n):
            score[i] *= left[i]
    for c in range(m):
        shares[c] = log_weights[c] + complement(K[c], basket, factor, half, inside[c])
    if not normalise(shares):
        return False
    for i in range(n):
        probability[i] = 0.0
    for c in range(m):
        if shares[c] > 0:
            for i in range(n):
                probability[i] += shares[c] * inside[c, i]
    for i in range(n):
        probability[i] = min(max(probability[i], 0.0), 1.0)
    for i in range(k):
        score[basket[i]] = 0.0
        probability[basket[i]] = 0.0
    return True


@njit(types.Tuple([types.float64] * 2)(MATRIX, BASKET, OUT_MATRIX), **OPTIONS)  # type: ignore[no-untyped-call]
def last_pivot(matrix, members, minor):  # type: ignore[no-untyped-def]
    """log det of the minor without its last member, and the pivot of that one; −inf where a pivot is not above 0."""
    k = len(members)
    logdet = 0.0
    for i in range(k):
        for j in range(k):
            minor[i, j] = matrix[members[i], members[j]]
    for p in range(k - 1):
        if not minor[p, p] > 0:
            return -np.inf, 0.0
        logdet += math.log(minor[p, p])
        for i in range(p + 1, k):
            minor[i, p] /= minor[p, p]
            for j in range(p + 1, k):
                minor[i, j] -= minor[i, p] * minor[p, j]
    return logdet, minor[k - 1, k - 1]


@njit(types.Tuple([types.float64] * 2)(MATRICES, MATRICES, MATRIX, NUMBERS, NUMBERS, BASKET), **OPTIONS)  # type: ignore[no-untyped-call]
def next_one(interaction, K, log_odds, log_weights, log_normalisers, members):  # type: ignore[no-untyped-def]
    """The score and the probability of the last of the members, given the others; NaN where those are impossible."""
    m, k = len(log_weights), len(members)
    minor, shares, left = np.empty((k, k)), np.empty(m), np.empty(m)
    item = members[k - 1]
    for c in range(m):
        if c == 0 or len(interaction) > 1:
            logdet, pivot = last_pivot(interaction[c], members, minor)
        shares[c] = log_weights[c] - log_normalisers[c] + logdet
        left[c] = pivot * math.exp(log_odds[c, item])
        for i in range(k - 1):
            shares[c] += log_odds[c, members[i]]
    normalise(shares)
    score = 0.0
    for c in range(m):
        score += shares[c] * left[c]
    for c in range(m):
        logdet, left[c] = last_pivot(K[c], members, minor)
        shares[c] = log_weights[c] + logdet
    if not normalise(shares):
        return np.nan, np.nan
    probability = 0.0
    for c in range(m):
        if shares[c] > 0:
            probability += shares[c] * left[c]
    return score, min(max(probability, 0.0), 1.0)


@njit(
    types.void(MATRICES, MATRICES, MATRIX, NUMBERS, NUMBERS, BASKET, BASKET, OUT_NUMBERS, OUT_NUMBERS),
    **OPTIONS,
)
def next_of(interaction, K, log_odds, log_weights, log_normalisers, members, offsets, score, probability):  # type: ignore[no-untyped-def]
    for part in range(len(offsets) - 1):
        one = members[offsets[part] : offsets[part + 1]]
        score[part], probability[part] = next_one(interaction, K, log_odds, log_weights, log_normalisers, one)
