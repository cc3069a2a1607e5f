"""Ragged item sets with weights and item labels: how they are kept, looked at, picked and counted. Immutable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, Items, read_only
from dpplearn.data.blocks import Blocks, SizeGroup, grouped, in_blocks
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.checks import as_rows, as_weights, warn_of_repeats
from dpplearn.data.times import Times
from dpplearn.data.totals import Totals, item_weights, pair_weights
from dpplearn.data.unknown import ADVICE, LeftOut, check_unknown
from dpplearn.errors import InputError
from dpplearn.utils.text import count


@dataclass(frozen=True, eq=False, repr=False)
class ItemSets:
    """What `Baskets` are: set i holds the positions `indices[offsets[i]:offsets[i + 1]]`, ascending."""

    indices: Items
    offsets: Ints
    weights: Floats
    catalogue: Catalogue
    ids: npt.NDArray[Any] | None = None  # what each set is called where it comes from; None where it has no name
    times: Times | None = None  # when each came about; None where that is not known

    def __post_init__(self) -> None:
        for array in (self.indices, self.offsets, self.weights, self.ids, self.times):
            if array is not None:
                read_only(array)

    @classmethod
    def from_pairs(
        cls,
        rows: npt.NDArray[np.integer[Any]],
        positions: npt.NDArray[np.integer[Any]],
        n_baskets: int,
        catalogue: Catalogue,
        weights: npt.ArrayLike | None = None,
        ids: npt.NDArray[Any] | None = None,
        times: Times | None = None,
    ) -> Self:
        """From arrays of (basket number, item position) pairs; a repeated pair is merged, with a warning.

        Parameters
        ----------
        rows, positions
            The number of a basket, and the position in the catalogue of an item that it holds; pairs in any order.
        n_baskets
            How many baskets there are, those without a pair included.
        catalogue
            The labels of the items.
        weights
            One per basket; 1 by default.
        ids, times
            What the baskets are called, if anything; and when they came about, if that is known.

        Returns
        -------
        Baskets
            In the order of their numbers.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> catalogue = Catalogue.of(["bib", "crib"])
        >>> list(Baskets.from_pairs(np.array([0, 0, 2]), np.array([0, 1, 1]), 3, catalogue))
        [('bib', 'crib'), (), ('crib',)]
        """
        keys = rows.astype(np.int64) * len(catalogue) + positions
        if np.any(keys[1:] <= keys[:-1]):
            distinct = np.unique(keys)
            warn_of_repeats(len(keys) - len(distinct), rows, keys)
            keys = distinct
        rows, positions = np.divmod(keys, len(catalogue))
        offsets = np.zeros(n_baskets + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=n_baskets), out=offsets[1:])
        return cls(positions.astype(np.int32), offsets, as_weights(weights, n_baskets), catalogue, ids, times)

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, row: int) -> tuple[Label, ...]: ...
    @overload
    def __getitem__(self, row: slice) -> Self: ...
    def __getitem__(self, row: int | slice) -> tuple[Label, ...] | Self:
        """The items of one basket, or some of the baskets."""
        if isinstance(row, slice):
            return self.subset(np.arange(len(self))[row])
        row = range(len(self))[row]
        return self.catalogue.select(self.positions(row))

    def positions(self, row: int) -> Items:
        """Where the items of a basket stand in the catalogue.

        Parameters
        ----------
        row
            The number of the basket.

        Returns
        -------
        array of int32
            Ascending.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).positions(1).tolist()
        [1]
        """
        return self.indices[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[tuple[Label, ...]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        if not len(self):
            return f"Baskets(0 baskets, {count(self.n_items, 'item')})"
        weighted = "" if np.all(self.weights == 1) else f", total weight {self.total_weight:g}"
        n_empty = np.count_nonzero(self.sizes == 0)
        empty = f", {n_empty:,} empty" if n_empty else ""
        items = count(self.n_items, "named item" if self.catalogue.named else "item")
        return (
            f"Baskets({count(len(self), 'basket')}{empty}, {items}, "
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
    def totals(self) -> Totals:
        """What the baskets come to, all together."""
        return Totals.of(self)

    @cached_property
    def by_size(self) -> tuple[SizeGroup, ...]:
        """The baskets grouped by size, smallest first."""
        return grouped(self.indices, self.offsets)

    @cached_property
    def blocks(self) -> Blocks:
        """The baskets as the compiled loops read them."""
        return in_blocks(self.indices, self.offsets, self.weights, self.n_items)

    def subset(self, rows: npt.ArrayLike) -> Self:
        """Some of the baskets, over the same catalogue.

        Parameters
        ----------
        rows
            Their numbers, or a mask of one value per basket.

        Returns
        -------
        Baskets
            In the order of the numbers.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib"], ["crib"], ["cot"]]).subset([2, 0]))
        [('cot',), ('bib',)]
        """
        rows = as_rows(rows, len(self))
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        ids, times = (None if each is None else each[rows] for each in (self.ids, self.times))
        return type(self)(self.indices[flat], offsets, self.weights[rows], self.catalogue, ids, times)

    def reweighted(self, factor: float) -> Self:
        """The same sets, their weights multiplied.

        Parameters
        ----------
        factor
            0 or more.

        Returns
        -------
        Baskets
            As many as there are.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib"], ["crib"]], weights=[1, 2]).reweighted(10).weights.tolist()
        [10.0, 20.0]
        """
        return replace(self, weights=self.weights * factor)

    def weighted(self, weights: npt.NDArray[Any]) -> Self:
        """The same sets with other weights, without those of weight 0.

        Parameters
        ----------
        weights
            One per basket, 0 or more.

        Returns
        -------
        Baskets
            Those of positive weight.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib"], ["crib"]]).weighted(np.array([0, 3])))
        [('crib',)]
        """
        return replace(self, weights=weights.astype(float)).subset(weights > 0)

    def frequencies(self) -> Floats:
        """m_i, the weighted share of baskets that hold item i.

        Returns
        -------
        array (n_items,)
            In the order of the catalogue.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).frequencies().tolist()
        [0.5, 1.0]
        """
        return item_weights(self) / self._positive_weight()

    def pair_frequencies(self) -> Floats:
        """m_ij, the weighted share of baskets that hold both i and j.

        Returns
        -------
        array (n_items, n_items)
            Symmetric, with m_i on the diagonal.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).pair_frequencies().tolist()
        [[0.5, 0.5], [0.5, 1.0]]
        """
        return pair_weights(self) / self._positive_weight()

    def _positive_weight(self) -> float:
        if not self.total_weight > 0:
            raise InputError(f"{len(self)} baskets with a total weight of {self.total_weight:g}: nothing to count")
        return self.total_weight

    def over(self, catalogue: Catalogue, unknown: str = "error") -> Self:
        """The same baskets with positions in another catalogue.

        Parameters
        ----------
        catalogue
            Of the other items; items are matched by label.
        unknown
            What to do about items that it does not have: "error", or "drop" to leave them out, with a warning that says
            how many. A basket of nothing else is then empty.

        Returns
        -------
        Baskets
            In the same order.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["crib"]]).over(Catalogue.of(["bib", "crib"])).items
        ('bib', 'crib')
        """
        if check_unknown(unknown) == "drop":
            known, left_out = self.known_to(catalogue)
            left_out.warn()
            return known
        if catalogue is self.catalogue or catalogue == self.catalogue:
            return self
        there = catalogue.translation(self.catalogue)
        missing = np.flatnonzero(there[self.indices] < 0)
        if missing.size:
            label = self.items[self.indices[missing[0]]]
            row = int(np.searchsorted(self.offsets, missing[0], side="right")) - 1
            raise InputError(f"basket {row}: {catalogue.unknown(label)} {ADVICE}")
        rows = np.repeat(np.arange(len(self)), self.sizes)
        return self.from_pairs(rows, there[self.indices], len(self), catalogue, self.weights, self.ids, self.times)

    def known_to(self, catalogue: Catalogue) -> tuple[Self, LeftOut]:
        """What another catalogue has of the same baskets.

        Parameters
        ----------
        catalogue
            Of the other items; items are matched by label.

        Returns
        -------
        Baskets, LeftOut
            As many baskets, and what it does not have of them.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> known, left_out = Baskets.from_lists([["bib", "crib"], ["crib"]]).known_to(Catalogue.of(["bib"]))
        >>> list(known), left_out.n_items, left_out.emptied.tolist()
        ([('bib',), ()], 2, [1])
        """
        if catalogue is self.catalogue or catalogue == self.catalogue:
            return self, LeftOut()
        position, rows = (
            catalogue.translation(self.catalogue)[self.indices],
            np.repeat(np.arange(len(self)), self.sizes),
        )
        known = position >= 0
        left_out = LeftOut.of(self.indices[~known], rows[~known], self.sizes, self.items)
        of_sets = self.weights, self.ids, self.times
        return self.from_pairs(rows[known], position[known], len(self), catalogue, *of_sets), left_out
