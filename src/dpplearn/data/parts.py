"""Parts: baskets over one catalogue in several parts, each of which may be in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from dpplearn.arrays import Floats, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.weights import Totals, item_weights, pair_weights
from dpplearn.errors import InputError
from dpplearn.utils.parallel import Function, LocalParts, PartStore
from dpplearn.utils.text import count

Sum = TypeVar("Sum")


class Parts:
    """Baskets over one catalogue in several parts. `fit` sums statistics over the parts, in their order.

    Created by `Parts.of` or `read_parts`. Workers keep their parts until `close` or the end of a `with` block.

    Examples
    --------
    >>> parts = Parts.of([Baskets.from_lists([["crib"], ["bib", "crib"]]), Baskets.from_lists([["cot"]])])
    >>> parts
    Parts(2 parts, 3 baskets, 3 named items)
    >>> parts.frequencies().round(2).tolist()
    [0.33, 0.33, 0.67]
    """

    def __init__(self, held: PartStore, catalogue: Catalogue) -> None:
        self.held, self.catalogue = held, catalogue

    @classmethod
    def of(cls, parts: Sequence[Baskets]) -> Parts:
        """Return baskets in memory as parts.

        Parameters
        ----------
        parts : sequence of Baskets
            At least one. Items are matched by label.

        Returns
        -------
        Parts
            Over the items of all parts, sorted by label.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])]).items
        ('bib', 'crib')
        """
        return cls.over_all_items(LocalParts(tuple(parts)))

    @classmethod
    def over_all_items(cls, held: PartStore) -> Parts:
        """Return stored parts, which may have different catalogues, over the union of their items.

        Parameters
        ----------
        held : PartStore
            At least one part, in this process or in workers.

        Returns
        -------
        Parts
            Over the items of all parts, sorted by label.

        Examples
        --------
        >>> Parts.over_all_items(LocalParts((Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])))).n_items
        2
        """
        if not len(held):
            raise InputError("there are no parts; expected at least one")
        catalogues = list(held.apply(_catalogue))
        catalogue = Catalogue.union(catalogues)
        if any(each is not catalogue and each != catalogue for each in catalogues):
            catalogue = Catalogue.of(sorted(catalogue.labels))
        return cls(held.changed(_over, catalogue), catalogue)

    def __len__(self) -> int:
        """Return the number of baskets in all parts."""
        return self.totals.n_baskets

    def __repr__(self) -> str:
        items = count(self.n_items, "named item" if self.catalogue.named else "item")
        return f"Parts({count(self.n_parts, 'part')}, {count(len(self), 'basket')}, {items})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the parts and end the processes that were started for them.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib"]])]).close()
        """
        self.held.close()

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(self.held)

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
        found: Totals = self.sum(_totals)
        return found

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return self.totals.weight

    @cached_property
    def item_weights(self) -> Floats:
        """Total weight of the baskets that contain each item, (n_items,)."""
        return read_only(self.sum(item_weights))

    @cached_property
    def pair_weights(self) -> Floats:
        """Total weight of the baskets that contain each pair of items, (n_items, n_items)."""
        return read_only(self.sum(pair_weights))

    def frequencies(self) -> Floats:
        """Return m_i, the weighted fraction of baskets that contain item i.

        Returns
        -------
        array (n_items,)
            In the order of the catalogue.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib", "crib"], ["crib"]])]).frequencies().tolist()
        [0.5, 1.0]
        """
        return self.item_weights / self.totals.positive_weight

    def pair_frequencies(self) -> Floats:
        """Return m_ij, the weighted fraction of baskets that contain both i and j.

        Returns
        -------
        array (n_items, n_items)
            Symmetric, with m_i on the diagonal.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib", "crib"], ["crib"]])]).pair_frequencies().tolist()
        [[0.5, 0.5], [0.5, 1.0]]
        """
        return self.pair_weights / self.totals.positive_weight

    def sum(self, function: Function, *arguments: Any, threads: int | None = None) -> Any:
        """Return the sum of `function(*arguments, part)` over the parts, in their order.

        Parameters
        ----------
        function : callable
            A function of a module, so that other processes can import it. Its result supports `+`, or is a tuple of
            such values.
        arguments
            Arguments before the part.
        threads : int, optional
            Number of parts of this process at a time. By default one per core.

        Returns
        -------
        the type that the function returns

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([["crib"], ["bib"]])]).sum(len)
        3
        """
        return reduce(_added, self.held.apply(function, *arguments, threads=threads))

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> Parts:
        """Return the parts `function(*arguments, part)`, or with `each`, `function(own, *arguments, part)`.

        Parameters
        ----------
        function : callable
            A function of a module, from baskets to baskets over the same catalogue.
        arguments
            Arguments before the part.
        each : sequence, optional
            The argument `own` of each part.

        Returns
        -------
        Parts
            Stored where these parts are.

        Examples
        --------
        >>> parts = Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([["bib"], ["bib"]])])
        >>> parts.changed(Baskets.deduplicated)
        Parts(2 parts, 2 baskets, 1 named item)
        """
        return Parts(self.held.changed(function, *arguments, each=each), self.catalogue)

    def joined_by(self, baskets: Baskets) -> Parts:
        """Return the parts with one more at the end.

        Parameters
        ----------
        baskets : Baskets
            The new part. The catalogue must have its items.

        Returns
        -------
        Parts

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib", "cot"]])]).joined_by(Baskets.from_lists([["cot"]]))
        Parts(2 parts, 2 baskets, 2 named items)
        """
        return Parts(self.held.joined_by(baskets.over(self.catalogue)), self.catalogue)

    def deduplicated(self) -> Parts:
        """Return the parts with equal sets of a part merged and their weights added.

        Equal sets of different parts are not merged.

        Returns
        -------
        Parts

        Examples
        --------
        >>> len(Parts.of([Baskets.from_lists([["bib"], ["bib"]]), Baskets.from_lists([["bib"]])]).deduplicated())
        2
        """
        return self.changed(Baskets.deduplicated)

    def split(self, fraction: float, rng: int) -> tuple[Parts, Parts]:
        """Split every part at random, like `Baskets.split`.

        Parameters
        ----------
        fraction : float
            Fraction of each part in the first result.
        rng : int
            Seed. Each part uses a seed derived from this one and from its position.

        Returns
        -------
        Parts, Parts
            Both have the same number of parts. A part may be without baskets.

        Examples
        --------
        >>> train, test = Parts.of([Baskets.from_lists([["bib"], ["crib"]] * 10)] * 2).split(0.7, rng=0)
        >>> len(train), len(test)
        (28, 12)
        """
        seeds = [[rng, place] for place in range(self.n_parts)]
        return self.changed(_side, 0, fraction, each=seeds), self.changed(_side, 1, fraction, each=seeds)


