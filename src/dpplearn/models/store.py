"""ModelStore: models by category, and their joint recommendations for baskets with items of several categories.

A store folder, as `fit_all` writes it:

    manifest.json                               the categories and their files; replaced last, in one step
    models/toys-<key>-<digest>.safetensors      files of the current and of the previous manifest; the key stands for
                                                the settings of the fit, the digest for the content
    .fit-all/lock                               held by the process that writes
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import PlainSets
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution, Top, no_items
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import StoreRecommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import Basket, SetModel
from dpplearn.models.model_file import load
from dpplearn.utils import text
from dpplearn.utils.files import MANIFEST, TEMPORARY, digest, manifest_folder, only_one, read_manifest, write_manifest
from dpplearn.utils.text import Facts, Part, TextTable

KIND, FORMAT = "store", 1
RESULTS = (
    "On test baskets. gain: log-likelihood per basket minus that of independent items, in nats. rank: percentile rank "
    "of a held-out item, 100 is best. loglik: mean log-likelihood. vs last: loglik minus that of the previous "
    "model, on the items of both."
)
WRITTEN_BY = "dpplearn fit-all"
SUFFIX = ".safetensors"
MODELS, WORK, LOCK = "models", ".fit-all", "lock"
UNNAMED = ".new-"  # prefix of a model file before its final name is known
MODEL_NAME = re.compile(r".+-[0-9a-f]{12}\.safetensors")  # as `save_model` names files
STORE_FOLDER = manifest_folder(KIND, WORK, WRITTEN_BY)

Model = DPP | Mixture
Entry = dict[str, Any]


@dataclass(frozen=True)
class StoreEntry:
    """One category of a store, as its manifest describes it.

    `slug` is the name in files and addresses. `share` is the fraction of baskets with an item of the category; None
    stands for the model's own P(Y ≠ ∅). `sha256` is the digest of the model file, "" if it was not recorded. `old` is
    the reason why the model of an earlier run was kept, "" if it was not.
    """

    slug: str
    name: str
    file: str  # relative to the store folder
    sha256: str = ""
    share: float | None = None
    old: str = ""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> StoreEntry:
        """Check one category of a manifest."""
        text = {name: entry.get(name) for name in ("slug", "file")}
        for name, value in text.items():
            if not isinstance(value, str) or not value:
                raise InputError(f"{name} of a category in the manifest must be text, got {value!r}; run fit-all again")
        share = entry.get("share")
        if share is not None and not (isinstance(share, int | float) and 0 < share <= 1):
            raise InputError(
                f"share of category {entry['slug']} must be between 0 and 1, got {share!r}; run fit-all again"
            )
        name, sha256, old = (str(entry.get(each) or "") for each in ("name", "sha256", "old"))
        return cls(entry["slug"], name or entry["slug"], entry["file"], sha256, share, old)


class ItemsByCategory(NamedTuple):
    """The items of a basket by category, and those that no category has."""

    items: dict[str, tuple[Label, ...]]
    unknown: tuple[Label, ...]


class Ranking(NamedTuple):
    """The best items for each basket, best first. Missing entries have item −1."""

    items: Ints  # (n_baskets, k) positions in the catalogue of the store
    scores: Floats  # (n_baskets, k)
    probabilities: Floats  # (n_baskets, k)
    categories: Ints  # (n_baskets, k) positions in list(store)
    possible: Bools  # (n_baskets,) whether the basket has a positive probability


class ModelStore(Mapping[str, Model]):
    """Models by category: those of a folder that `fit_all` wrote, of a folder of model files, or of a single file.

    Categories are modelled as independent. A basket holds an item of a category with probability `share`; given that,
    the items of the category have the distribution of its model. Scores and probabilities of different categories are
    therefore comparable.

    Models are loaded on first use. A store does not change after it is opened; open it again to see a new version.

    Parameters
    ----------
    folder : path
    manifest : mapping
        Its content; `categories` lists the fields of `StoreEntry`.
    models : mapping of str to model, optional
        Models that are already in memory, by slug.
    fitted : tuple of str
        Categories fitted by the call of `fit_all` that returned this store.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     dl.DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"]).save(f"{folder}/sleep.safetensors")
    ...     dl.DPP.from_K([[0.5, 0.2], [0.2, 0.4]], ["bib", "cup"]).save(f"{folder}/meals.safetensors")
    ...     store = ModelStore.open(folder)
    ...     [(each.item, each.category, round(each.probability, 2)) for each in store.recommend(["crib"], k=2)]
    ...     store.by_category(["cup", "cot"]).items
    [('bib', 'meals', 0.5), ('cup', 'meals', 0.4)]
    {'meals': ('cup',), 'sleep': ('cot',)}
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        manifest: Mapping[str, Any],
        models: Mapping[str, Model] | None = None,
        fitted: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.manifest, self.fitted = Path(folder), manifest, fitted
        self._entries = {each.slug: each for each in map(StoreEntry.of, manifest["categories"])}
        self._models: dict[str, Model] = dict(models or {})
        self._distributions: dict[str, SetDistribution] = {}
        self._absent: dict[int, Ranking] = {}

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Open a store.

        Parameters
        ----------
        path : path
            A folder that `fit_all` wrote, a folder of model files, or one model file.

        Returns
        -------
        ModelStore

        Raises
        ------
        InputError
            If there is no such file or folder, if the folder has no models, or if its manifest is not valid.
        """
        source = Path(path)
        if not source.is_dir():
            if not source.exists():
                what = "name a model store, a folder of model files or a model file"
                raise InputError(f"{source} does not exist; {what}")
            return cls(source.parent, {"categories": [_file_entry(source)]})
        if (source / MANIFEST).exists():
            manifest = read_manifest(source, KIND, FORMAT, WRITTEN_BY, "run fit-all again")
            entries = manifest.get("categories")
            if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
                raise InputError(f"{source / MANIFEST} does not list categories; run fit-all again")
            return cls(source, manifest)
        files = sorted(source.glob(f"*{SUFFIX}"))
        if not files:
            raise InputError(f"{source} has neither {MANIFEST} nor {SUFFIX} files; name a folder of models")
        return cls(source, {"categories": list(map(_file_entry, files))})

    @classmethod
    def of_model(cls, model: SetModel) -> Self:
        """Return a store with one model in memory, whose only category is called "model"."""
        assert isinstance(model, DPP | Mixture)
        return cls("", {"categories": [{"slug": "model", "file": "model"}]}, {"model": model})

    @property
    def has_categories(self) -> bool:
        """Whether recommendations name a category; not for a single model."""
        return len(self) > 1 or "kind" in self.manifest

    def __repr__(self) -> str:
        return f"ModelStore({str(self.folder)!r}: {', '.join(self) or 'empty'})"

    # Models.

    def __getitem__(self, slug: str) -> Model:
        if slug not in self._models:
            path = self.folder / self.entry(slug).file
            if not path.is_file():
                raise InputError(f"{path} does not exist; if the store was written again since, open it again")
            self._models[slug] = load(path)
        return self._models[slug]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, slug: object) -> bool:  # the method of Mapping would load the model
        return slug in self._entries

    @property
    def entries(self) -> tuple[StoreEntry, ...]:
        """All categories, in the order of the manifest."""
        return tuple(self._entries.values())

    def entry(self, slug: str) -> StoreEntry:
        """Return one category."""
        if slug not in self._entries:
            known = ", ".join(self._entries) or "none"
            raise InputError(f"unknown category {slug!r}; {self.folder} has {known}")
        return self._entries[slug]

    @property
    def versions(self) -> dict[str, str]:
        """The SHA-256 of each model file, by slug."""
        return {each.slug: each.sha256 or digest(self.folder / each.file) for each in self.entries}

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The evaluation of each model by `fit_all`, by slug.

        It holds the log-likelihood, the gain over independent items and the percentile rank on the test baskets
        (`on` is "test") or, without them, on the training baskets, and a comparison with the `last` model.
        """
        return {each["slug"]: each["result"] for each in self.manifest["categories"] if "result" in each}

    @property
    def failed(self) -> dict[str, str]:
        """The categories that `fit_all` could not fit, with the reason. Their earlier models are kept."""
        return {each["slug"]: each["reason"] for each in self.manifest.get("failed", ())}

    def verify(self) -> list[str]:
        """Return the slugs whose model file is missing or differs from the digest in the manifest."""

        def intact(each: StoreEntry) -> bool:
            path = self.folder / each.file
            return path.is_file() and each.sha256 in ("", digest(path))

        return [each.slug for each in self.entries if not intact(each)]

    # Reports.

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest, with the categories fitted by this call of `fit_all`, as plain data for JSON."""
        internal = {"kind", "format", "previous"}
        found = {name: value for name, value in self.manifest.items() if name not in internal}
        return {"folder": str(self.folder), "fitted": list(self.fitted), **found}

    def tables(self) -> Iterator[Part]:
        """Yield the models with their evaluation by `fit_all`, and the categories that could not be fitted."""
        categories = self.manifest["categories"]
        n_old = sum(bool(each.get("old")) for each in categories)
        unchanged = len(categories) - len(self.fitted) - n_old
        fitted = f"{len(self.fitted):,} fitted, {unchanged:,} unchanged, {len(self.failed):,} failed"
        yield Facts("Model store", [("folder", str(self.folder)), ("categories", fitted)])
        columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "model"]
        yield TextTable("Models", RESULTS, columns, [self._row(each) for each in categories if "result" in each])
        if any(each["on"] == "train" for each in self.results.values()):
            yield "* There are no test baskets: measured on the training baskets, which favours the model."
        for slug, reason in self.failed.items():
            kept = "its previous model is kept" if slug in self else "it has no model"
            yield f"{slug} could not be fitted; {kept}: {reason}"
        for each in categories:
            for note in each.get("notes", ()) if each["slug"] in self.fitted else ():
                yield f"{each['slug']}: {note}"

    def _row(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        def value(name: str) -> float | None:  # minus infinity is text in a manifest
            return None if entry["result"][name] is None else float(entry["result"][name])

        last = entry["result"]["last"]
        return (
            entry["slug"],
            text.count(entry["n_items"]),
            text.count(entry["n_baskets"]["train"]),
            text.signed(value("gain"), 3),
            text.number(value("percentile_rank"), 1),
            text.number(value("log_likelihood"), 3) + ("*" if entry["result"]["on"] == "train" else ""),
            text.signed(float(last["difference"]), 3) if last and last["difference"] is not None else "",
            "old" if entry.get("old") else "new" if entry["slug"] in self.fitted else "kept",
        )

    # Items.

    @cached_property
    def catalogue(self) -> Catalogue:
        """All items, each once. Labels are text, unless all are integers."""
        labels = [label for slug in self for label in self[slug].items]
        integers = all(isinstance(label, int) for label in labels)
        return Catalogue.of(dict.fromkeys(labels if integers else map(str, labels)))

    @cached_property
    def _places(self) -> _Places:
        items = [self.catalogue.translation(self[slug].catalogue) for slug in self]
        sizes = list(map(len, items))
        item, category = np.concatenate(items), np.repeat(np.arange(len(sizes)), sizes)
        position = np.concatenate([np.arange(size) for size in sizes])
        order, counts = np.argsort(item, kind="stable"), np.bincount(item, minlength=len(self.catalogue))
        return _Places(category[order], position[order], np.cumsum(counts) - counts, counts, items)

    def by_category(self, basket: Basket, *, unknown: str = "error") -> ItemsByCategory:
        """Return the items of a basket by category. An item of two categories is in both.

        Parameters
        ----------
        basket : iterable of labels
        unknown : {"error", "drop"}
            What to do with items that no category has.

        Returns
        -------
        ItemsByCategory
        """
        known, dropped = known_items(basket, self.catalogue, unknown)
        _, category, position = self._places.of(np.sort(self.catalogue.positions(known)))
        slugs = list(self)
        parts = {number: np.sort(position[category == number]) for number in np.unique(category).tolist()}
        return ItemsByCategory(
            {slugs[number]: self[slugs[number]].catalogue.select(part) for number, part in parts.items()}, dropped
        )

    def distribution(self, slug: str) -> SetDistribution:
        """Return the distribution of the items of a category in any basket: empty with probability 1 − share."""
        if slug not in self._distributions:
            share, own = self.entry(slug).share, self[slug].distribution
            self._distributions[slug] = own if share is None else own.with_p_empty(1 - share)
        return self._distributions[slug]

    # Recommendations.

    def recommend(
        self,
        basket: Basket,
        k: int = 10,
        *,
        categories: Sequence[str] | None = None,
        deny: Basket = (),
        unknown: str = "error",
    ) -> list[StoreRecommendation]:
        """Return the best items of all categories to add to a basket.

        Items are ranked by P(A ∪ i)/P(A), where P is the joint distribution over all categories.

        Parameters
        ----------
        basket : iterable of labels
        k : int, default 10
            Maximum number of items.
        categories : sequence of str, optional
            Categories to choose from. By default all.
        deny : iterable of labels, optional
            Items to leave out.
        unknown : {"error", "drop"}
            What to do with items of the basket that no category has.

        Returns
        -------
        list of StoreRecommendation
            Best first. An item of two categories is listed once, with the category where its score is higher.

        Raises
        ------
        InputError
            If the basket has probability zero.
        """
        known = np.sort(self.catalogue.positions(known_items(basket, self.catalogue, unknown)[0]))
        row = Baskets.from_pairs(np.zeros(len(known), np.int64), known, 1, self.catalogue)
        found = self.recommend_many(row, k, categories=categories, deny=deny, threads=1)
        if not found.possible[0]:
            raise InputError(IMPOSSIBLE)
        slugs = list(self)
        columns = (each[0, found.items[0] >= 0].tolist() for each in found[:4])
        return [
            StoreRecommendation(self.catalogue.labels[item], score, probability, slugs[category])
            for item, score, probability, category in zip(*columns, strict=True)
        ]

    def recommend_many(
        self,
        baskets: Baskets,
        k: int = 10,
        *,
        categories: Sequence[str] | None = None,
        deny: Basket = (),
        threads: int | None = None,
    ) -> Ranking:
        """Return the best items to add to each of many baskets.

        Parameters
        ----------
        baskets : Baskets
            Items are matched by label; all must be in the catalogue of the store.
        k, categories, deny
            As for `recommend`.
        threads : int, optional
            By default one per core.

        Returns
        -------
        Ranking
            One row per basket. Rows of baskets with probability zero have no items.
        """
        k = min(whole_number("k", k, 0), len(self.catalogue))
        chosen = set(self) if categories is None else {self.entry(slug).slug for slug in categories}
        query = _Query(k, [slug in chosen for slug in self], self.catalogue.positions(deny), threads)
        if len(self) == 1:  # nothing to merge
            top = self._top(0, baskets.over(self.catalogue), query)
            top.items[~top.possible] = -1
            return Ranking(*top[:3], np.zeros_like(top.items), top.possible)
        parts = self._rank_parts(baskets.over(self.catalogue), query)
        absent = self._rank_absent(query)
        found = _empty_ranking(len(baskets), k)
        n_parts = np.bincount(parts.rows, minlength=len(baskets))
        first = np.cumsum(n_parts) - n_parts
        present = np.zeros((len(baskets), len(self)), bool)
        present[parts.rows, parts.categories] = True
        found.possible[parts.rows[~parts.top.possible]] = False
        most = int(self._places.counts.max())  # categories of one item; each may take a place of the k
        for count in np.unique(n_parts).tolist():  # baskets with equally many categories are merged together
            here = np.flatnonzero(n_parts == count)
            which = first[here][:, None] + np.arange(count)  # (baskets, parts)
            merged = _merge(parts, which, _without(absent, present[here], k * most), k, repeated=most > 1)
            for to, values in zip(found[:4], merged, strict=True):
                to[here, : values.shape[1]] = values
        found.items[~found.possible] = -1
        return found

    def _rank_parts(self, baskets: Baskets, query: _Query) -> _Parts:
        """Rank the items of each category for each basket with items of that category."""
        row, category, position = self._places.of(baskets.indices)
        row = np.repeat(np.arange(len(baskets)), baskets.sizes)[row]
        found = []
        for number in np.unique(category).tolist():
            here = category == number
            rows, compact = np.unique(row[here], return_inverse=True)
            catalogue = self[list(self)[number]].catalogue
            sets = Baskets.from_pairs(compact, position[here], len(rows), catalogue)
            found.append((rows, np.full(len(rows), number), self._top(number, sets, query)))
        if not found:
            return _Parts(np.zeros(0, np.int64), np.zeros(0, np.int64), no_items(0, query.k))
        rows, numbers = (np.concatenate(each) for each in list(zip(*found, strict=True))[:2])
        order = np.lexsort((numbers, rows))
        top = (np.concatenate(each)[order] for each in zip(*(top for *_, top in found), strict=True))
        return _Parts(rows[order], numbers[order], Top(*top))

    def _top(self, number: int, sets: Baskets | PlainSets, query: _Query) -> Top:
        """Return the k best items of one category, as positions in the catalogue of the store."""
        found, items = no_items(len(sets), query.k), self._places.items[number]
        candidate = np.full(len(items), query.chosen[number]) & ~np.isin(items, query.denied)
        everything = bool(candidate.all())
        few = self.distribution(list(self)[number]).top_next(
            sets, min(query.k, len(items)), None if everything else candidate, query.threads
        )
        for to, values in zip(found[:3], few[:3], strict=True):
            to[:, : values.shape[1]] = values
        return found._replace(items=np.append(items, -1)[found.items], possible=few.possible)

    def _rank_absent(self, query: _Query) -> Ranking:
        """Rank the best items of every category for baskets without items of it; one row. Cached for plain queries."""
        plain = all(query.chosen) and not len(query.denied)
        if plain and query.k in self._absent:
            return self._absent[query.k]
        columns: list[tuple[npt.NDArray[Any], ...]] = []
        for number in range(len(self)):
            n = len(self._places.items[number])
            top = self._top(number, PlainSets.of([np.zeros(0, np.int64)], n), query)
            best = [each[0, top.items[0] >= 0] for each in top[:3]]
            columns.append((*best, np.full(len(best[0]), number)))
        items, scores, probabilities, categories = (np.concatenate(each) for each in zip(*columns, strict=True))
        order = np.lexsort((categories, -probabilities, -scores))
        row = items[order][None], scores[order][None], probabilities[order][None], categories[order][None]
        found = Ranking(*row, np.ones(1, bool))
        if plain:
            self._absent[query.k] = found
        return found

    # Writing.

    def replace(self, slug: str, model: SetModel) -> ModelStore:
        """Replace the model of a category, in one step for whoever opens the store.

        Parameters
        ----------
        slug : str
        model : DPP or Mixture

        Returns
        -------
        ModelStore
            The new version.

        Raises
        ------
        InputError
            If another process has replaced the model since this store was opened.
        """
        version = self.entry(slug).sha256
        with open_for_writing(self.folder) as now:
            if now is None or slug not in now or now.entry(slug).sha256 != version:
                raise InputError(f"category {slug} of {self.folder} was changed by another process; open it again")
            file = save_model(model, self.folder, slug)
            changed = {"file": file, "sha256": digest(self.folder / file), "n_items": len(model.items)}
            entries = [{**each, **changed} if each["slug"] == slug else each for each in now.manifest["categories"]]
            return write_store(self.folder, {**now.manifest, "categories": entries}, now)


def save_model(model: SetModel, folder: Path, stem: str) -> str:
    """Write a model into a store folder under the name `stem` and its digest. Return the relative path.

    The digest prevents that one of two writers, such as a retried job, changes a file that the other has recorded.
    """
    temporary = folder / MODELS / f"{UNNAMED}{stem}-{os.getpid()}"
    model.save(temporary)
    file = f"{MODELS}/{stem}-{digest(temporary)[:12]}{SUFFIX}"
    os.replace(temporary, folder / file)
    return file


def saved_models(folder: Path, stem: str) -> Iterator[tuple[str, SetModel]]:
    """Yield the models that `save_model` wrote under `stem`, with their relative paths. Damaged files are skipped."""
    for path in sorted((folder / MODELS).glob(f"{stem}-*{SUFFIX}")):
        with suppress(InputError):
            yield f"{MODELS}/{path.name}", load(path)


@contextmanager
def open_for_writing(folder: Path) -> Iterator[ModelStore | None]:
    """Lock a store folder, which is created if necessary, and open the store in it. None if there is no valid store."""
    new = not folder.exists()
    try:
        (folder / WORK).mkdir(parents=True, exist_ok=True)  # first, as it identifies the folder after a kill
        (folder / MODELS).mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
    refusal = f"another process is writing to the store {folder}; wait until it has finished, or choose another folder"
    with only_one(folder / WORK / LOCK, refusal):
        try:
            yield _open_or_none(folder)
        except InputError:
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def write_store(
    folder: Path, manifest: Mapping[str, Any], last: ModelStore | None, fitted: tuple[str, ...] = ()
) -> ModelStore:
    """Replace the manifest, unless nothing changed, and remove files that neither it nor its predecessor names.

    Files of the predecessor stay, because a reader may have opened it just now. Call within `open_for_writing`.
    """
    compared = {name: value for name, value in manifest.items() if name != "versions"}
    if last is not None and {name: last.manifest.get(name) for name in compared} == compared:
        whole = dict(last.manifest)
    else:
        before = set(_files(last.manifest)) if last is not None else set()
        generation = 1 + (last.manifest.get("generation", 0) if last is not None else 0)
        previous = sorted(before - set(_files(manifest)))
        whole = {**manifest, "generation": generation, "previous": previous}
        write_manifest(folder, whole)
    kept = {*_files(whole), *whole["previous"]}
    for path in (folder / MODELS).iterdir():
        leftover = path.name.startswith(UNNAMED) or TEMPORARY.fullmatch(path.name)  # of a killed worker
        if (leftover or MODEL_NAME.fullmatch(path.name)) and f"{MODELS}/{path.name}" not in kept:
            path.unlink(missing_ok=True)
    return ModelStore(folder, whole, fitted=fitted)


def _open_or_none(folder: Path) -> ModelStore | None:
    try:
        return ModelStore.open(folder) if (folder / MANIFEST).exists() else None
    except InputError:
        return None


def _files(manifest: Mapping[str, Any]) -> list[str]:
    return [each["file"] for each in manifest["categories"]]


def _file_entry(path: Path) -> Entry:
    return {"slug": path.name.removesuffix(SUFFIX), "file": fspath(path.name)}


class _Places(NamedTuple):
    """Where each item of the store's catalogue is. An item of two categories has two places."""

    category: Ints  # (n_places,) by item
    position: Ints  # (n_places,) in the catalogue of that category
    first: Ints  # (n_items,) the first place of the item
    counts: Ints  # (n_items,) how many places it has
    items: list[Ints]  # by category, the item at each of its positions

    def of(self, items: npt.NDArray[np.integer[Any]]) -> tuple[Ints, Ints, Ints]:
        """Return the places of some items: index into `items`, category, position."""
        counts = self.counts[items]
        which = np.repeat(np.arange(len(items)), counts)
        place = np.repeat(self.first[items] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return which, self.category[place], self.position[place]


class _Query(NamedTuple):
    """What `recommend_many` is asked for."""

    k: int
    chosen: list[bool]  # by category
    denied: Ints
    threads: int | None


class _Parts(NamedTuple):
    """The best items of a category for a basket with items of it, by row and then by category."""

    rows: Ints  # (n_parts,)
    categories: Ints  # (n_parts,)
    top: Top  # (n_parts, k)


def _empty_ranking(n_baskets: int, k: int) -> Ranking:
    none = no_items(n_baskets, k)
    return Ranking(*none[:3], np.full((n_baskets, k), -1), none.possible)


def _merge(parts: _Parts, which: Ints, absent: Ranking, k: int, repeated: bool) -> list[npt.NDArray[Any]]:
    """Return the k best of the parts `which` (baskets, parts) of each basket and of its absent categories."""
    shape = (*which.shape, parts.top.items.shape[1])
    present = [values[which] for values in parts.top[:3]]
    present.append(np.broadcast_to(parts.categories[which][:, :, None], shape))
    both = [
        np.concatenate([values.reshape(len(which), -1), other], axis=1)
        for values, other in zip(present, absent[:4], strict=True)
    ]
    order = _order(both, both[0].shape[1] if repeated else k)
    both = [np.take_along_axis(values, order, axis=1) for values in both]
    return [values[:, :k] for values in (_without_repeats(both) if repeated else both)]


def _without(absent: Ranking, present: Bools, width: int) -> Ranking:
    """Return for each basket the first `width` entries of categories of which it has no item."""
    free = ~present[:, absent.categories[0]]  # (baskets, entries)
    free &= np.cumsum(free, axis=1) <= width
    row, entry = np.nonzero(free)
    column = np.arange(len(row)) - np.searchsorted(row, row)
    found = _empty_ranking(len(present), min(width, absent.items.shape[1]))
    for to, values in zip(found[:4], absent[:4], strict=True):
        to[row, column] = values[0, entry]
    return found


def _order(columns: Sequence[npt.NDArray[Any]], n_exact: int) -> Ints:
    """Sort each row by score, then probability, then category; NaN last. Items of one category are sorted already.

    Ties after the first `n_exact` columns are left as they are. One sort by score decides rows without ties; only the
    others need the three-key sort, which takes four times as long.
    """
    _, scores, probabilities, categories = columns
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order[:, : n_exact + 1], axis=1)
    tied = (ranked[:, 1:] == ranked[:, :-1]) | np.isnan(ranked[:, 1:])
    rows = np.flatnonzero(tied.any(axis=1) | np.isnan(ranked[:, :1]).any(axis=1))
    order[rows] = np.lexsort((categories[rows], -probabilities[rows], -scores[rows]), axis=1)
    return order


def _without_repeats(columns: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Keep the first entry of each item in a row; item −1 at the end of the row replaces the others."""
    items, *others = columns
    by_item = np.argsort(items, axis=1, kind="stable")
    ranked = np.take_along_axis(items, by_item, axis=1)
    repeated = np.zeros(items.shape, bool)
    np.put_along_axis(repeated, by_item[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    order = np.argsort(repeated, axis=1, kind="stable")
    return [np.take_along_axis(each, order, axis=1) for each in (np.where(repeated, -1, items), *others)]
