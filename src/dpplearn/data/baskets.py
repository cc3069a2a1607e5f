"""Baskets: item sets of lists, matrices and tables, put together and divided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Seed
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.checks import as_ids, as_weights
from dpplearn.data.conversion import pairs_by_label, pairs_of_lists, pairs_of_matrix
from dpplearn.data.filtering import FilteredSets
from dpplearn.data.merging import merged
from dpplearn.data.times import as_times, joined_times
from dpplearn.data.unknown import LeftOut, check_unknown
from dpplearn.data.weights import are_counts, can_be_divided, effective_number, fold_weights, without_replacement
from dpplearn.errors import InputError


class Baskets(FilteredSets):
    """Item sets, one weight each, over a catalogue. Immutable.

    Made by `from_lists`, `from_matrix`, `from_table` or `read_baskets`, which check what comes in.
    Basket i holds the positions `indices[offsets[i]:offsets[i + 1]]`, ascending, and `ids[i]` is what a table calls it;
    lists call baskets nothing, and `ids` is None. `times[i]` is when it came about, and `times` is None where nothing
    tells.

    Examples
    --------
    >>> baskets = Baskets.from_lists([["crib", "bib"], ["bib"]])
    >>> baskets
    Baskets(2 baskets, 2 named items, size 1 to 2, mean 1.50)
    >>> baskets[0]
    ('bib', 'crib')
    """

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
        """One list of items per basket.

        Parameters
        ----------
        baskets
            Lists of names, or lists of integers.
        items
            The catalogue: names are looked up in it, and integers are positions in it if its labels are names.
            Without it the catalogue is the names that occur, sorted, or the integers 0 to `n_items` - 1.
        n_items
            The size of the catalogue where items are integers; by default up to the largest that occurs.
        weights
            One per basket; 1 by default.
        ids, times
            What each basket is called, and when it came about: a date, a time (in UTC where it does not say) or a
            number.

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
        pairs = pairs_of_lists(baskets, items, n_items, weights)
        called = None if ids is None else as_ids(ids, pairs.n_baskets)
        return cls.from_pairs(
            *pairs._replace(ids=called, times=None if times is None else as_times(times, pairs.n_baskets))
        )

    @classmethod
    def from_matrix(
        cls, matrix: Any, items: Sequence[Label] | None = None, *, weights: npt.ArrayLike | None = None
    ) -> Baskets:
        """One row per basket, one column per item.

        Parameters
        ----------
        matrix
            Dense or scipy sparse, 0 and 1 (or bool); or a DataFrame of those.
        items
            The labels of the columns; by default those of a DataFrame, or 0, 1, 2, ...
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
        return cls.from_pairs(*pairs_of_matrix(matrix, items, weights))

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
            In the order of their identifiers; items, in the order of theirs.

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
        with Transactions.open(table, Columns(basket, item, weight, time=time)) as transactions:
            return transactions.to_baskets()

    @classmethod
    def together(cls, parts: Sequence[Baskets]) -> Baskets:
        """All baskets of all parts.

        Parameters
        ----------
        parts
            At least one; their items are matched by label.

        Returns
        -------
        Baskets
            Over the catalogue of the first part, followed by what each of the others adds to it. They have ids, and
            times, where all parts do.

        Examples
        --------
        >>> list(Baskets.together([Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])]))
        [('crib',), ('bib',)]
        """
        if not parts:
            raise InputError("there are no baskets to put together; expected at least one part, if only to have items")
        catalogue = Catalogue.union([part.catalogue for part in parts])
        parts = [part.over(catalogue) for part in parts]
        sizes = np.concatenate([part.sizes for part in parts])
        indices, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "weights"))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        ids = [part.ids for part in parts if part.ids is not None]
        called = np.concatenate(ids) if len(ids) == len(parts) else None
        times = joined_times([part.times for part in parts])
        return cls(indices, offsets, as_weights(weights, len(sizes)), catalogue, called, times)

    def as_counts(self) -> Baskets:
        """Weights that are not counts scaled to add up to the number of baskets that they are worth.

        Returns
        -------
        Baskets
            The same sets.

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"]], weights=[0.1, 0.1]).as_counts().weights.round(6).tolist()
        [1.0, 1.0]
        """
        if are_counts(self.weights) or not self.total_weight > 0:
            return self
        weights = self.weights / self.total_weight * effective_number(self.weights)
        return replace(self, weights=weights)

    @cached_property
    def n_units(self) -> int:
        """How many baskets can fall into different parts: as many as the weights count, or one per row."""
        return int(self.total_weight) if can_be_divided(self.weights) else len(self)

    def split(self, fraction: float | None = None, rng: Seed = None, *, before: Any = None) -> tuple[Baskets, Baskets]:
        """Two random parts; or those before a time, and those from then on.

        A weight of 3 among weights that are all counts is three baskets, which may fall into different random parts.

        Parameters
        ----------
        fraction
            How much of n baskets the first part has: floor(fraction · n).
        rng
            A seed or a generator.
        before
            A date or a time, instead of a fraction, as `since` takes it.

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
        cut = int(fraction * self.n_units + 1e-9)  # 0.7 · 10 is a hair below 7 in floating point for some lengths
        if can_be_divided(self.weights):
            first = without_replacement(self.weights.astype(np.int64), cut, rng)
            return self.weighted(first), self.weighted(self.weights - first)
        order = rng.permutation(len(self))
        return self.subset(order[:cut]), self.subset(order[cut:])

    def folds(self, n: int, rng: np.random.Generator) -> Floats:
        """The weight of every basket in each of n random folds of (nearly) equal size.

        Counts are divided as in `split`.

        Parameters
        ----------
        n
            How many folds.
        rng
            A generator.

        Returns
        -------
        array (n, len(self))
            The weights of a basket add up to its own.

        Examples
        --------
        >>> Baskets.from_lists([["bib"], ["crib"]] * 3).folds(3, np.random.default_rng(0)).sum(axis=1).tolist()
        [2.0, 2.0, 2.0]
        """
        return fold_weights(self.weights, n, rng)

    def deduplicated(self) -> Baskets:
        """Equal sets merged, their weights added.

        Returns
        -------
        Baskets
            The smallest sets first, then by item; empty baskets are kept as one. Without ids and times, of which equal
            sets may have many.

        Examples
        --------
        >>> Baskets.from_lists([["crib"], ["bib"], ["crib"]]).deduplicated().weights.tolist()
        [1.0, 2.0]
        """
        return Baskets(*merged(self.by_size, self.weights, self.n_items), self.catalogue)


