"""Equal sets as one, their weights added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpplearn.arrays import Floats, Ints, Items
from dpplearn.data.blocks import SizeGroup


def merged(groups: Sequence[SizeGroup], weights: Floats, n_items: int) -> tuple[Items, Ints, Floats]:
    """The distinct sets, smallest first, then by item: indices, offsets and weights of `Baskets`."""
    indices: list[Items] = [np.zeros(0, np.int32)]
    summed: list[Floats] = [np.zeros(0)]
    sizes: list[Ints] = [np.zeros(0, np.int64)]
    for group in groups:
        order, starts = _equal_sets(group.sets, weights[group.rows], n_items)
        indices.append(group.sets[order[starts]].reshape(-1))
        summed.append(np.add.reduceat(weights[group.rows[order]], starts))
        sizes.append(np.full(len(starts), group.sets.shape[1]))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return np.concatenate(indices), offsets, np.concatenate(summed)


def _equal_sets(sets: Items, weights: Floats, n_items: int) -> tuple[Ints, Ints]:
    """An order of the rows in which equal sets are neighbours, and where each distinct set begins in it.

    Lexicographic, and by weight among equal sets, so that sums of weights do not depend on the order of the rows.
    """
    n, size = sets.shape
    per_key = max(1, int(62 // np.log2(max(n_items, 2))))  # this many items pack into one 64-bit key
    keys = []
    for start in range(0, size, per_key):
        key = np.zeros(n, dtype=np.int64)
        for column in range(start, min(start + per_key, size)):
            key = key * n_items + sets[:, column]
        keys.append(key)
    by_weight = [] if np.all(weights == weights[0]) else [weights]
    order = np.lexsort([*by_weight, *keys[::-1]]) if by_weight or keys else np.arange(n)
    new = np.zeros(n, dtype=bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    return order, np.flatnonzero(new)
