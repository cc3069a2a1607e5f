"""What to add to many baskets at once, by one model or by a shelf: arrays in, arrays out, as `recommend` has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.components import PlainSets
from dpplearn.distributions.distribution import Top, no_items
from dpplearn.models.model import SetModel
from dpplearn.models.shelf import Shelf


class Suggested(NamedTuple):
    """The best items of many baskets, a row each, the best first; label −1 at the end of a row that has fewer."""

    labels: Ints  # (n_baskets, k) positions in the catalogue of all items
    scores: Floats  # (n_baskets, k)
    probabilities: Floats  # (n_baskets, k)
    categories: Ints  # (n_baskets, k) numbers
    possible: Bools  # (n_baskets,) whether the basket has a probability


class Recommender(Protocol):
    """What is asked for many baskets, which are pairs of a row and a label, sorted and each once."""

    @property
    def catalogue(self) -> Catalogue:
        """The items of all categories."""
        ...

    @property
    def categories(self) -> list[str] | None:
        """Their slugs; None of a model that knows of no others."""
        ...

    @property
    def named(self) -> bool:
        """Whether items have names, and are not integers."""
        ...

    def suggest(self, rows: Ints, labels: Ints, n_baskets: int, k: int, threads: int | None = None) -> Suggested: ...


class OfModel:
    """One model."""

    def __init__(self, model: SetModel) -> None:
        self.model, self.catalogue, self.categories = model, model.catalogue, None
        self.named = model.catalogue.named

    def suggest(self, rows: Ints, labels: Ints, n_baskets: int, k: int, threads: int | None = None) -> Suggested:
        baskets = Baskets.from_pairs(rows, labels, n_baskets, self.catalogue)
        found = self.model.distribution.top_next(baskets, min(k, len(self.catalogue)), None, threads)
        return Suggested(*found[:3], np.zeros_like(found.items), found.possible)


class Sorted(NamedTuple):
    """The parts of baskets, by row and then by category: what each holds of a category that it has anything of."""

    rows: Ints  # (n_parts,)
    categories: Ints  # (n_parts,)
    best: Top  # (n_parts, k), as labels


class OfShelf:
    """All categories of a shelf; the same answers as `Shelf.recommend`, to the last bit."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.catalogue, self.categories = shelf, shelf.catalogue, list(shelf)
        self.named = any(shelf[slug].catalogue.named for slug in shelf)

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints]:
        """The places of the labels, in their order; where those of each begin; and how many it has."""
        label = self.shelf.places.label
        counts = np.bincount(label, minlength=len(self.catalogue))
        return np.argsort(label, kind="stable"), np.cumsum(counts) - counts, counts

    def suggest(self, rows: Ints, labels: Ints, n_baskets: int, k: int, threads: int | None = None) -> Suggested:
        k = min(k, len(self.catalogue))
        parts = self._sorted(rows, labels, k, threads)
        alone = self._alone(k)
        found = _nothing(n_baskets, k)
        n_parts = np.bincount(parts.rows, minlength=n_baskets)
        begins = np.cumsum(n_parts) - n_parts
        held = np.zeros((n_baskets, len(self.categories)), bool)
        held[parts.rows, parts.categories] = True
        found.possible[parts.rows[~parts.best.possible]] = False
        for count in np.unique(n_parts).tolist():  # those with as many parts are merged at once
            here = np.flatnonzero(n_parts == count)
            places = begins[here][:, None] + np.arange(count)  # (baskets, parts)
            merged = self._merged(parts, places, _without(alone, held[here], k * self._most), k)
            for to, values in zip(found[:4], merged[:4], strict=True):
                to[here, : values.shape[1]] = values
        found.labels[~found.possible] = -1
        return found

    def _sorted(self, rows: Ints, labels: Ints, k: int, threads: int | None) -> Sorted:
        """The best items of every part."""
        order, begins, counts = self._places
        times = counts[labels]
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        place = order[np.repeat(begins[labels], times) + within]
        row, category = np.repeat(rows, times), self.shelf.places.category[place]
        position, found = self.shelf.places.position[place], []
        for number in range(len(self.categories)):
            ours = category == number
            found.append(self._of_category(number, row[ours], position[ours], k, threads))
        numbers = np.repeat(np.arange(len(found)), [len(present) for present, _ in found])
        present = np.concatenate([present for present, _ in found])
        order = np.lexsort((numbers, present))
        best = (np.concatenate(each)[order] for each in zip(*(best for _, best in found), strict=True))
        return Sorted(present[order], numbers[order], Top(*best))

    def _of_category(self, number: int, rows: Ints, positions: Ints, k: int, threads: int | None) -> tuple[Ints, Top]:
        """Which baskets hold anything of it, and what to add to them."""
        slug = self.categories[number]
        present, compact = np.unique(rows, return_inverse=True)
        baskets = Baskets.from_pairs(compact, positions, len(present), self.shelf[slug].catalogue)
        few = self.shelf.distribution(slug).top_next(baskets, min(k, baskets.n_items), None, threads)
        best = no_items(len(present), k)
        for to, values in zip(best[:3], few[:3], strict=True):
            to[:, : values.shape[1]] = values
        return present, best._replace(items=self._labels_of(number)[best.items], possible=few.possible)

    def _labels_of(self, number: int) -> Ints:
        """The label of every position, and −1 for that of nothing."""
        places = self.shelf.places
        return np.append(places.label[places.category == number], -1)

    @cached_property
    def _most(self) -> int:
        """In how many categories an item is, at most."""
        return int(self._places[2].max())

    def _alone(self, k: int) -> Suggested:
        """The best items of every category where a basket has nothing of it, all in one row."""
        rows: list[tuple[npt.NDArray[Any], ...]] = []
        for number, slug in enumerate(self.categories):
            n = len(self.shelf[slug].items)
            top = self.shelf.distribution(slug).top_next(PlainSets.of([np.zeros(0, np.int64)], n), min(k, n))
            best = [each[0, top.items[0] >= 0] for each in top[:3]]
            labels = self._labels_of(number)[best[0]]
            rows.append((labels, *best[1:], np.full(len(labels), number)))
        columns = [np.concatenate(each) for each in zip(*rows, strict=True)]
        order = np.lexsort((columns[3], -columns[2], -columns[1]))
        labels, scores, chances, numbers = (each[order][None] for each in columns)
        return Suggested(labels, scores, chances, numbers, np.ones(1, bool))

    def _merged(self, parts: Sorted, places: Ints, alone: Suggested, k: int) -> Suggested:
        """The best of some baskets, of their parts and of the categories that they have nothing of."""
        shape = (*places.shape, parts.best.items.shape[1])
        of_parts = [values[places] for values in parts.best[:3]]
        of_parts.append(np.broadcast_to(parts.categories[places][:, :, None], shape))
        both = [
            np.concatenate([each.reshape(len(places), -1), other], axis=1)
            for each, other in zip(of_parts, alone[:4], strict=True)
        ]
        order = _order(both, upto=k if self._most == 1 else both[0].shape[1])
        both = [np.take_along_axis(each, order, axis=1) for each in both]
        labels, scores, chances, numbers = (each[:, :k] for each in (_each_once(both) if self._most > 1 else both))
        return Suggested(labels, scores, chances, numbers, np.ones(len(places), bool))