def as_baskets(baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue | None = None) -> Baskets:
    """Baskets as they are, or made of lists; with a catalogue, over it, their items found by label.

    Without a catalogue lists are what `Baskets.from_lists` takes. With one, nothing is found by position: integers are
    labels too.
    """
    if not isinstance(baskets, Baskets) and hasattr(baskets, "total_weight"):
        raise InputError("these baskets are in parts, and for this all must be in one place; pass them as Baskets")
    if catalogue is None:
        return baskets if isinstance(baskets, Baskets) else Baskets.from_lists(baskets)
    return _by_label(baskets, catalogue).over(catalogue)


def known_baskets(
    baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue, unknown: str
) -> tuple[Baskets, LeftOut]:
    """Baskets over a catalogue, to be judged: where items that it does not have are dropped, without the baskets that
    held nothing else, as nothing is known of them."""
    if check_unknown(unknown) == "error":
        return as_baskets(baskets, catalogue), LeftOut()
    known, left_out = _by_label(baskets, catalogue).identified().known_to(catalogue)
    return known.subset(np.delete(np.arange(len(known)), left_out.emptied)), left_out


def _by_label(baskets: Baskets | Iterable[Iterable[Any]], catalogue: Catalogue) -> Baskets:
    return baskets if isinstance(baskets, Baskets) else Baskets.from_pairs(*pairs_by_label(baskets, catalogue))
