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
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import NO_ITEMS, Bools, Ints, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution, Top
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import StoreRecommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import Basket, SetModel
from dpplearn.models.model_file import content_of, load
from dpplearn.utils import text
from dpplearn.utils.files import MANIFEST, OutputFolder, digest, replace_file, writing
from dpplearn.utils.text import Facts, Part, TextTable

RESULTS = (
    "on: test baskets, or without any the training baskets, which favour the model. gain: log-likelihood per basket "
    "minus that of independent items, in nats. rank: percentile rank of a held-out item, 100 is best. loglik: mean "
    "log-likelihood. vs last: loglik minus that of the previous model, on the items of both."
)
SUFFIX = ".safetensors"
MODELS = "models"
MODEL_NAME = re.compile(r".+-[0-9a-f]{12}\.safetensors")  # as `save_model` names files
STORE_FOLDER = OutputFolder("store", 1, "fit-all")

# An item recommended for a basket; item and category are positions in the catalogue and in the list of categories.
WHOLE = ("basket", "rank", "item", "category")
RANKED_ITEM = np.dtype([*((name, np.int64) for name in WHOLE), ("score", float), ("probability", float)])

Model = DPP | Mixture
Entry = dict[str, Any]
RankedItems = npt.NDArray[Any]  # of RANKED_ITEM


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
        slug, file, share = entry.get("slug"), entry.get("file"), entry.get("share")
        valid = share is None or (isinstance(share, int | float) and 0 < share <= 1)
        if not (valid and isinstance(slug, str) and slug and isinstance(file, str) and file):
            raise InputError(
                "a category in the manifest must have slug and file as text and a share between 0 and 1, got "
                f"slug={slug!r}, file={file!r}, share={share!r}; run fit-all again"
            )
        name, sha256, old = (str(entry.get(each) or "") for each in ("name", "sha256", "old"))
        return cls(slug, name or slug, file, sha256, share, old)


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
    ...     store.by_category(["cup", "cot"])
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
        if (source / MANIFEST).exists():
            manifest = STORE_FOLDER.read(source)
            entries = manifest.get("categories")
            if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
                raise InputError(f"{source / MANIFEST} does not list categories; run fit-all again")
            return cls(source, manifest)
        folder, files = (source, sorted(source.glob(f"*{SUFFIX}"))) if source.is_dir() else (source.parent, [source])
        if not files or not files[0].exists():
            raise InputError(f"{source} is not a model file, a folder of {SUFFIX} files or a store of dpplearn fit-all")
        entries = [{"slug": file.name.removesuffix(SUFFIX), "file": file.name} for file in files]
        return cls(folder, {"categories": entries})

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
            self._models[slug] = load(self.folder / self.entry(slug).file)
        return self._models[slug]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, slug: object) -> bool:  # the method of Mapping would load the model
        return slug in self._entries

    def entry(self, slug: str) -> StoreEntry:
        """Return one category."""
        if slug not in self._entries:
            known = ", ".join(self._entries) or "none"
            raise InputError(f"unknown category {slug!r}; expected one of {known}")
        return self._entries[slug]

    @property
    def versions(self) -> dict[str, str]:
        """The SHA-256 of each model file, by slug."""
        return {each.slug: each.sha256 or digest(self.folder / each.file) for each in self._entries.values()}

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

        def damaged(each: StoreEntry) -> bool:
            path = self.folder / each.file
            return not path.is_file() or each.sha256 not in ("", digest(path))

        return [slug for slug, each in self._entries.items() if damaged(each)]

    # Reports.

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest, with the categories fitted by this call of `fit_all`, as plain data for JSON."""
        return {"folder": str(self.folder), "fitted": list(self.fitted), **self.manifest}

    def tables(self) -> Iterator[Part]:
        """Yield the models with their evaluation by `fit_all`, and the categories that could not be fitted."""
        categories = self.manifest["categories"]
        fitted = f"{len(categories):,}, of which {len(self.fitted):,} fitted now; {len(self.failed):,} failed"
        yield Facts("Model store", [("folder", str(self.folder)), ("categories", fitted)])
        columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "on", "model"]
        yield TextTable("Models", RESULTS, columns, [self._row(each) for each in categories if "result" in each])
        for slug, reason in self.failed.items():
            kept = "its previous model is kept" if slug in self else "it has no model"
            yield f"{slug} could not be fitted; {kept}: {reason}"
        for each in categories:
            for note in each.get("notes", ()) if each["slug"] in self.fitted else ():
                yield f"{each['slug']}: {note}"

    def _row(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        result = entry["result"]
        last = (result["last"] or {}).get("difference")
        values = (result["gain"], result["percentile_rank"], result["log_likelihood"], last)
        gain, rank, log_likelihood, change = (None if each is None else float(each) for each in values)
        return (
            entry["slug"],
            text.count(entry["n_items"]),
            text.count(entry["n_baskets"]["train"]),
            text.signed(gain, 3),
            text.number(rank, 1),
            text.number(log_likelihood, 3),
            text.signed(change, 3),
            result["on"],
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
    def _items(self) -> list[Ints]:
        """The positions in the catalogue of the store of the items of each category."""
        return [self.catalogue.translation(self[slug].catalogue) for slug in self]

    @cached_property
    def _places(self) -> Ints:
        """The categories of each item and its positions there, (2, most, n_items); −1 where it has fewer than most."""
        n_found = np.zeros(len(self.catalogue), np.int64)
        most = np.bincount(np.concatenate(self._items)).max()
        category, position = places = np.full((2, most, len(self.catalogue)), -1)
        for number, items in enumerate(self._items):
            category[n_found[items], items], position[n_found[items], items] = number, np.arange(len(items))
            n_found[items] += 1
        return read_only(places)

    def by_category(self, basket: Basket, *, unknown: str = "error") -> dict[str, tuple[Label, ...]]:
        """Return the items of a basket by category. An item of two categories is in both.

        Parameters
        ----------
        basket : iterable of labels
        unknown : {"error", "drop"}
            What to do with items that no category has.
        """
        held = self.catalogue.positions(known_items(basket, self.catalogue, unknown)[0])
        parts = {slug: np.isin(items, held) for slug, items in zip(self, self._items, strict=True)}
        return {slug: self[slug].catalogue.select(np.flatnonzero(part)) for slug, part in parts.items() if part.any()}

    @cached_property
    def distributions(self) -> dict[str, SetDistribution]:
        """The distribution of the items of each category in any basket: empty with probability 1 − share."""
        found = {slug: model.distribution for slug, model in self.items()}
        for slug, each in self._entries.items():
            if each.share is not None:
                found[slug] = found[slug].with_p_empty(1 - each.share)
        return found

    # Recommendations.

    def recommend(
        self,
        basket: Basket,
        k: int = 10,
        *,
        categories: Sequence[str] | None = None,
        deny: Basket | None = None,
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
        found, possible = self.recommend_many(row, k, categories=categories, deny=deny, threads=1)
        if not possible[0]:
            raise InputError(IMPOSSIBLE)
        slugs, labels = list(self), self.catalogue.labels
        return [
            StoreRecommendation(labels[item], score, probability, slugs[category])
            for _, _, item, category, score, probability in found.tolist()
        ]

    def recommend_many(
        self,
        baskets: Baskets,
        k: int = 10,
        *,
        categories: Sequence[str] | None = None,
        deny: Basket | None = None,
        threads: int | None = None,
    ) -> tuple[RankedItems, Bools]:
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
        found : structured array
            One entry per recommended item, with the fields `basket` (its number), `rank` from 1, `item` and `category`
            (positions in `catalogue` and in the list of categories), `score` and `probability`.
        possible : array of bool
            Whether each basket has a positive probability. Otherwise nothing is recommended for it.
        """
        k = min(whole_number("k", k, 0), len(self.catalogue))
        for slug in categories or ():
            self.entry(slug)
        chosen = np.array([categories is None or slug in categories for slug in self])
        allowed = np.ones(len(self.catalogue), bool)
        allowed[self.catalogue.positions(() if deny is None else deny)] = False
        slugs, baskets = list(self), baskets.over(self.catalogue)
        if len(self) == 1:
            top = self.distributions[slugs[0]].top_next(baskets, k, allowed & chosen, threads)
            return _ranked_items(top, np.arange(len(baskets)), 0, self._items[0]), top.possible
        # The items of a category are ranked for each basket with items of it, and once for all other baskets.
        category, position = self._places[:, :, baskets.indices]
        row = np.broadcast_to(np.repeat(np.arange(len(baskets)), baskets.sizes), category.shape)
        held, possible = np.zeros((len(baskets), len(self)), bool), np.ones(len(baskets), bool)
        parts = []
        for number in np.unique(category[category >= 0]).tolist():
            here, slug, items = category == number, slugs[number], self._items[number]
            rows, compact = np.unique(row[here], return_inverse=True)
            sets = Baskets.from_pairs(compact, position[here], len(rows), self[slug].catalogue)
            top = self.distributions[slug].top_next(sets, k, allowed[items] & chosen[number], threads)
            parts.append(_ranked_items(top, rows, number, items))
            held[rows, number] = True
            possible[rows] &= top.possible
        others = self._of_empty_baskets
        others = others[chosen[others["category"]] & allowed[others["item"]]]
        others = _best_first([others[_place_within(others["category"]) < k]])
        parts.append(_of_other_categories(others, held, k * len(category)))
        return _merged(parts, possible, k), possible

    @cached_property
    def _of_empty_baskets(self) -> RankedItems:
        """The items of each category in turn, best first, for baskets without items of it."""
        found = []
        for number, (items, distribution) in enumerate(zip(self._items, self.distributions.values(), strict=True)):
            top = distribution.top_next(sets_of([NO_ITEMS], len(items)), len(items))
            found.append(_ranked_items(top, np.zeros(1, np.int64), number, items))
        return np.concatenate(found)

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
        with writing(folder):
            (folder / MODELS).mkdir(exist_ok=True)
        store = None
        if (folder / MANIFEST).exists():
            with suppress(InputError):
                store = ModelStore.open(folder)
        yield store


