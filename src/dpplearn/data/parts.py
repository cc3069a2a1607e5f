"""Parts: baskets over one catalogue in several parts, each of which may be in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets, WeightedSets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError
from dpplearn.utils.text import count
from dpplearn.utils.threads import alone, map_over_threads

if TYPE_CHECKING:
    from dpplearn.utils.cluster import Cluster

Sum = TypeVar("Sum")


class Parts(WeightedSets):
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

    def __init__(self, parts: Sequence[Any], catalogue: Catalogue, cluster: Cluster | None = None) -> None:
        self.parts, self.catalogue, self.cluster = parts, catalogue, cluster  # in a cluster, references to baskets

    @classmethod
    def of(cls, parts: Sequence[Baskets], cluster: Cluster | None = None) -> Parts:
        """Return baskets in memory as parts.

        Parameters
        ----------
        parts : sequence of Baskets
            At least one. Items are matched by label. In a cluster, the result of its `keep`.
        cluster : Cluster, optional
            The workers that keep the parts.

        Returns
        -------
        Parts
            Over the items of all parts, sorted by label.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["crib"]]), Baskets.from_lists([["bib"]])]).items
        ('bib', 'crib')
        """
        if not len(parts):
            raise InputError("there are no parts; expected at least one")
        catalogues = list(_answers(cluster, attrgetter("catalogue"), parts, None))
        catalogue = Catalogue.union(catalogues)
        if any(each != catalogue for each in catalogues):
            catalogue = Catalogue.of(sorted(catalogue.labels))
        return cls(parts, catalogue, cluster).changed(methodcaller("over", catalogue))

    def __len__(self) -> int:
        """Return the number of baskets in all parts."""
        return self.totals.n_baskets

    def __repr__(self) -> str:
        items = count(self.n_items, "named item" if self.catalogue.named else "item")
        return f"Parts({count(self.n_parts, 'part')}, {count(len(self), 'basket')}, {items})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the parts and end the processes that were started for them.

        Examples
        --------
        >>> Parts.of([Baskets.from_lists([["bib"]])]).close()
        """
        if self.cluster is not None:
            self.cluster.close()

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(self.parts)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return self.totals.weight

    @cached_property
    def pair_weights(self) -> Floats:
        """Total weight of the baskets that contain each pair of items, (n_items, n_items)."""
        return super().pair_weights

    def sum(self, function: Callable[[Baskets], Any], threads: int | None = None) -> Any:
        return reduce(_added, _answers(self.cluster, function, self.parts, threads))

    def changed(self, function: Callable[..., Baskets], *columns: Sequence[Any]) -> Parts:
        """Return the parts `function(*row, part)`, stored where these parts are.

        Parameters
        ----------
        function : callable
            A function as for `sum`, from baskets to baskets over the same catalogue.
        columns
            Arguments before the part, one for each part.

        Returns
        -------
        Parts

        Examples
        --------
        >>> parts = Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([["bib"], ["bib"]])])
        >>> parts.changed(Baskets.deduplicated)
        Parts(2 parts, 2 baskets, 1 named item)
        """
        if self.cluster is not None:
            return Parts(self.cluster.keep(function, *columns, self.parts), self.catalogue, self.cluster)
        return Parts(list(map(partial(alone, function), *columns, self.parts)), self.catalogue)

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
        first, second = (self.changed(partial(_side, side, fraction), seeds) for side in (0, 1))
        return first, second


AnyBaskets = Baskets | Parts


def summed(function: Callable[..., Sum], *arguments: Any, baskets: AnyBaskets, threads: int | None) -> Sum:
    """Return function(*arguments, baskets, threads), which is a sum over baskets.

    For parts, return the sum over the parts in their order, each computed with one thread. Other processes import
    `function` by its name.
    """
    if isinstance(baskets, Baskets):
        return function(*arguments, baskets, threads)
    total: Sum = baskets.sum(partial(function, *arguments, threads=1), threads)
    return total


def _answers(
    cluster: Cluster | None, function: Callable[..., Any], parts: Sequence[Any], threads: int | None
) -> Iterator[Any]:
    """Yield function(part) for every part, in order."""
    if cluster is not None:
        return cluster.answers(function, parts)
    return map_over_threads(partial(alone, function), parts, threads)


def _added(one: Any, other: Any) -> Any:
    """Add tuples term by term, and arrays in place: no other code has a reference to them."""
    if isinstance(one, tuple):
        return tuple(map(_added, one, other))
    if isinstance(one, np.ndarray):
        one += other
        return one
    return one + other


def _side(side: int, fraction: float, seed: Sequence[int], baskets: Baskets) -> Baskets:
    return baskets.split(fraction, rng=np.random.default_rng(seed))[side]
