"""A shelf: a folder of models, one per category, and what they say together of baskets of several categories."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from dpplearn.arrays import NO_ITEMS, Bools, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import PlainSets
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution, Top
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import ShelfRecommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import Basket
from dpplearn.models.model_file import load
from dpplearn.tools.files import digest
from dpplearn.tools.manifest import read_manifest

FORMAT = 1


@dataclass(frozen=True)
class ShelfCategory:
    """One category of a shelf. `share` is that of the baskets which hold anything of it; `sha256`, of the model's file,
    tells one version of the model from another; `old` is why a model of the shelf before had to stay, empty if none."""

    slug: str
    name: str
    file: str  # within the folder
    sha256: str
    share: float
    n_items: int
    old: str = ""


class Parts(NamedTuple):
    """A basket by category: the items of each that it has any of, and those that no category has."""

    items: dict[str, tuple[Label, ...]]
    unknown: tuple[Label, ...]


class Places(NamedTuple):
    """Where every item is: an item of two categories stands there twice."""

    label: Ints  # (n_places,) its position in the catalogue of all
    category: Ints  # (n_places,) the number of the category
    position: Ints  # (n_places,) in the catalogue of that


class Shelf(Mapping[str, DPP | Mixture]):
    """A folder of models that `fit_all` wrote, by slug. A model is loaded when it is first asked for, and kept.

    Of a basket with items of several categories it knows this: a basket holds anything of category c with the
    probability `share`, what it holds of it is as the model says, and categories are independent. So scores and
    probabilities of items of different categories can be compared.

    What was opened stays as it was: a shelf that is written anew is seen by opening it again.

    Parameters
    ----------
    folder
        The folder.
    manifest
        What is in it.
    """

    def __init__(self, folder: str | PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.folder, self.manifest = Path(folder), manifest
        self._models: dict[str, DPP | Mixture] = {}
        self._distributions: dict[str, SetDistribution] = {}
        self._alone: dict[tuple[str, int], Top] = {}

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """Read the manifest of a folder.

        Parameters
        ----------
        folder
            What `fit_all` was told to write to.

        Returns
        -------
        Shelf

        Examples
        --------
        >>> Shelf.open("nowhere")
        Traceback (most recent call last):
        ...
        dpplearn.errors.InputError: nowhere holds no manifest.json; expected a folder that dpplearn fit-all wrote
        """
        return cls(folder, read_manifest(folder, "shelf", FORMAT, "dpplearn fit-all", "write the shelf again"))

    def __repr__(self) -> str:
        return f"Shelf({str(self.folder)!r}: {', '.join(self) or 'empty'})"

    @cached_property
    def categories(self) -> tuple[ShelfCategory, ...]:
        """All of them, in the order of their names."""
        names = [each.name for each in fields(ShelfCategory)]
        return tuple(ShelfCategory(*(each[name] for name in names)) for each in self.manifest["categories"])

    @cached_property
    def _by_slug(self) -> dict[str, ShelfCategory]:
        return {each.slug: each for each in self.categories}

    def category(self, slug: str) -> ShelfCategory:
        """One of them.

        Parameters
        ----------
        slug
            What it is called in files and addresses.

        Returns
        -------
        ShelfCategory

        Examples
        --------
        >>> Shelf("models", {"categories": []}).category("toys")
        Traceback (most recent call last):
        ...
        dpplearn.errors.InputError: there is no category 'toys' in models; it has none
        """
        if slug not in self._by_slug:
            known = ", ".join(self._by_slug) or "none"
            raise InputError(f"there is no category {slug!r} in {self.folder}; it has {known}")
        return self._by_slug[slug]

    def __getitem__(self, slug: str) -> DPP | Mixture:
        if slug not in self._models:
            self._models[slug] = self._loaded(self.category(slug))
        return self._models[slug]

    def _loaded(self, category: ShelfCategory) -> DPP | Mixture:
        path = self.folder / category.file
        if not path.is_file():
            raise InputError(f"{path} is gone; the shelf may have been written again since: open it again")
        return load(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_slug)

    def __len__(self) -> int:
        return len(self._by_slug)

    def __contains__(self, slug: object) -> bool:  # that of Mapping would load the model
        return slug in self._by_slug

    @property
    def versions(self) -> dict[str, str]:
        """The SHA-256 of each model's file, by slug."""
        return {each.slug: each.sha256 for each in self.categories}

    def is_whole(self) -> bool:
        """Whether every file is there, as it was written.

        Returns
        -------
        bool

        Examples
        --------
        >>> Shelf("models", {"categories": []}).is_whole()
        True
        """
        files = [(self.folder / each.file, each.sha256) for each in self.categories]
        return all(path.is_file() and digest(path) == known for path, known in files)

    def distribution(self, slug: str) -> SetDistribution:
        """Return the distribution of the items of a category in any basket: none with probability 1 − share."""
        if slug not in self._distributions:
            p_empty = 1 - self.category(slug).share
            self._distributions[slug] = self[slug].distribution.with_p_empty(p_empty)
        return self._distributions[slug]

    @cached_property
    def catalogue(self) -> Catalogue:
        """The items of all categories, as text and each once."""
        return Catalogue.of(dict.fromkeys(str(label) for slug in self for label in self[slug].items))

    @cached_property
    def places(self) -> Places:
        """Where each of them is."""
        label = [self.catalogue.position(str(each)) for slug in self for each in self[slug].items]
        sizes = [len(self[slug].items) for slug in self]
        position = np.concatenate([np.arange(size) for size in sizes]) if sizes else NO_ITEMS
        return Places(np.array(label, dtype=np.int64), np.repeat(np.arange(len(sizes)), sizes), position)

    @cached_property
    def _places_of(self) -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self.catalogue))]
        for label, category, position in zip(*map(np.ndarray.tolist, self.places), strict=True):
            found[label].append((category, position))
        return found

    def parts(self, basket: Basket, *, unknown: str = "error") -> Parts:
        """Sort the items of a basket by category.

        Parameters
        ----------
        basket
            The items. One that is in two categories is in both parts.
        unknown
            What to do about items that no category has: "error", or "drop" to leave them out and name them.

        Returns
        -------
        Parts

        Examples
        --------
        See `recommend`.
        """
        positions, left_out = self._sorted(basket, unknown)
        slugs = list(self)
        items = {slugs[number]: self[slugs[number]].catalogue.select(part) for number, part in positions.items()}
        return Parts(items, left_out)

    def _sorted(self, basket: Basket, unknown: str) -> tuple[dict[int, Ints], tuple[Label, ...]]:
        """The positions of its items by number of category."""
        known, left_out = known_items(basket, self.catalogue, unknown)
        parts: dict[int, list[int]] = {}
        for label in self.catalogue.positions(known):
            for category, position in self._places_of[label]:
                parts.setdefault(category, []).append(position)
        return {category: np.sort(np.array(parts[category], dtype=np.int64)) for category in sorted(parts)}, left_out

    def recommend(
        self,
        basket: Basket,
        k: int = 10,
        *,
        categories: Sequence[str] | None = None,
        deny: Basket = (),
        unknown: str = "error",
    ) -> list[ShelfRecommendation]:
        """The best items of all categories to add to a basket, without those that it has.

        The score is the factor P(basket with the item)/P(basket), of baskets of all categories together; the
        probability, that a basket which holds these items holds that one, too. Of a category that the basket has
        nothing of, both count that it may stay so.

        Parameters
        ----------
        basket
            Its items, of any categories.
        k
            How many items at most.
        categories
            The slugs of the categories to choose from; by default all.
        deny
            Items to leave out.
        unknown
            What to do about items of the basket that no category has: "error", or "drop".

        Returns
        -------
        list of ShelfRecommendation
            Best first. An item of two categories comes once, with the one where it scores higher.

        Examples
        --------
        >>> import dpplearn as dl
        >>> from tempfile import TemporaryDirectory
        >>> sleep = dl.DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"])
        >>> meals = dl.DPP.from_K([[0.5, 0.2], [0.2, 0.4]], ["bib", "cup"])
        >>> with TemporaryDirectory() as folder:
        ...     entries = []
        ...     for slug, model in (("sleep", sleep), ("meals", meals)):
        ...         model.save(f"{folder}/{slug}")
        ...         entries.append({"slug": slug, "name": slug, "file": slug, "sha256": "", "share": 0.6, "n_items": 2,
        ...                         "old": ""})
        ...     shelf = Shelf(folder, {"categories": entries})
        ...     [(each.item, each.category, round(each.probability, 2)) for each in shelf.recommend(["crib"], k=2)]
        ...     shelf.parts(["cup", "cot"]).items
        ...     round(float(shelf.distribution("meals").marginals().sum()), 2)
        [('bib', 'meals', 0.41), ('cup', 'meals', 0.32)]
        {'sleep': ('cot',), 'meals': ('cup',)}
        0.73
        """
        k = whole_number("k", k, 0)
        parts, _ = self._sorted(basket, unknown)
        chosen = list(self) if categories is None else [self.category(slug).slug for slug in categories]
        denied, _ = self._sorted(deny, "error")
        found: list[tuple[tuple[float, ...], ShelfRecommendation]] = []
        for number, slug in enumerate(self):
            if slug in chosen:
                best = self._best(slug, parts.get(number, NO_ITEMS), k, denied.get(number, NO_ITEMS))
                items = self[slug].items
                for position, score, probability in zip(*(each[0].tolist() for each in best[:3]), strict=True):
                    if position < 0:
                        break
                    order = (math.isnan(score), -score, -probability, number, position)
                    found.append((order, ShelfRecommendation(items[position], score, probability, slug)))
        first: dict[str, ShelfRecommendation] = {}
        for _, each in sorted(found, key=lambda each: each[0]):
            first.setdefault(str(each.item), each)
        return list(first.values())[:k]

    def _best(self, slug: str, part: Ints, k: int, denied: Ints) -> Top:
        """Return the best items of one category; the answer for baskets without items of it is cached."""
        if len(part) or len(denied):
            candidate: Bools | None = None
            if len(denied):
                candidate = np.ones(len(self[slug].items), dtype=bool)
                candidate[denied] = False
            found = self._top(slug, part, k, candidate)
            if not found.possible.all():
                raise InputError(f"category {slug}: {IMPOSSIBLE}")
            return found
        if (slug, k) not in self._alone:
            self._alone[slug, k] = self._top(slug, part, k, None)
        return self._alone[slug, k]

    def _top(self, slug: str, part: Ints, k: int, candidate: Bools | None) -> Top:
        n = len(self[slug].items)
        return self.distribution(slug).top_next(PlainSets.of([part], n), min(k, n), candidate)
