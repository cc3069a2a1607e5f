"""Baskets: item sets with weights, identifiers and times over a catalogue."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, Items, Seed, read_only
from dpplearn.data.blocks import Blocks, SizeGroup, grouped, in_blocks
from dpplearn.data.catalogue import Catalogue, Label, as_label
from dpplearn.data.times import Times, as_time, as_times, known_times
from dpplearn.data.unknown import ADVICE, SHOWN, LeftOut, check_unknown
from dpplearn.data.validate import as_ids, as_rows, as_weights, pairs_by_label, pairs_of_lists, pairs_of_matrix
from dpplearn.data.weights import Totals, can_be_divided, item_weights, pair_weights, without_replacement
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.utils.text import contents, count

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class WeightedSets:
    """Weighted sets over a catalogue, in one place (`Baskets`) or in several (`Parts`)."""

    catalogue: Catalogue

    def sum(self, function: Callable[[Baskets], Any], threads: int | None = None) -> Any:
        """Return the sum of `function(part)` over the parts, in their order. `Baskets` are one part.

        Parameters
        ----------
        function : callable
            A function of a module, so that other processes can import it, or a `partial` of one. Its result supports
            `+`, or is a tuple of such values.
        threads : int, optional
            Number of parts of this process at a time. By default one per core.

        Returns
        -------
        the type that the function returns

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"], ["bib"]]).sum(len)
        3
        """
        raise NotImplementedError

    @property
    def items(self) -> tuple[Label, ...]:
        """The labels of the catalogue."""
        return self.catalogue.labels

    @property
    def n_items(self) -> int:
        """The size of the catalogue."""
        return len(self.catalogue)

    @cached_property
    def totals(self) -> Totals:
        """Sums over all baskets."""
        found: Totals = self.sum(Totals.of)
        return found

    @cached_property
    def item_weights(self) -> Floats:
        """Total weight of the baskets that contain each item, (n_items,)."""
        return read_only(self.sum(item_weights))

    @property
    def pair_weights(self) -> Floats:
        """Total weight of the baskets that contain each pair of items, (n_items, n_items)."""
        return read_only(self.sum(pair_weights))

    def frequencies(self) -> Floats:
        """Return m_i, the weighted share of baskets with item i.

        Returns
        -------
        array (n_items,)
            In the order of the catalogue.

        Examples
        --------
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).frequencies().tolist()
        [0.5, 1.0]
        """
        return self.item_weights / self.totals.positive_weight

    def pair_frequencies(self) -> Floats:
        """Return m_ij, the weighted share of baskets with both i and j.

        Returns
        -------
        array (n_items, n_items)
            Symmetric, with m_i on the diagonal.

        Examples
        --------
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).pair_frequencies().tolist()
        [[0.5, 0.5], [0.5, 1.0]]
        """
        return self.pair_weights / self.totals.positive_weight


@dataclass(frozen=True, eq=False, repr=False)
class Baskets(WeightedSets):
    """Item sets with weights over a catalogue. Immutable.

    Made by `from_lists`, `from_matrix`, `from_table` or `read_baskets`, which validate their input. Basket i holds the
    positions `indices[offsets[i]:offsets[i + 1]]` of the catalogue, ascending. `ids` and `times` are None if the
    baskets have none. All operations keep the identifiers and times of the baskets that they keep.

    Examples
    --------
    >>> baskets = Baskets.from_lists([["crib", "bib"], ["bib"]])
    >>> baskets
    Baskets(2 baskets, 2 named items, size 1 to 2, mean 1.50)
    >>> baskets[0]
    ('bib', 'crib')
    """

    indices: Items
    offsets: Ints
    weights: Floats
    catalogue: Catalogue
    ids: npt.NDArray[Any] | None = None
    times: Times | None = None

    def __post_init__(self) -> None:
        for array in (self.indices, self.offsets, self.weights, self.ids, self.times):
            if array is not None:
                read_only(array)

    # Construction.

    @classmethod
    def from_lists(
        cls,
        baskets: Iterable[Iterable[Any]],
        items: Sequence[Label] | None = None,
        *,
        n_items: int | None = None,
        weights: npt.ArrayLike | None = None,
        ids: Sequence[Any] | None = None,
        times: Sequence[Any] | None = None,
    ) -> Baskets:
        """Return the baskets of lists of items.

        Parameters
        ----------
        baskets
            Lists of names, or lists of integers.
        items
            The catalogue. Names are looked up in it. Integers are positions in it if its labels are names. By default
            the names that occur, sorted, or the integers 0 to `n_items` - 1.
        n_items
            Size of the catalogue if items are integers. By default up to the largest that occurs.
        weights
            One per basket; 1 by default.
        ids, times
            Identifier and time of each basket. Times are dates, times (UTC unless they have a zone) or Unix timestamps.

        Returns
        -------
        Baskets
            In the order of the lists.

        Examples
        --------
        >>> Baskets.from_lists([["crib", "bib"], ["bib"]]).items
        ('bib', 'crib')
        >>> Baskets.from_lists([[0, 2], []], n_items=4)
        Baskets(2 baskets, 1 empty, 4 items, size 0 to 2, mean 1.00)
        """
        rows, positions, n_baskets, catalogue = pairs_of_lists(baskets, items, n_items)
        known = None if ids is None else as_ids(ids, n_baskets)
        moments = None if times is None else as_times(times, n_baskets)
        return cls.from_pairs(rows, positions, n_baskets, catalogue, weights, known, moments)

    @classmethod
    def from_matrix(
        cls, matrix: Any, items: Sequence[Label] | None = None, *, weights: npt.ArrayLike | None = None
    ) -> Baskets:
        """Return the baskets of a matrix with one row per basket and one column per item.

        Parameters
        ----------
        matrix
            Dense or scipy sparse, 0 and 1 (or bool); or a DataFrame of those.
        items
            Labels of the columns. By default those of a DataFrame, or 0, 1, 2, ...
        weights
            One per basket; 1 by default.

        Returns
        -------
        Baskets
            In the order of the rows.

        Examples
        --------
        >>> list(Baskets.from_matrix([[1, 1], [0, 1]], items=["bib", "crib"]))
        [('bib', 'crib'), ('crib',)]
        """
        return cls.from_pairs(*pairs_of_matrix(matrix, items), weights)

    @classmethod
    def from_table(
        cls,
        table: Any,
        basket: str | None = None,
        item: str | None = None,
        weight: str | None = None,
        time: str | None = None,
    ) -> Baskets:
        """Return the baskets of a table in memory with one row per item of a basket.

        Parameters
        ----------
        table
            A pandas or polars DataFrame, or an Arrow table.
        basket, item, weight, time
            Columns, as for `read_baskets`.

        Returns
        -------
        Baskets
            In the order of their identifiers.

        Examples
        --------
        >>> import pandas
        >>> table = pandas.DataFrame({"order": [7, 7, 3], "item": ["crib", "bib", "bib"]})
        >>> list(Baskets.from_table(table, basket="order"))
        [('bib',), ('bib', 'crib')]
        """
        from dpplearn.data.transactions import Columns, Transactions

        if isinstance(table, str | PathLike | list | tuple):
            raise InputError(f"got a {type(table).__name__}; expected a DataFrame or an Arrow table (see read_baskets)")
        return Transactions.open(table, Columns(basket, item, weight, time=time)).to_baskets()

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
    ) -> Baskets:
        """Return the baskets of (basket number, item position) pairs. A repeated pair is merged, with a warning.

        Parameters
        ----------
        rows, positions
            Basket numbers and positions in the catalogue, in any order.
        n_baskets
            Number of baskets, including those without a pair.
        catalogue
            Labels of the items.
        weights, ids, times
            One per basket.

        Returns
        -------
        Baskets
            In the order of their numbers.

        Examples
        --------
        >>> catalogue = Catalogue.of(["bib", "crib"])
        >>> list(Baskets.from_pairs(np.array([0, 0, 2]), np.array([0, 1, 1]), 3, catalogue))
        [('bib', 'crib'), (), ('crib',)]
        """
        keys = rows.astype(np.int64) * len(catalogue) + positions
        if np.any(keys[1:] <= keys[:-1]):
            keys, counts = np.unique(keys, return_counts=True)
            repeated = keys[counts > 1] // len(catalogue)
            if len(repeated):
                baskets = f"{count(len(np.unique(repeated)), 'basket')} (the first is basket {repeated[0]})"
                what = f"{count(len(rows) - len(keys), 'repeated item')} in {baskets}"
                warnings.warn(f"{what}: a basket is a set, so each is counted once", InputWarning, stacklevel=3)
        rows, positions = np.divmod(keys, len(catalogue))
        offsets = _offsets(np.bincount(rows, minlength=n_baskets))
        return cls(positions.astype(np.int32), offsets, as_weights(weights, n_baskets), catalogue, ids, times)

    @classmethod
    def together(cls, parts: Sequence[Baskets]) -> Baskets:
        """Concatenate baskets. Items are matched by label.

        Parameters
        ----------
        parts
            At least one.

        Returns
        -------
        Baskets
            Over the catalogue of the first part, followed by the new items of each of the others. They have ids, and
            times, if all parts do.

        Examples
        --------
        >>> list(Baskets.together([Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])]))
        [('crib',), ('bib',)]
        """
        if not parts:
            raise InputError("there are no baskets to concatenate; expected at least one part, if only to have items")
        catalogue = Catalogue.union([part.catalogue for part in parts])
        parts = [part.over(catalogue) for part in parts]
        indices, weights, sizes = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "weights", "sizes")
        )
        ids, times = _joined([part.ids for part in parts]), _joined([part.times for part in parts])
        return cls(indices, _offsets(sizes), as_weights(weights, len(sizes)), catalogue, ids, times)

    # Content.

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, row: int) -> tuple[Label, ...]: ...
    @overload
    def __getitem__(self, row: slice) -> Baskets: ...
    def __getitem__(self, row: int | slice) -> tuple[Label, ...] | Baskets:
        """Return the items of one basket, or some of the baskets."""
        if isinstance(row, slice):
            return self.subset(np.arange(len(self))[row])
        return self.catalogue.select(self.positions(range(len(self))[row]))

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

    def positions(self, row: int) -> Items:
        """Return the positions in the catalogue of the items of a basket.

        Parameters
        ----------
        row
            Number of the basket.

        Returns
        -------
        array of int32
            Ascending.

        Examples
        --------
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).positions(1).tolist()
        [1]
        """
        return self.indices[self.offsets[row] : self.offsets[row + 1]]

    def sum(self, function: Callable[[Baskets], Any], threads: int | None = None) -> Any:
        return function(self)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def sizes(self) -> Ints:
        """The number of items of each basket."""
        return read_only(self.offsets[1:] - self.offsets[:-1])

    @cached_property
    def n_units(self) -> int:
        """The number of baskets that a split can separate: the sum of the weights if they are counts, or the rows."""
        return int(self.total_weight) if can_be_divided(self.weights) else len(self)

    @cached_property
    def by_size(self) -> tuple[SizeGroup, ...]:
        """The baskets grouped by size, smallest first."""
        return grouped(self.indices, self.offsets)

    @cached_property
    def blocks(self) -> Blocks:
        """The baskets in the layout of the compiled loops."""
        return in_blocks(self.indices, self.offsets, self.weights)

    # Some of the baskets, or other weights.

    def subset(self, rows: npt.ArrayLike) -> Baskets:
        """Return some of the baskets, over the same catalogue.

        Parameters
        ----------
        rows
            Basket numbers, or a mask with one value per basket.

        Returns
        -------
        Baskets
            In the order of the numbers.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib"], ["crib"], ["cot"]]).subset([2, 0]))
        [('cot',), ('bib',)]
        """
        rows = as_rows(rows, len(self))
        sizes = self.sizes[rows]
        offsets = _offsets(sizes)
        flat = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        ids, times = (None if each is None else each[rows] for each in (self.ids, self.times))
        return Baskets(self.indices[flat], offsets, self.weights[rows], self.catalogue, ids, times)

    def since(self, time: Any) -> Baskets:
        """Return the baskets from a time on.

        Parameters
        ----------
        time
            A date or a time, as text such as "2026-03-01" or "2026-03-01T12:00" or as a Python, numpy or pandas value,
            in UTC unless it has a zone; or a Unix timestamp.

        Returns
        -------
        Baskets
            Over the same catalogue.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib"], ["crib"]], times=["2026-02-28", "2026-03-01"]).since("2026-03-01"))
        [('crib',)]
        """
        return self.subset(known_times(self.times) >= as_time(time))

    def before(self, time: Any) -> Baskets:
        """Return the baskets before a time.

        Parameters
        ----------
        time
            As for `since`.

        Returns
        -------
        Baskets
            Over the same catalogue.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib"], ["crib"]], times=["2026-02-28", "2026-03-01"]).before("2026-03-01"))
        [('bib',)]
        """
        return self.subset(known_times(self.times) < as_time(time))

    def weighted(self, weights: npt.NDArray[Any]) -> Baskets:
        """Return the baskets with other weights, without those of weight 0.

        Parameters
        ----------
        weights
            One per basket, 0 or more.

        Returns
        -------
        Baskets

        Examples
        --------
        >>> list(Baskets.from_lists([["bib"], ["crib"]]).weighted(np.array([0, 3])))
        [('crib',)]
        """
        return replace(self, weights=weights.astype(float)).subset(weights > 0)

    def reweighted(self, factor: float) -> Baskets:
        """Return the same baskets with all weights multiplied by a factor.

        Parameters
        ----------
        factor
            0 or more.

        Returns
        -------
        Baskets

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"]], weights=[1, 2]).reweighted(10).weights.tolist()
        [10.0, 20.0]
        """
        return replace(self, weights=self.weights * factor)

    def as_counts(self) -> Baskets:
        """Return the same baskets with weights that sum to the effective number of baskets, unless they are counts.

        Returns
        -------
        Baskets

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"]], weights=[0.1, 0.1]).as_counts().weights.round(6).tolist()
        [1.0, 1.0]
        """
        return self if self.totals.are_counts else self.reweighted(self.totals.count_scale)

    def split(self, fraction: float | None = None, rng: Seed = None, *, before: Any = None) -> tuple[Baskets, Baskets]:
        """Split the baskets at random, or by time.

        If all weights are counts, a weight of 3 is three baskets, which may fall into different random parts.

        Parameters
        ----------
        fraction
            Fraction of the n baskets in the first part, which gets floor(fraction · n).
        rng
            A seed or a generator.
        before
            A date or a time instead of a fraction, as for `since`. Earlier baskets are the first part.

        Returns
        -------
        Baskets, Baskets
            Both over the whole catalogue.

        Examples
        --------
        >>> train, test = Baskets.from_lists([["bib"], ["crib"]] * 10).split(0.7, rng=0)
        >>> len(train), len(test)
        (14, 6)
        >>> baskets = Baskets.from_lists([["bib"], ["crib"], ["cot"]], times=["2026-02-27", "2026-02-28", "2026-03-01"])
        >>> [len(part) for part in baskets.split(before="2026-03-01")]
        [2, 1]
        """
        if before is not None and fraction is None:
            return self.before(before), self.since(before)
        if before is not None or not (isinstance(fraction, int | float | np.number) and 0 < fraction < 1):
            given = "both a fraction and before= were given" if before is not None else f"fraction is {fraction!r}"
            raise InputError(f"{given}; expected a number between 0 and 1, or a time as before=")
        rng = np.random.default_rng(rng)
        n_first = int(fraction * self.n_units + 1e-9)  # for some n, 0.7 · n is a rounding error below an integer
        if can_be_divided(self.weights):
            first = without_replacement(self.weights, n_first, rng)
            return self.weighted(first), self.weighted(self.weights - first)
        order = rng.permutation(len(self))
        return self.subset(order[:n_first]), self.subset(order[n_first:])

    def folds(self, n: int, rng: np.random.Generator) -> Floats:
        """Return the weight of each basket in each of n random folds of (nearly) equal size.

        Counts are divided as in `split`.

        Parameters
        ----------
        n
            Number of folds.
        rng
            A generator.

        Returns
        -------
        array (n, len(self))
            The weights of a basket sum to its own.

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"]] * 3).folds(3, np.random.default_rng(0)).sum(axis=1).tolist()
        [2.0, 2.0, 2.0]
        """
        if not can_be_divided(self.weights):
            return np.where(rng.permutation(len(self)) % n == np.arange(n)[:, None], self.weights, 0)
        left, found = self.weights.copy(), np.empty((n, len(self)))
        for fold in range(n):
            found[fold] = without_replacement(left, -(-int(left.sum()) // (n - fold)), rng)
            left -= found[fold]
        return found

    def deduplicated(self) -> Baskets:
        """Merge equal sets and add their weights.

        Returns
        -------
        Baskets
            Smallest sets first, then by item. Empty baskets are kept as one. Without ids and times, because equal sets
            may have several.

        Examples
        --------
        >>> Baskets.from_lists([["crib"], ["bib"], ["crib"]]).deduplicated().weights.tolist()
        [1.0, 2.0]
        """
        indices, weights, sizes = [np.zeros(0, np.int32)], [np.zeros(0)], [np.zeros(0, np.int64)]
        for group in self.by_size:
            # By weight among equal sets, so that sums of weights do not depend on the order of the rows.
            order = np.lexsort([self.weights[group.rows], *group.sets.T[::-1]])
            sets = group.sets[order]
            new = np.append(True, (sets[1:] != sets[:-1]).any(axis=1))
            indices.append(sets[new].ravel())
            weights.append(np.add.reduceat(self.weights[group.rows[order]], np.flatnonzero(new)))
            sizes.append(np.full(len(weights[-1]), sets.shape[1]))
        offsets = _offsets(np.concatenate(sizes))
        return Baskets(np.concatenate(indices), offsets, np.concatenate(weights), self.catalogue)

    def digest(self) -> str:
        """Return a SHA-256 digest of the sets in their order, without their weights and labels.

        Examples
        --------
        >>> Baskets.from_lists([["crib"], ["bib"]]).digest() == Baskets.from_lists([["bib"], ["crib"]]).digest()
        False
        """
        found = hashlib.sha256(self.sizes.astype("<i8").tobytes())
        found.update(self.indices.astype("<i4").tobytes())
        return found.hexdigest()

    # Other items. If no basket was empty, baskets that lose all their items are removed: they say nothing about the
    # items that are left, and the sets stay nonempty.

    def most_frequent(self, n: int) -> Baskets:
        """Keep only the n most frequent items.

        Parameters
        ----------
        n
            Maximum number of items; of equally frequent ones, the first in the catalogue.

        Returns
        -------
        Baskets
            Over these items in the order of the catalogue. Baskets without any of them are removed, unless some were
            empty before.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot"], ["cup"]]).most_frequent(2))
        [('bib', 'crib'), ('crib',), ('bib',)]
        """
        frequency = self.frequencies()
        kept = np.argsort(-frequency, kind="stable")[: whole_number("n", n, 1)]
        return self._only(kept[(frequency[kept] > 0) | (kept == kept[0])])  # a catalogue cannot be empty

    def min_count(self, least: float) -> Baskets:
        """Keep only items in at least `least` baskets.

        Parameters
        ----------
        least
            Number of baskets; a basket counts with its weight.

        Returns
        -------
        Baskets
            As for `most_frequent`.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot"]]).min_count(2))
        [('bib', 'crib'), ('crib',), ('bib',)]
        """
        if isinstance(least, bool) or not isinstance(least, int | float | np.number) or not 0 <= least < np.inf:
            raise InputError(f"min_count is {least!r}; expected a number of baskets, 0 or more")
        counts = self.item_weights
        kept = np.flatnonzero(counts >= least)
        if not len(kept):
            raise InputError(f"no item is in {least:g} baskets or more; the most frequent is in {counts.max():g}")
        return self._only(kept)

    def of_items(self, items: Iterable[Any]) -> Baskets:
        """Keep only some items.

        Parameters
        ----------
        items
            Labels. A warning names those that the catalogue does not have.

        Returns
        -------
        Baskets
            As for `most_frequent`.

        Examples
        --------
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["cot"]]).of_items(["crib", "cot"]))
        [('crib',), ('crib',), ('cot',)]
        """
        wanted = Catalogue.of(dict.fromkeys(map(as_label, items)) if isinstance(items, list | tuple) else items)
        places = self.catalogue.translation(wanted)
        missing = wanted.select(np.flatnonzero(places < 0))
        which = f"{len(missing)} of the {count(len(wanted), 'item')} to keep are in no basket"
        message = f"{which} (for instance {contents(missing[:SHOWN])})"
        if len(missing) == len(wanted):
            raise InputError(message)
        if missing:
            warnings.warn(message, InputWarning, stacklevel=2)
        return self._only(places[places >= 0])

    def _only(self, kept: Ints) -> Baskets:
        catalogue = Catalogue(self.catalogue.select(np.sort(kept)))
        if (self.sizes[self.weights > 0] == 0).any():
            return self.known_to(catalogue)[0]
        return _without_emptied(self, catalogue)[0]

    def over(self, catalogue: Catalogue, unknown: str = "error") -> Baskets:
        """Return the same baskets over another catalogue. Items are matched by label.

        Parameters
        ----------
        catalogue
            The other items.
        unknown
            What to do about items that it does not have: "error", or "drop" to leave them out with a warning. A basket
            of unknown items is then empty.

        Returns
        -------
        Baskets
            In the same order.

        Examples
        --------
        >>> Baskets.from_lists([["crib"]]).over(Catalogue.of(["bib", "crib"])).items
        ('bib', 'crib')
        """
        check_unknown(unknown)
        known, left_out = self.known_to(catalogue)
        if left_out and unknown == "error":
            first = int(np.flatnonzero(catalogue.translation(self.catalogue)[self.indices] < 0)[0])
            row = int(np.searchsorted(self.offsets, first, side="right")) - 1
            raise InputError(f"basket {row}: {catalogue.unknown(self.items[self.indices[first]])} {ADVICE}")
        if left_out:
            warnings.warn(str(left_out), InputWarning, stacklevel=2)
        return known

    def known_to(self, catalogue: Catalogue) -> tuple[Baskets, LeftOut]:
        """Return the same baskets over another catalogue, and what it does not have of them.

        Parameters
        ----------
        catalogue
            The other items, which are matched by label.

        Returns
        -------
        Baskets, LeftOut
            As many baskets, and the items that were left out.

        Examples
        --------
        >>> known, left_out = Baskets.from_lists([["bib", "crib"], ["crib"]]).known_to(Catalogue.of(["bib"]))
        >>> list(known), left_out.n_items, left_out.n_emptied
        ([('bib',), ()], 2, 1)
        """
        if catalogue is self.catalogue or catalogue == self.catalogue:
            return self, LeftOut()
        position = catalogue.translation(self.catalogue)[self.indices]
        rows = np.repeat(np.arange(len(self)), self.sizes)
        there = position >= 0
        own = self.weights, self.ids, self.times
        known = Baskets.from_pairs(rows[there], position[there], len(self), catalogue, *own)
        missing, n_missing = np.unique(self.indices[~there], return_counts=True)
        most = missing[np.argsort(-n_missing, kind="stable")[:SHOWN]]
        changed, emptied = known.sizes < self.sizes, (known.sizes == 0) & (self.sizes > 0)
        return known, LeftOut(int(n_missing.sum()), int(changed.sum()), int(emptied.sum()), self.catalogue.select(most))

    # Other forms.

    def to_matrix(self) -> csr_matrix:
        """Return a matrix with one row per basket, one column per item, and 1 for each item of a basket.

        Returns
        -------
        scipy.sparse.csr_matrix
            Of float32, as implicit and LightFM take it. Weights are not part of it.

        Examples
        --------
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).to_matrix().toarray().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.indices), dtype=np.float32)
        return csr_matrix((ones, self.indices.copy(), self.offsets.copy()), shape=(len(self), self.n_items))

    def to_table(self) -> dict[str, npt.NDArray[Any]]:
        """Return a table with one row per item of a basket.

        Returns
        -------
        dict of arrays
            The columns basket (identifier or number), item, weight and, if there are times, time, for
            `pandas.DataFrame`, `polars.DataFrame` or `pyarrow.table`. An empty basket has no row.

        Examples
        --------
        >>> import pandas
        >>> print(pandas.DataFrame(Baskets.from_lists([["bib", "crib"], ["crib"]]).to_table()))
           basket  item  weight
        0       0   bib     1.0
        1       0  crib     1.0
        2       1  crib     1.0
        """
        labels = np.array(self.items, dtype=object if self.catalogue.named else None)
        rows = np.repeat(np.arange(len(self)), self.sizes)
        return {
            "basket": rows if self.ids is None else self.ids[rows],
            "item": labels[self.indices],
            "weight": self.weights[rows],
            **({} if self.times is None else {"time": self.times[rows]}),
        }