def write_store(
    folder: Path, manifest: Mapping[str, Any], last: ModelStore | None, fitted: tuple[str, ...] = ()
) -> ModelStore:
    """Replace the manifest, unless nothing changed, and remove files that neither it nor its predecessor names.

    Files of the predecessor stay, because a reader may have opened it just now. Call within `open_for_writing`.
    """
    before = {} if last is None else dict(last.manifest)
    if all(before.get(name) == value for name, value in manifest.items() if name != "versions"):
        manifest = before
    else:
        files = {each["file"] for each in manifest["categories"]}
        previous = sorted({each["file"] for each in before.get("categories", ())} - files)
        manifest = {**manifest, "generation": 1 + before.get("generation", 0), "previous": previous}
        STORE_FOLDER.write(folder, manifest)
    kept = {*(each["file"] for each in manifest["categories"]), *manifest["previous"]}
    for path in (folder / MODELS).iterdir():
        if MODEL_NAME.fullmatch(path.name) and f"{MODELS}/{path.name}" not in kept:
            path.unlink(missing_ok=True)
    return ModelStore(folder, manifest, fitted=fitted)


def _ranked_items(top: Top, baskets: Ints, category: int, items: Ints) -> RankedItems:
    """Return the items of a ranking of one category for some baskets. `items` are its items in the catalogue."""
    row, place = np.nonzero(top.items >= 0)
    found = np.empty(len(row), RANKED_ITEM)
    found["basket"], found["rank"], found["category"] = baskets[row], place + 1, category
    found["item"] = items[top.items[row, place]]
    found["score"], found["probability"] = top.scores[row, place], top.probabilities[row, place]
    return found