AnyBaskets = Baskets | Parts


def summed(function: Callable[..., Sum], *arguments: Any, baskets: AnyBaskets, threads: int | None) -> Sum:
    """Return function(*arguments, baskets, threads), which is a sum over baskets.

    For parts, return the sum over the parts in their order, each computed with one thread. Other processes import
    `function` by its name.
    """
    if isinstance(baskets, Baskets):
        return function(*arguments, baskets, threads)
    total: Sum = baskets.sum(_with_one_thread, function, *arguments, threads=threads)
    return total


def _with_one_thread(function: Callable[..., Sum], *arguments: Any) -> Sum:
    return function(*arguments, 1)


def _added(one: Any, other: Any) -> Any:
    """Add tuples term by term, and arrays in place: no other code has a reference to them."""
    if isinstance(one, tuple):
        return tuple(map(_added, one, other))
    if isinstance(one, np.ndarray):
        one += other
        return one
    return one + other


def _catalogue(baskets: Baskets) -> Catalogue:
    return baskets.catalogue


def _over(catalogue: Catalogue, baskets: Baskets) -> Baskets:
    return baskets.over(catalogue)


def _totals(baskets: Baskets) -> Totals:
    return baskets.totals


def _side(seed: Sequence[int], side: int, fraction: float, baskets: Baskets) -> Baskets:
    return baskets.split(fraction, rng=np.random.default_rng(seed))[side]
