"""Drawn sets with weights by which items and pairs have the frequencies that they should have."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets

SETS_A_PAIR = 4  # the least number of sets drawn per pair of items, for the frequencies of pairs to be made exact
OFTEN = 20  # sets drawn that hold a pair of items, for its frequency to be made exact
MOST_ROUNDS = 30  # of finding the weights for that


def enough_for_pairs(n_sets: int, n_items: int) -> bool:
    """Whether so many sets are enough for the frequencies of all pairs."""
    return SETS_A_PAIR * n_items * (n_items + 1) / 2 <= n_sets


def balanced(
    drawn: Baskets, items: Floats, pairs: Floats | None, whole: Baskets | None = None, total: float | None = None
) -> Baskets:
    """The drawn sets with weights changed as little as possible, Σ (w − w⁰)²/w⁰, for all sets together, those of
    `whole` beside them, to have items, and pairs where they are given, with these frequencies; and to add up to
    `total`, if there is one. Those that are in few of the sets stay as they are.

    w = w⁰ (1 + A μ) with Aᵀ diag(w⁰) A μ = what is missing of each frequency, and a row of A a set; no weight falls
    below zero.
    """
    from scipy.sparse import csr_array, hstack
    from scipy.sparse.linalg import LinearOperator, cg

    wanted = items if pairs is None else (np.triu(pairs, 1) + np.diag(items)).reshape(-1)
    held_by, w = _items_held if pairs is None else _pairs_held, drawn.weights
    A = held_by(drawn)
    wanted = wanted - (0 if whole is None else held_by(whole).T @ whole.weights)
    if total is not None:
        A, wanted = csr_array(hstack([A, csr_array(np.ones((len(drawn), 1)))])), np.append(wanted, total)
    held: Floats = A.T @ w
    missing = wanted - held
    # A sum of n terms errs by up to n·eps of its value. A difference below that is rounding, and may lie where the
    # matrix below is singular: conjugate gradients would divide by zero.
    missing[np.abs(missing) <= len(drawn) * np.finfo(float).eps * np.maximum(held, np.abs(wanted))] = 0
    if not missing.any():
        return drawn
    often = A.T @ np.ones(len(drawn)) >= OFTEN  # to get a rarer one right, few sets would have to change much
    scale = np.divide(1, np.sqrt(held), out=np.zeros_like(held), where=often & (held > 0))  # of a column
    gram = LinearOperator((len(wanted),) * 2, dtype=float, matvec=lambda x: scale * (A.T @ (w * (A @ (scale * x)))))
    mu, _ = cg(gram, scale * missing, rtol=1e-3, maxiter=MOST_ROUNDS)
    factors = np.maximum(1 + A @ (scale * mu), 0)
    return Baskets(drawn.indices, drawn.offsets, w * factors, drawn.catalogue)


def _items_held(baskets: Baskets) -> Any:
    """A row per basket, a column per item; 1 where the basket holds it."""
    from scipy.sparse import csr_array

    entries = (np.ones(len(baskets.indices)), baskets.indices, baskets.offsets)
    return csr_array(entries, shape=(len(baskets), baskets.n_items))


def _pairs_held(baskets: Baskets) -> Any:
    """A row per basket, a column per pair (i, j), i ≤ j, at place iN + j; 1 where the basket holds both."""
    from scipy.sparse import csr_array

    n = baskets.n_items
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in baskets.by_size:
        first, second = np.triu_indices(group.sets.shape[1])
        rows.append(np.repeat(group.rows, len(first)))
        columns.append((group.sets[:, first].astype(np.int64) * n + group.sets[:, second]).reshape(-1))
    places = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.ones(len(places[0])), places), shape=(len(baskets), n * n))
