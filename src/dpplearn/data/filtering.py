"""Baskets of fewer items or of some time, and baskets as other libraries want them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Ints
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.item_sets import ItemSets
from dpplearn.data.times import cut
from dpplearn.data.totals import item_weights
from dpplearn.data.unknown import SHOWN
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.utils.text import contents, count

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class FilteredSets(ItemSets):
    """Item sets of which some items can be left out.

    Where no set was empty, those that then are go: they say nothing about these items, and sets stay given not empty.
    """

    def most_frequent(self, n: int) -> Self:
        """The baskets with no other items than the n most frequent ones.

        Parameters
        ----------
        n
            How many items at most; of equally frequent ones the first in the catalogue.

        Returns
        -------
        Baskets
            Over these items in the order of the catalogue. Baskets of nothing else are left out, unless some were empty
            before.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot"], ["cup"]]).most_frequent(2))
        [('bib', 'crib'), ('crib',), ('bib',)]
        """
        frequency = self.frequencies()
        kept = np.argsort(-frequency, kind="stable")[: whole_number("n", n, 1)]
        return self._only(kept[(frequency[kept] > 0) | (kept == kept[0])])  # a catalogue cannot be empty

    def min_count(self, least: float) -> Self:
        """The baskets with no other items than those that occur in at least so many of them.

        Parameters
        ----------
        least
            How many; a basket counts with its weight.

        Returns
        -------
        Baskets
            As `most_frequent` has it.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot"]]).min_count(2))
        [('bib', 'crib'), ('crib',), ('bib',)]
        """
        if isinstance(least, bool | str) or not 0 <= least < np.inf:
            raise InputError(f"min_count is {least!r}; expected a number of baskets, 0 or more")
        counts = item_weights(self)
        kept = np.flatnonzero(counts >= least)
        if not len(kept):
            most = int(counts.argmax())
            known = f"the most frequent, {self.items[most]!r}, is in {counts[most]:g}"
            raise InputError(f"no item is in {least:g} baskets or more; {known}")
        return self._only(kept)

    def of_items(self, items: Iterable[Any]) -> Self:
        """The baskets with no other items than these.

        Parameters
        ----------
        items
            Their labels. Those that the catalogue does not have are named in a warning.

        Returns
        -------
        Baskets
            As `most_frequent` has it.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib", "crib"], ["crib"], ["cot"]]).of_items(["crib", "cot"]))
        [('crib',), ('crib',), ('cot',)]
        """
        if isinstance(items, str | bytes):
            raise InputError(f"got the single item {items!r} where a list of items was expected; write [{items!r}]")
        wanted = list(dict.fromkeys(items))
        known = [item for item in wanted if item in self.catalogue]
        missing = [item for item in wanted if item not in self.catalogue]
        if not known:
            theirs = f"the baskets have {count(self.n_items, 'item')}, from {self.items[0]!r} to {self.items[-1]!r}"
            which = f"none of the items to keep ({contents(wanted[:SHOWN])})" if wanted else "no item"
            raise InputError(f"{which} is in the baskets; {theirs}")
        if missing:
            what = f"{len(missing)} of {count(len(wanted), 'item')} to keep are in no basket"
            warnings.warn(f"{what} (for instance {contents(missing[:SHOWN])})", InputWarning, stacklevel=2)
        return self._only(self.catalogue.positions(dict.fromkeys(map(str, known))))

    def since(self, time: Any) -> Self:
        """The baskets from a time on.

        Parameters
        ----------
        time
            A date or a time, as text such as "2026-03-01" or "2026-03-01T12:00" or as Python, numpy and pandas have
            them, in UTC where it does not say; a number where times are numbers.

        Returns
        -------
        Baskets
            Over the same catalogue.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib"], ["crib"]], times=["2026-02-28", "2026-03-01"]).since("2026-03-01"))
        [('crib',)]
        """
        return self.subset(~cut(self.times, time))

    def before(self, time: Any) -> Self:
        """The baskets before a time.

        Parameters
        ----------
        time
            As `since` takes it.

        Returns
        -------
        Baskets
            Over the same catalogue.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> list(Baskets.from_lists([["bib"], ["crib"]], times=["2026-02-28", "2026-03-01"]).before("2026-03-01"))
        [('bib',)]
        """
        return self.subset(cut(self.times, time))

    def _only(self, kept: Ints) -> Self:
        known, left_out = self.identified().known_to(Catalogue(self.catalogue.select(np.sort(kept))))
        if (self.sizes[self.weights > 0] == 0).any():
            return known
        return known.subset(np.delete(np.arange(len(self)), left_out.emptied))

    def identified(self) -> Self:
        """The same baskets, which keep their numbers as `ids` where they have no other, whatever is picked of them.

        Returns
        -------
        Baskets

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib"], ["crib"], ["cot"]]).identified().subset([2, 0]).ids.tolist()
        [2, 0]
        """
        if self.ids is not None:
            return self
        return replace(self, ids=np.arange(len(self)))

    def to_matrix(self) -> csr_matrix:
        """One row per basket, one column per item, 1 where it holds the item: what implicit and LightFM learn from.

        Returns
        -------
        scipy.sparse.csr_matrix
            Of float32. `Baskets.from_matrix` reads it; weights are apart, in `weights`.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> Baskets.from_lists([["bib", "crib"], ["crib"]]).to_matrix().toarray().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.indices), dtype=np.float32)
        return csr_matrix((ones, self.indices.copy(), self.offsets.copy()), shape=(len(self), self.n_items))

    def to_table(self) -> dict[str, npt.NDArray[Any]]:
        """A long table: one row per basket and item, and its weight and time.

        Returns
        -------
        dict of arrays
            The columns basket (what it is called, or its number), item, weight and, where there are times, time, of
            which `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table` make theirs. An empty basket has no row.

        Examples
        --------
        >>> from dpplearn import Baskets
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