def _of_other_categories(found: RankedItems, held: Bools, n_needed: int) -> RankedItems:
    """Return for each basket the first entries of categories not held; `held` is (n_baskets, n_categories)."""
    found = found[: n_needed * (1 + int(held.sum(axis=1).max(initial=0)))]
    free = ~held[:, found["category"]]
    row, place = np.nonzero(free & (np.cumsum(free, axis=1) <= n_needed))
    found = found[place]
    found["basket"] = row
    return found


def _best_first(parts: Sequence[RankedItems]) -> RankedItems:
    """Sort entries by basket, score, probability and category, NaN last."""
    found = np.concatenate(parts)
    order = np.lexsort((found["category"], -found["probability"], -found["score"], found["basket"]))
    return np.asarray(found[order])


def _merged(parts: Sequence[RankedItems], possible: Bools, k: int) -> RankedItems:
    """Return the k best items of each basket, each item once."""
    found = _best_first(parts)
    found = found[possible[found["basket"]]]
    keys = found["basket"] * (1 + found["item"].max(initial=0)) + found["item"]
    found = found[np.sort(np.unique(keys, return_index=True)[1])]
    found["rank"] = 1 + _place_within(found["basket"])
    return np.asarray(found[found["rank"] <= k])


def _place_within(groups: Ints) -> Ints:
    """Return the place of each entry within its group, for sorted groups."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)
