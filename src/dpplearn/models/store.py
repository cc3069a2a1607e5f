"""ModelStore: models by category, and their joint recommendations for baskets with items of several categories.

A store folder, as `fit_all` writes it:

    manifest.json                               the categories and their files; replaced last, in one step
    models/toys-<key>-<digest>.safetensors      files of the current and of the previous manifest; the key stands for
                                                the settings of the fit, the digest for the content
    .fit-all/lock                               held by the process that writes
"""

from __future__ import annotations

import hashlib
import re
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
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution, Top, no_items
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import StoreRecommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import Basket, SetModel
from dpplearn.models.model_file import content_of, load
from dpplearn.utils import text
from dpplearn.utils.files import MANIFEST, OutputFolder, digest, replace_file
from dpplearn.utils.text import Facts, Part, TextTable

RESULTS = (
    "On test baskets. gain: log-likelihood per basket minus that of independent items, in nats. rank: percentile rank "
    "of a held-out item, 100 is best. loglik: mean log-likelihood. vs last: loglik minus that of the previous "
    "model, on the items of both."
)
SUFFIX = ".safetensors"
MODELS = "models"
MODEL_NAME = re.compile(r".+-[0-9a-f]{12}\.safetensors")  # as `save_model` names files
STORE_FOLDER = OutputFolder("store", 1, "fit-all")

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
        self._absent: dict[int, list[npt.NDArray[Any]]] = {}

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
            manifest = STORE_FOLDER.read(source)
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
            raise InputError(f"unknown category {slug!r}; expected one of {known}")
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
        allowed = np.ones(len(self.catalogue), bool)
        allowed[self.catalogue.positions(deny)] = False
        query = _Query(k, np.array([slug in chosen for slug in self]), allowed, threads)
        baskets = baskets.over(self.catalogue)
        if len(self) == 1:  # nothing to merge
            top = self._top(0, baskets, query)
            top.items[~top.possible] = -1
            return Ranking(*top[:3], np.zeros_like(top.items), top.possible)
        rows, numbers, parts = self._rank_parts(baskets, query)
        absent = self._rank_absent(query)
        present = np.zeros((len(baskets), len(self)), bool)
        present[rows, numbers] = True
        n_parts = present.sum(axis=1)
        first, by_row = np.cumsum(n_parts) - n_parts, np.argsort(rows, kind="stable")
        found = Ranking(*no_items(len(baskets), k)[:3], np.full((len(baskets), k), -1), np.ones(len(baskets), bool))
        most = int(self._places.counts.max())  # categories of one item; each may take a place of the k
        for count in np.unique(n_parts).tolist():  # baskets with equally many categories are merged together
            here = np.flatnonzero(n_parts == count)
            which = by_row[first[here][:, None] + np.arange(count)]  # (baskets, parts)
            own = [values[which].reshape(len(here), -1) for values in parts[:3]]
            own.append(np.repeat(numbers[which], k, axis=1))
            # At most k · count of these entries are of categories that a basket has items of.
            others = [np.repeat(values[:, : k * (most + count)], len(here), axis=0) for values in absent]
            others[0][np.take_along_axis(present[here], others[3], axis=1)] = -1
            merged = _best([np.concatenate(both, axis=1) for both in zip(own, others, strict=True)])
            if most > 1:
                merged = _best(_without_repeats(merged))
            for to, values in zip(found[:4], merged, strict=True):
                to[here] = values[:, :k]
        found.possible[rows[~parts.possible]] = False
        found.items[~found.possible] = -1
        return found

    def _rank_parts(self, baskets: Baskets, query: _Query) -> tuple[Ints, Ints, Top]:
        """Rank the items of each category for each basket with items of it. Return rows, categories and items."""
        entry, category, position = self._places.of(baskets.indices)
        row = np.repeat(np.arange(len(baskets)), baskets.sizes)[entry]
        rows, numbers, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [no_items(0, query.k)]
        for number, slug in enumerate(self):
            here = category == number
            if here.any():
                some, compact = np.unique(row[here], return_inverse=True)
                sets = Baskets.from_pairs(compact, position[here], len(some), self[slug].catalogue)
                rows.append(some)
                numbers.append(np.full(len(some), number))
                found.append(self._top(number, sets, query))
        return np.concatenate(rows), np.concatenate(numbers), Top(*map(np.concatenate, zip(*found, strict=True)))

    def _rank_absent(self, query: _Query) -> list[npt.NDArray[Any]]:
        """Rank the best items of every category for baskets without items of it; one row. Cached for plain queries."""
        plain = bool(query.chosen.all() and query.allowed.all())
        if not plain or query.k not in self._absent:
            nothing = np.zeros(0, np.int64)
            found = [
                self._top(number, sets_of([nothing], len(items)), query)
                for number, items in enumerate(self._places.items)
            ]
            columns = [np.concatenate(column, axis=1) for column in list(zip(*found, strict=True))[:3]]
            ranked = _best([*columns, np.repeat(np.arange(len(self)), query.k)[None]])
            if not plain:
                return ranked
            self._absent[query.k] = ranked
        return self._absent[query.k]

    def _top(self, number: int, sets: Baskets, query: _Query) -> Top:
        """Return the k best items of one category, as positions in the catalogue of the store."""
        items = self._places.items[number]
        candidate = query.allowed[items] & query.chosen[number]
        top = self.distribution(list(self)[number]).top_next(
            sets, query.k, None if candidate.all() else candidate, query.threads
        )
        return top._replace(items=np.append(items, -1)[top.items])

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
    content = content_of(model)
    file = f"{MODELS}/{stem}-{hashlib.sha256(content).hexdigest()[:12]}{SUFFIX}"
    replace_file(folder / file, content)
    return file


