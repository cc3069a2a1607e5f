"""Baskets: ragged item sets with weights and item labels. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, Items, Seed, read_only
from dpplearn.data.blocks import Blocks, SizeGroup, grouped, in_blocks
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.checks import (
    all_integers,
    as_array,
    as_basket,
    as_positions,
    as_weights,
    check_is_not_a_matrix,
    check_range,
    look_up,
    nonzero_entries,
    one_more_than_largest,
    warn_of_repeats,
)
from dpplearn.data.weights import are_counts, can_be_divided, effective_number, without_replacement
from dpplearn.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Baskets:
    """Item sets, one weight each, over a catalogue.

    Made by `from_lists`, `from_matrix`, `from_table` or `read_baskets`, which check what comes in.
    Basket i holds the positions `indices[offsets[i]:offsets[i + 1]]`, ascending.
    """

    indices: Items
    offsets: Ints
    weights: Floats
    catalogue: Catalogue

    def __post_init__(self) -> None:
        for array in (self.indices, self.offsets, self.weights):
            read_only(array)

    @classmethod
    def from_lists(
        cls,
        baskets: Iterable[Iterable[Any]],
        items: Sequence[Label] | None = None,
        *,
        n_items: int | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> Baskets:
        """One list of items a basket.

        Names without `items`: the catalogue is the names that occur, sorted. Integers without `items`: the
        catalogue is 0 to `n_items` - 1 (by default up to the largest that occurs). With `items`, names are
        looked up in it, and integers are positions in it if its labels are names.
        """
        check_is_not_a_matrix(baskets)
        lists = [as_basket(number, basket) for number, basket in enumerate(baskets)]
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        flat = list(chain.from_iterable(lists))
        rows = np.repeat(np.arange(len(lists)), sizes)
        catalogue = Catalogue.of(items) if items is not None else None
        if all_integers(flat) and (catalogue is None or catalogue.named):
            positions = as_positions(flat, catalogue)
            if catalogue is None:
                catalogue = Catalogue.numbered(n_items if n_items is not None else one_more_than_largest(positions))
            check_range(positions, rows, len(catalogue))
        else:
            catalogue, positions = look_up(flat, rows, catalogue)
        if n_items not in (None, len(catalogue)):
            raise InputError(f"n_items is {n_items}, but there are {len(catalogue)} items; pass them all as items=")
        return cls.from_pairs(rows, positions, len(lists), catalogue, weights)

    @classmethod
    def from_matrix(
        cls, matrix: Any, items: Sequence[Label] | None = None, *, weights: npt.ArrayLike | None = None
    ) -> Baskets:
        """One row a basket, one column an item: dense or scipy sparse, 0 and 1 (or bool).

        A DataFrame's column labels become the items, if `items` is not given.
        """
        if items is None and hasattr(matrix, "columns"):
            items = list(matrix.columns)
        if not hasattr(matrix, "tocoo"):
            matrix = as_array(matrix)
        if matrix.ndim != 2:
            raise InputError(f"got an array of shape {matrix.shape}; expected (baskets, items)")
        if items is not None and len(items) != matrix.shape[1]:
            raise InputError(f"the matrix has {matrix.shape[1]} columns, but items names {len(items)}")
        catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(matrix.shape[1])
        rows, columns, values = nonzero_entries(matrix)
        wrong = np.flatnonzero(values != 1)
        if wrong.size:
            first = wrong[0]
            raise InputError(
                f"row {rows[first]}, column {columns[first]} of the matrix holds {values[first]}; "
                "expected 0 or 1 (binarise counts first, for instance with matrix > 0)"
            )
        return cls.from_pairs(rows, columns, matrix.shape[0], catalogue, weights)

    @classmethod
    def from_table(cls, table: Any, basket: str = "basket", item: str = "item", weight: str | None = None) -> Baskets:
        """A long table (pandas, polars or Arrow): one row a (basket, item) pair, optionally a weight a basket.

        Baskets come out in the order of their identifiers; items, in the order of theirs.
        """
        from dpplearn.data.tables import pairs_of_table

        pairs = pairs_of_table(table, basket=basket, item=item, weight=weight)
        return cls.from_pairs(pairs.rows, pairs.positions, pairs.n_baskets, Catalogue.of(pairs.labels), pairs.weights)

    @classmethod
    def from_pairs(
        cls,
        rows: npt.NDArray[np.integer[Any]],
        positions: npt.NDArray[np.integer[Any]],
        n_baskets: int,
        catalogue: Catalogue,
        weights: npt.ArrayLike | None = None,
    ) -> Baskets:
        """Arrays of (basket number, item position) pairs in any order; a repeated pair is merged, with a warning."""
        keys = rows.astype(np.int64) * len(catalogue) + positions
        if np.any(keys[1:] <= keys[:-1]):
            distinct = np.unique(keys)
            warn_of_repeats(len(keys) - len(distinct), rows, keys)
            keys = distinct
        rows, positions = np.divmod(keys, len(catalogue))
        offsets = np.zeros(n_baskets + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=n_baskets), out=offsets[1:])
        return cls(positions.astype(np.int32), offsets, as_weights(weights, n_baskets), catalogue)

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, row: int) -> tuple[Label, ...]: ...
    @overload
    def __getitem__(self, row: slice) -> Baskets: ...
    def __getitem__(self, row: int | slice) -> tuple[Label, ...] | Baskets:
        """The items of one basket, or some of the baskets."""
        if isinstance(row, slice):
            return self.subset(np.arange(len(self))[row])
        row = range(len(self))[row]
        return self.catalogue.select(self.positions(row))

    def positions(self, row: int) -> Items:
        """The positions of a basket's items in the catalogue, ascending."""
        return self.indices[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[tuple[Label, ...]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        if not len(self):
            return f"Baskets(0 baskets, {self.n_items} items)"
        weighted = "" if np.all(self.weights == 1) else f", total weight {self.total_weight:g}"
        n_empty = np.count_nonzero(self.sizes == 0)
        empty = f", {n_empty:,} empty" if n_empty else ""
        return (
            f"Baskets({len(self):,} baskets{empty}, {self.n_items:,} {'named ' if self.catalogue.named else ''}items, "
            f"size {self.sizes.min()} to {self.sizes.max()}, mean {self.sizes.mean():.2f}{weighted})"
        )

    @property
    def items(self) -> tuple[Label, ...]:
        """The labels of the catalogue."""
        return self.catalogue.labels

    @property
    def n_items(self) -> int:
        """The size of the catalogue."""
        return len(self.catalogue)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def sizes(self) -> Ints:
        """The number of items of every basket."""
        return read_only(np.diff(self.offsets))

    @cached_property
    def by_size(self) -> tuple[SizeGroup, ...]:
        """The baskets grouped by size, smallest first."""
        return grouped(self.indices, self.offsets)

    @cached_property
    def blocks(self) -> Blocks:
        """The baskets as the compiled loops read them."""
        return in_blocks(self.indices, self.offsets, self.weights, self.n_items)

    def subset(self, rows: npt.ArrayLike) -> Baskets:
        """Some of the baskets, by number or by a mask, over the same catalogue."""
        rows = as_array(rows)
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise InputError(f"the mask has shape {rows.shape}; expected ({len(self)},), one value a basket")
            rows = np.flatnonzero(rows)
        if rows.size == 0:
            rows = rows.astype(np.int64)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise InputError(
                f"rows are {rows.dtype} of shape {rows.shape}; expected a list of basket numbers or a mask"
            )
        if rows.size and not (-len(self) <= rows.min() and rows.max() < len(self)):
            raise InputError(f"rows reach from {rows.min()} to {rows.max()}, but there are {len(self)} baskets")
        rows = np.arange(len(self))[rows]
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Baskets(self.indices[flat], offsets, self.weights[rows], self.catalogue)

    def reweighted(self, factor: float) -> Baskets:
        """The same sets, their weights multiplied."""
        return Baskets(self.indices, self.offsets, self.weights * factor, self.catalogue)

    def weighted(self, weights: npt.NDArray[Any]) -> Baskets:
        """The same sets with other weights, without those of weight 0."""
        return Baskets(self.indices, self.offsets, weights.astype(float), self.catalogue).subset(weights > 0)

    def as_counts(self) -> Baskets:
        """Weights that are no counts scaled to add up to the number of baskets that they are worth."""
        if are_counts(self.weights) or not self.total_weight > 0:
            return self
        weights = self.weights / self.total_weight * effective_number(self.weights)
        return Baskets(self.indices, self.offsets, weights, self.catalogue)

    @classmethod
    def together(cls, parts: Sequence[Baskets]) -> Baskets:
        """All baskets of all parts. Items are matched by label: the catalogue is that of the first part, followed by
        what each of the others adds to it."""
        if not parts:
            raise InputError("there are no baskets to put together; expected at least one part, if only to have items")
        catalogue = Catalogue.union([part.catalogue for part in parts])
        parts = [part.over(catalogue) for part in parts]
        sizes = np.concatenate([part.sizes for part in parts])
        indices, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "weights"))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(indices, offsets, as_weights(weights, len(sizes)), catalogue)

    @cached_property
    def n_units(self) -> int:
        """How many baskets can fall into different parts: as many as the weights count, or one a row."""
        return int(self.total_weight) if can_be_divided(self.weights) else len(self)

    def split(self, fraction: float, rng: Seed = None) -> tuple[Baskets, Baskets]:
        """Two random parts, the first with floor(fraction · n) of the baskets.

        A weight of 3 among weights that are all counts is three baskets, which may fall into different parts.
        """
        if not 0 < fraction < 1:
            raise InputError(f"fraction is {fraction}; expected a number between 0 and 1")
        rng = np.random.default_rng(rng)
        cut = int(fraction * self.n_units + 1e-9)  # 0.7 · 10 is a hair below 7 in floating point for some lengths
        if can_be_divided(self.weights):
            first = without_replacement(self.weights.astype(np.int64), cut, rng)
            return self.weighted(first), self.weighted(self.weights - first)
        order = rng.permutation(len(self))
        return self.subset(order[:cut]), self.subset(order[cut:])

    def folds(self, n: int, rng: np.random.Generator) -> Floats:
        """The weight of every basket in each of n random folds of (nearly) equal size; counts are divided as in
        `split`. (n, len(self))"""
        if not can_be_divided(self.weights):
            fold_of = rng.permutation(len(self)) % n
            return np.where(fold_of == np.arange(n)[:, None], self.weights, 0)
        left, found = self.weights.astype(np.int64), np.empty((n, len(self)))
        for fold in range(n):
            found[fold] = without_replacement(left, -(-int(left.sum()) // (n - fold)), rng)
            left -= found[fold].astype(np.int64)
        return found

    def deduplicated(self) -> Baskets:
        """Equal sets merged, their weights added; smallest sets first, then by item. Empty baskets are kept as one."""
        indices: list[Items] = [np.zeros(0, np.int32)]
        weights: list[Floats] = [np.zeros(0)]
        sizes: list[Ints] = [np.zeros(0, np.int64)]
        for group in self.by_size:
            order, starts = _equal_sets(group.sets, self.weights[group.rows], self.n_items)
            indices.append(group.sets[order[starts]].reshape(-1))
            weights.append(np.add.reduceat(self.weights[group.rows[order]], starts))
            sizes.append(np.full(len(starts), group.sets.shape[1]))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        return Baskets(np.concatenate(indices), offsets, np.concatenate(weights), self.catalogue)

    def frequencies(self) -> Floats:
        """m_i, the weighted share of baskets that hold item i."""
        weights = np.repeat(self.weights, self.sizes)
        return np.bincount(self.indices, weights=weights, minlength=self.n_items) / self._positive_weight()

    def pair_frequencies(self) -> Floats:
        """m_ij, the weighted share of baskets that hold both i and j; m_i on the diagonal."""
        from scipy.sparse import csr_array

        total = self._positive_weight()
        shape = (len(self), self.n_items)
        weights = np.repeat(self.weights, self.sizes)
        held = csr_array((np.ones(len(self.indices)), self.indices, self.offsets), shape=shape)
        weighted = csr_array((weights, self.indices, self.offsets), shape=shape)
        pairs: Floats = (held.T @ weighted).toarray()
        return pairs / total

    def over(self, catalogue: Catalogue) -> Baskets:
        """The same baskets with positions in another catalogue, which must hold every item that occurs."""
        if catalogue is self.catalogue or catalogue == self.catalogue:
            return self
        there = catalogue.translation(self.catalogue)
        missing = np.flatnonzero(there[self.indices] < 0)
        if missing.size:
            label = self.items[self.indices[missing[0]]]
            row = int(np.searchsorted(self.offsets, missing[0], side="right")) - 1
            try:
                catalogue.position(label)
            except InputError as unknown:
                raise InputError(f"basket {row}: {unknown}") from None
        rows = np.repeat(np.arange(len(self)), self.sizes)
        return Baskets.from_pairs(rows, there[self.indices], len(self), catalogue, self.weights)

    def _positive_weight(self) -> float:
        if not self.total_weight > 0:
            raise InputError(f"{len(self)} baskets with a total weight of {self.total_weight:g}: nothing to count")
        return self.total_weight


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
