"""Memory layout of baskets for compiled loops: sets of equal size together, in the lanes of SIMD vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints, Items, read_only

LANES = 4  # sets that the compiled loops process at a time, one per lane of a SIMD vector


@dataclass(frozen=True)
class SizeGroup:
    """All baskets of one size, as the rows of one matrix."""

    rows: Ints  # (n,) which baskets
    sets: Items  # (n, size) their items, ascending


@dataclass(frozen=True)
class Blocks:
    """All baskets, smallest first, in blocks of LANES baskets of equal size, as compiled loops read them.

    If the number of baskets of a size is not a multiple of LANES, the last is repeated with weight 0.
    """

    items: Items  # item i of the sets of a block side by side, block after block
    weights: Floats  # (n_places,)
    groups: Ints  # (n_sizes, 4) size, first of `items`, first of `weights`, number of blocks
    places: Ints  # (n_baskets,) position of each basket in `weights`

    @cached_property
    def largest(self) -> int:
        """The size of the largest set."""
        return int(self.groups[:, 0].max(initial=0))

    @cached_property
    def work(self) -> int:
        """Estimated nanoseconds of one core for all baskets: gathering is O(k²), factoring O(k³)."""
        size, n_sets = self.groups[:, 0], LANES * self.groups[:, 3]
        return int((n_sets * size**2 * (10 + size)).sum()) // 20

    def with_border(self, first: int, n_more: int) -> Blocks:
        """Return the blocks with the items first, first + 1, ... at the end of every basket."""
        if not n_more:
            return self
        more, items, groups = np.arange(first, first + n_more, dtype=np.int32), [np.zeros(0, np.int32)], []
        for size, start, place, n_blocks in self.groups.tolist():
            sets = self.items[start : start + LANES * size * n_blocks].reshape(n_blocks, LANES * size)
            groups.append((size + n_more, sum(map(len, items)), place, n_blocks))
            items.append(np.hstack([sets, np.tile(np.repeat(more, LANES), (n_blocks, 1))]).ravel())
        return replace(self, items=np.concatenate(items), groups=np.array(groups, np.int64).reshape(-1, 4))


def grouped(indices: Items, offsets: Ints) -> tuple[SizeGroup, ...]:
    """Return the sets `indices[offsets[i]:offsets[i + 1]]` grouped by size, smallest first."""
    return tuple(
        SizeGroup(read_only(rows), read_only(_sets(indices, offsets, rows, size)))
        for size, rows in _rows_of_each_size(offsets)
    )


def in_blocks(indices: Items, offsets: Ints, weights: Floats) -> Blocks:
    """Return weighted sets in the layout of the compiled loops."""
    items, of_places, groups = [np.zeros(0, np.int32)], [np.zeros(0)], [np.zeros((0, 4), np.int64)]
    places = np.empty(len(weights), np.int64)
    first_item = first_place = 0
    for size, rows in _rows_of_each_size(offsets):
        missing = -len(rows) % LANES
        padded = np.concatenate([rows, np.repeat(rows[-1:], missing)])
        n_blocks = len(padded) // LANES
        places[rows] = first_place + np.arange(len(rows))
        sets = _sets(indices, offsets, padded, size)
        items.append(sets.reshape(n_blocks, LANES, size).transpose(0, 2, 1).reshape(-1))
        of_places.append(np.concatenate([weights[rows], np.zeros(missing)]))
        groups.append(np.array([[size, first_item, first_place, n_blocks]]))
        first_item, first_place = first_item + items[-1].size, first_place + len(padded)
    return Blocks(
        items=read_only(np.concatenate(items)),
        weights=read_only(np.concatenate(of_places)),
        groups=read_only(np.concatenate(groups)),
        places=read_only(places),
    )


def _rows_of_each_size(offsets: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each size that occurs, ascending, with the rows of its sets."""
    sizes = np.diff(offsets)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        yield size, np.flatnonzero(sizes == size)


def _sets(indices: Items, offsets: Ints, rows: Ints, size: int) -> Items:
    """Return the items of sets of one size as the rows of a matrix."""
    return np.ascontiguousarray(indices[offsets[rows][:, None] + np.arange(size)])