def saved_models(folder: Path, stem: str) -> Iterator[tuple[str, SetModel]]:
    """Yield the models that `save_model` wrote under `stem`, with their relative paths. Damaged files are skipped."""
    for path in sorted((folder / MODELS).glob(f"{stem}-*{SUFFIX}")):
        with suppress(InputError):
            yield f"{MODELS}/{path.name}", load(path)


@contextmanager
def open_for_writing(folder: Path) -> Iterator[ModelStore | None]:
    """Lock a store folder, which is created if necessary, and open the store in it. None if there is no valid store."""
    with STORE_FOLDER.locked(folder):
        try:
            (folder / MODELS).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
        yield _open_or_none(folder)


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
        STORE_FOLDER.write(folder, whole)
    kept = {*_files(whole), *whole["previous"]}
    for path in (folder / MODELS).iterdir():
        if MODEL_NAME.fullmatch(path.name) and f"{MODELS}/{path.name}" not in kept:
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
    """Places of the items of the store's catalogue. An item of two categories has two places."""

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
    """Arguments of `recommend_many`."""

    k: int
    chosen: Bools  # (n_categories,)
    allowed: Bools  # (n_items,)
    threads: int | None


def _best(columns: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Sort the entries (items, scores, probabilities, categories) of each row; item −1 and NaN come last.

    The order is by score, then probability, then category, then place in the row.
    """
    items, scores, probabilities, categories = columns
    by_probability, by_score = (np.where(items < 0, np.nan, -values) for values in (probabilities, scores))
    order = np.lexsort((categories, by_probability, by_score), axis=1)
    return [np.take_along_axis(values, order, axis=1) for values in columns]


def _without_repeats(columns: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Replace an item by −1 after its first place in a row."""
    items, *others = columns
    by_item = np.argsort(items, axis=1, kind="stable")
    ranked = np.take_along_axis(items, by_item, axis=1)
    repeated = np.zeros(items.shape, bool)
    np.put_along_axis(repeated, by_item[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return [np.where(repeated, -1, items), *others]
