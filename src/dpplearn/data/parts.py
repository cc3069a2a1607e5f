"""Parts: baskets of one catalogue in parts, of which each may be held by another process."""

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
    """Baskets in parts, over one catalogue: `fit` adds up what it asks of each of them, in their order.

    Made by `Parts.of` or `read_parts`. Parts that workers hold keep these busy until `close`, or the end of a `with`.

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
        """Of baskets in memory.

        Parameters
        ----------
        parts
            At least one; their items are matched by label.

        Returns
        -------
        Parts
            Over the items of all of them, in the order of their labels.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])]).items
        ('bib', 'crib')
        """
        return cls.over_all_items(LocalParts(tuple(parts)))

    @classmethod
    def over_all_items(cls, held: PartStore) -> Parts:
        """Of baskets over a catalogue each, held anywhere.

        Parameters
        ----------
        held
            The parts, at least one.

        Returns
        -------
        Parts
            Over the items of all of them, in the order of their labels.

        Examples
        --------
        >>> Parts.over_all_items(LocalParts((Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])))).n_items
        2
        """
        if not len(held):
            raise InputError("there are no parts; expected at least one, if only to have items")
        catalogues = list(held.apply(_catalogue))
        catalogue = Catalogue.union(catalogues)
        if any(each is not catalogue and each != catalogue for each in catalogues):
            catalogue = Catalogue.of(sorted(catalogue.labels))
        return cls(held.changed(_over, catalogue), catalogue)

    def __len__(self) -> int:
        """How many baskets there are in all parts."""
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
        """Let go of the parts, and of the processes that were started to hold them.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib"]])]).close()
        """
        self.held.close()

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
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
        """What the baskets come to, all together."""
        found: Totals = self.sum(_totals)
        return found

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return self.totals.weight

    @cached_property
    def item_weights(self) -> Floats:
        """The weight of the baskets that hold each item, (n_items,)."""
        return read_only(self.sum(item_weights))

    @cached_property
    def pair_weights(self) -> Floats:
        """The weight of the baskets that hold both of every two items, (n_items, n_items)."""
        return read_only(self.sum(pair_weights))

    def frequencies(self) -> Floats:
        """m_i, the weighted share of baskets that hold item i.

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
        """m_ij, the weighted share of baskets that hold both i and j.

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
        """`function(*arguments, part)` of every part, added up in their order.

        Parameters
        ----------
        function
            Of a module, so that other processes find it by its name. What it returns can be added, or is a tuple of
            what can.
        arguments
            What it is given before the part.
        threads
            For parts in this process: how many at a time, by default one per core.

        Returns
        -------
        what the function returns

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([["crib"], ["bib"]])]).sum(len)
        3
        """
        return reduce(_added, self.held.apply(function, *arguments, threads=threads))

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> Parts:
        """The parts `function(*arguments, part)`, or `function(own, *arguments, part)` with one of `each`; over the
        same catalogue.

        Parameters
        ----------
        function
            Of a module, from baskets to baskets.
        arguments
            What it is given before the part.
        each
            One argument per part, if each has its own.

        Returns
        -------
        Parts
            PartStore where these are.

        Examples
        --------
        >>> parts = Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([["bib"], ["bib"]])])
        >>> parts.changed(Baskets.deduplicated)
        Parts(2 parts, 2 baskets, 1 named item)
        """
        return Parts(self.held.changed(function, *arguments, each=each), self.catalogue)

    def joined_by(self, baskets: Baskets) -> Parts:
        """With one part more, the last.

        Parameters
        ----------
        baskets
            Of items that the catalogue has.

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
        """Equal sets of one part merged, their weights added. Equal sets of different parts stay apart.

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
        """Every part divided at random as `Baskets.split` does it.

        Parameters
        ----------
        fraction
            How much of each part the first of the two has.
        rng
            A seed; each part has its own, made of this and of its place.

        Returns
        -------
        Parts, Parts
            Both of as many parts, some of them perhaps without a basket.

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
    """function(*arguments, baskets, threads); of parts, what it gives for each with one thread, added in their order.

    `function` is one of a module, and what it gives for baskets is a sum over them.
    """
    if isinstance(baskets, Baskets):
        return function(*arguments, baskets, threads)
    total: Sum = baskets.sum(_with_one_thread, function, *arguments, threads=threads)
    return total


def _with_one_thread(function: Callable[..., Sum], *arguments: Any) -> Sum:
    return function(*arguments, 1)


def _added(one: Any, other: Any) -> Any:
    """Tuples term by term; arrays in place, as nobody else has them."""
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