def _nothing(n_baskets: int, k: int) -> Suggested:
    best = no_items(n_baskets, k)
    return Suggested(*best[:3], np.full((n_baskets, k), -1), best.possible)


def _without(alone: Suggested, held: Bools, width: int) -> Suggested:
    """Of one row, for every basket the first entries whose categories it has nothing of."""
    free = ~held[:, alone.categories[0]]  # (baskets, entries)
    free &= np.cumsum(free, axis=1) <= width
    row, entry = np.nonzero(free)
    column = np.arange(len(row)) - np.searchsorted(row, row)
    found = _nothing(len(held), min(width, alone.labels.shape[1]))
    for to, values in zip(found[:4], alone[:4], strict=True):
        to[row, column] = values[0, entry]
    return found


def _order(columns: Sequence[npt.NDArray[Any]], upto: int) -> Ints:
    """Of every row the highest score first; ties by probability, then by category; what is NaN last. What is of one
    category is in order already. After `upto` columns ties may stay as they are."""
    _, scores, chances, numbers = columns
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order[:, : upto + 1], axis=1)
    tied = (ranked[:, 1:] == ranked[:, :-1]) | np.isnan(ranked[:, 1:])
    rows = np.flatnonzero(tied.any(axis=1) | np.isnan(ranked[:, 0]))
    order[rows] = np.lexsort((numbers[rows], -chances[rows], -scores[rows]), axis=1)
    return order


def _each_once(columns: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Without the labels of a row that stand there before; label −1 at its end in their place."""
    labels, *others = columns
    by_label = np.argsort(labels, axis=1, kind="stable")
    ranked = np.take_along_axis(labels, by_label, axis=1)
    again = np.zeros(labels.shape, bool)
    np.put_along_axis(again, by_label[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    order = np.argsort(again, axis=1, kind="stable")
    return [np.take_along_axis(each, order, axis=1) for each in (np.where(again, -1, labels), *others)]
