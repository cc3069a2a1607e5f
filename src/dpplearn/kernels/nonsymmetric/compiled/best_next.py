"""The compiled loops of the best next items of many baskets: scores of all items, probabilities of the best alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types

from dpplearn.kernels.nonsymmetric.compiled import next_item as one
from dpplearn.kernels.nonsymmetric.compiled.next_item import BASKET, MATRICES, complement, factorise, normalise
from dpplearn.kernels.symmetric.compiled.signatures import MATRIX, NUMBERS, OUT_MATRIX

CANDIDATES = types.Array(types.boolean, 1, "C", readonly=True)
OUT_BOOLS = types.Array(types.boolean, 1, "C")
OUT_ITEMS = types.Array(types.int64, 2, "C")
OPTIONS: Any = {"nogil": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}
part = njit(**OPTIONS)  # compiled with the loop that calls it, and kept with that


@part
def scores_of(interaction, log_odds, odds, bias, basket, factor, half, left, shares, inside, score):  # type: ignore[no-untyped-def]
    """P(A ∪ i)/P(A) of every item, as `next_item` has it."""
    m, n = odds.shape
    shared = len(interaction) == 1
    for c in range(m):
        shares[c] = bias[c]
        for i in range(len(basket)):
            shares[c] += log_odds[c, basket[i]]
        if not shared:
            shares[c] += complement(interaction[c], basket, factor, half, inside[c])
    normalise(shares)
    for i in range(n):
        score[i] = 0.0
    for c in range(m):
        if shared:
            for i in range(n):
                score[i] += shares[c] * odds[c, i]
        else:
            for i in range(n):
                score[i] += shares[c] * odds[c, i] * inside[c, i]
    if shared:
        complement(interaction[0], basket, factor, half, left)
        for i in range(n):
            score[i] *= left[i]


@part
def highest(score, candidate, k, best, places):  # type: ignore[no-untyped-def]
    """The places of the k highest scores above 0 among the candidates, and of all that are tied with the last."""
    n_best = 0
    for i in range(len(score)):
        if candidate[i] and score[i] > 0 and (n_best < k or score[i] > best[k - 1]):
            at = n_best if n_best < k else k - 1
            n_best = at + 1
            while at > 0 and best[at - 1] < score[i]:
                best[at] = best[at - 1]
                at -= 1
            best[at] = score[i]
    found = 0
    if n_best:
        for i in range(len(score)):
            if candidate[i] and score[i] >= best[n_best - 1]:
                places[found] = i
                found += 1
    return found


@part
def probabilities_of(K, log_weights, basket, places, found, factor, half, shares, inside, probability):  # type: ignore[no-untyped-def]
    """P(i ∈ Y given A ⊆ Y) of some items; False where A is impossible."""
    m, k = len(log_weights), len(basket)
    for c in range(m):
        shares[c] = log_weights[c] + factorise(K[c], basket, factor)
        if shares[c] == -np.inf:
            continue
        for place in range(found):
            i = places[place]
            left = K[c, i, i]
            for p in range(k):
                down, across = K[c, basket[p], i], K[c, i, basket[p]]
                for q in range(p):
                    down -= factor[p, q] * half[0, q]
                    across -= factor[q, p] * half[1, q]
                half[0, p], half[1, p] = down, across / factor[p, p]
                left -= half[0, p] * half[1, p]
            inside[c, place] = left
    if not normalise(shares):
        return False
    for place in range(found):
        total = 0.0
        for c in range(m):
            if shares[c] > 0:
                total += shares[c] * inside[c, place]
        probability[place] = min(max(total, 0.0), 1.0)
    return True


@part
def put_in_order(score, found, places, probability):  # type: ignore[no-untyped-def]
    """The highest score first, ties by probability, then by place."""
    for here in range(1, found):
        i, p, at = places[here], probability[here], here
        while at > 0 and (
            score[places[at - 1]] < score[i] or (score[places[at - 1]] == score[i] and probability[at - 1] < p)
        ):
            places[at], probability[at] = places[at - 1], probability[at - 1]
            at -= 1
        places[at], probability[at] = i, p


def _version() -> int:
    """Of the other file that the loop is made of."""
    return int.from_bytes(hashlib.sha256(Path(str(one.__file__)).read_bytes()).digest()[:7])


def _of_version(version: int) -> Any:
    """The loop over baskets. Numba finds its compiled code again by this file and by what the loop closes over."""

    @njit(
        types.void(
            *(
                MATRICES,
                MATRICES,
                MATRIX,
                MATRIX,
                NUMBERS,
                NUMBERS,
                BASKET,
                BASKET,
                types.int64,
                types.int64,
                CANDIDATES,
            ),
            *(OUT_ITEMS, OUT_MATRIX, OUT_MATRIX, OUT_BOOLS),
        ),
        cache=True,
        **OPTIONS,
    )
    def best_next(  # type: ignore[no-untyped-def]
        interaction,
        K,
        log_odds,
        odds,
        log_weights,
        log_normalisers,
        indices,
        offsets,
        first,
        last,
        candidate,
        items,
        score,
        probability,
        possible,
    ):
        """Of the baskets from first to last: as many items as there are columns, and whether it has a probability."""
        _ = version
        m, n = odds.shape
        k, largest = items.shape[1], 1
        for row in range(first, last):
            largest = max(largest, offsets[row + 1] - offsets[row])
        factor, half = np.empty((largest, largest)), np.empty((2 * largest, max(n, largest)))
        left, shares, inside, by, bias = np.empty(n), np.empty(m), np.empty((m, n)), np.empty(n), np.empty(m)
        best, places, chances, free = np.empty(k), np.empty(n, np.int64), np.empty(n), np.empty(n, np.bool_)
        for c in range(m):
            bias[c] = log_weights[c] - log_normalisers[c]
        for row in range(first, last):
            basket = indices[offsets[row] : offsets[row + 1]]
            scores_of(interaction, log_odds, odds, bias, basket, factor, half, left, shares, inside, by)
            for i in range(n):
                free[i] = candidate[i]
            for i in range(len(basket)):
                free[basket[i]] = False
            found = highest(by, free, k, best, places) if k else 0
            possible[row] = probabilities_of(
                K, log_weights, basket, places, found, factor, half, shares, inside, chances
            )
            if not possible[row]:
                continue
            put_in_order(by, found, places, chances)
            for place in range(min(found, k)):
                items[row, place] = places[place]
                score[row, place] = by[places[place]]
                probability[row, place] = chances[place]

    return best_next


best_next = _of_version(_version())