def _joined(arrays: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    """Return the arrays as one; None if one is missing."""
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if len(there) == len(arrays) else None


def _offsets(sizes: npt.NDArray[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def as_baskets(baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue | None = None) -> Baskets:
    """Return baskets as they are, or make them from lists; with a catalogue, over it, items matched by label.

    With a catalogue, integers are labels and not positions.
    """
    if not isinstance(baskets, Baskets) and hasattr(baskets, "total_weight"):
        raise InputError("these baskets are in parts, and for this all must be in one place; pass them as Baskets")
    if catalogue is None:
        return baskets if isinstance(baskets, Baskets) else Baskets.from_lists(baskets)
    return _by_label(baskets, catalogue).over(catalogue)


def known_baskets(
    baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue, unknown: str
) -> tuple[Baskets, LeftOut]:
    """Return baskets over a catalogue for evaluation. With unknown="drop", baskets of unknown items are removed."""
    if check_unknown(unknown) == "error":
        return as_baskets(baskets, catalogue), LeftOut()
    return _without_emptied(_by_label(baskets, catalogue), catalogue)


def _without_emptied(baskets: Baskets, catalogue: Catalogue) -> tuple[Baskets, LeftOut]:
    """Return the baskets that have an item of the catalogue, or had none before. Their numbers are the default ids."""
    ids = np.arange(len(baskets)) if baskets.ids is None else baskets.ids
    known, left_out = replace(baskets, ids=ids).known_to(catalogue)
    return known.subset((known.sizes > 0) | (baskets.sizes == 0)), left_out


def _by_label(baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue) -> Baskets:
    return baskets if isinstance(baskets, Baskets) else Baskets.from_pairs(*pairs_by_label(baskets, catalogue))
