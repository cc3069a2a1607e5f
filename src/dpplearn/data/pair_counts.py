"""How often items meet, pair by pair of those that do: nothing of all pairs that there could be is ever made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, Items
from dpplearn.data.item_sets import ItemSets
from dpplearn.data.parts import AnyBaskets, Parts

AT_ONCE = 4_000_000  # meetings in memory


class PairCounts(NamedTuple):
    """Pairs of items that occur together, in order of the first and then of the second."""

    pairs: Items  # (n_pairs, 2) the first before the second
    weights: Floats  # (n_pairs,) of the baskets that hold both
    least: float  # pairs of less weight are left out; 0 where none is


def pair_counts(baskets: AnyBaskets, most: int) -> PairCounts:
    """The pairs that occur in baskets of positive weight, and how much weight those have.

    Parameters
    ----------
    baskets
        Any, or parts of them; of parts, a table of every two items is made.
    most
        How many pairs may be kept. Where there are more, those that met once go, then those that met twice, and so on.

    Returns
    -------
    PairCounts

    Examples
    --------
    >>> from dpplearn import Baskets
    >>> found = pair_counts(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot", "crib"]]), 10)
    >>> found.pairs.tolist(), found.weights.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1.0, 2.0, 1.0])
    """
    kept: list[tuple[Ints, Floats]] = [(np.zeros(0, np.int64), np.zeros(0))]
    least = 0.0
    for keys, weights in _of_table(baskets.pair_weights) if isinstance(baskets, Parts) else _counted(baskets):
        kept.append(_at_least(keys, weights, least))
        while sum(len(each) for each, _ in kept) > most:
            least = max(2.0, least + 1)
            kept = [_at_least(*each, least) for each in kept]
    keys, weights = (np.concatenate(column) for column in zip(*kept, strict=True))
    pairs = np.empty((len(keys), 2), np.int32)
    np.divmod(keys, baskets.n_items, out=(pairs[:, 0], pairs[:, 1]), casting="unsafe")
    return PairCounts(pairs, weights, least)


def _at_least(keys: Ints, weights: Floats, least: float) -> tuple[Ints, Floats]:
    there = (weights > 0) & (weights >= least)
    return (keys, weights) if there.all() else (keys[there], weights[there])


def _of_table(met: Floats) -> Iterator[tuple[Ints, Floats]]:
    """The same as `_counted`, from a table of all pairs."""
    keys = np.flatnonzero(np.triu(met, 1))
    yield keys, met.ravel()[keys]


def _counted(baskets: ItemSets) -> Iterator[tuple[Ints, Floats]]:
    """For some first items after others: first · n_items + second of their pairs, and the weight of each."""
    indices, n = baskets.indices, baskets.n_items
    row = np.repeat(np.arange(len(baskets), dtype=np.int32), baskets.sizes)
    order = np.argsort(indices, kind="stable")
    later = (baskets.offsets[1:][row] - np.arange(1, len(row) + 1))[order]  # items of the same basket after each
    for start, stop in _parts(indices[order], later):
        at, more = order[start:stop], later[start:stop]
        before = np.cumsum(more) - more
        seconds = indices[np.repeat(at + 1 - before, more) + np.arange(more.sum())]
        keys = np.repeat(indices[at].astype(np.int64) * n, more) + seconds
        weights = baskets.weights[row[at]]
        if not np.all(weights == 1):
            by_key = np.argsort(keys, kind="stable")
            keys, each = keys[by_key], np.repeat(weights, more)[by_key]
        else:
            keys.sort()
            each = None
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        summed = np.diff(np.append(first, len(keys))).astype(float) if each is None else np.add.reduceat(each, first)
        yield keys[first], summed if len(first) else np.zeros(0)


def _parts(items: Items, later: Ints) -> Iterator[tuple[int, int]]:
    """Cuts between items, about AT_ONCE meetings apart."""
    ends = np.append(np.flatnonzero(items[1:] != items[:-1]) + 1, len(items)) if len(items) else np.zeros(0, int)
    meetings = np.append(0, np.cumsum(later))[ends]
    steps = np.unique(meetings // AT_ONCE, return_index=True)[1]
    cuts = np.unique(np.concatenate([[0], ends[steps], ends[-1:]]))
    return (pair for pair in pairwise(cuts.tolist()))
