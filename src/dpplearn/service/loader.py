"""The models that are served: read, checked and measured from a source, and replaced when the source changes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError
from dpplearn.models.answers import Recommendation, StoreRecommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.explaining import Explanation, explanation
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.models.store import MODELS, SUFFIX, ModelStore, StoreEntry
from dpplearn.service import schemas
from dpplearn.service.budget import Check, Costs
from dpplearn.utils.files import MANIFEST, digest

KnownCosts = Mapping[str, Costs]  # by the version of the model


@dataclass(frozen=True)
class ServedModel:
    """One model, with its measured costs and its entry in the store."""

    entry: StoreEntry  # with digest
    model: DPP | Mixture
    costs: Costs
    modified: float  # time of the file, in seconds since the epoch
    loaded: float
    result: Mapping[str, Any] | None = None  # of the evaluation by `fit_all`
    cache: dict[str, Any] = field(default_factory=dict)  # answers that depend on the model alone

    @property
    def name(self) -> str:
        return self.entry.slug

    @property
    def version(self) -> str:
        """SHA-256 of the model file."""
        return self.entry.sha256

    @property
    def catalogue(self) -> Catalogue:
        return self.model.catalogue

    @property
    def warnings(self) -> list[str]:
        return [self.model.caution] if self.model.caution else []

    @property
    def head(self) -> dict[str, Any]:
        """Fields of every answer."""
        return {"model": self.name, "version": self.version, "warnings": self.warnings}

    def recommend(self, basket: list[Label], asked: schemas.AskRecommend) -> list[Recommendation]:
        return self.model.recommend(basket, asked.k, allow=asked.allow, deny=asked.deny)

    def explain(self, basket: list[Label], each: Recommendation) -> Explanation:
        return self.model.explain(basket, each.item)

    def complete(self, asked: schemas.AskComplete, check_time: Check) -> dict[str, Any]:
        found = self.model.complete(asked.basket, asked.k)
        return {"items": list(found.items), "log_prob": found.log_prob, "note": found.note}


@dataclass(frozen=True)
class ServedStore:
    """All models by name, and the reasons why others cannot be loaded. Requests keep the one they started with."""

    models: Mapping[str, ServedModel]
    broken: Mapping[str, str]
    name = "(all)"  # in logs and metrics

    @cached_property
    def versions(self) -> dict[str, str]:
        return {name: each.version for name, each in self.models.items()}

    @cached_property
    def version(self) -> str:
        text = "\n".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def store(self) -> ModelStore:
        entries = [asdict(each.entry) for each in self.models.values()]
        found = ModelStore("", {"categories": entries}, {name: each.model for name, each in self.models.items()})
        found.recommend([], 10)  # computes what is kept
        return found

    @property
    def catalogue(self) -> Catalogue:
        return self.store.catalogue

    @cached_property
    def costs(self) -> Costs:
        return Costs.of_all([each.costs for each in self.models.values()])

    @property
    def head(self) -> dict[str, Any]:
        """Fields of every answer."""
        warnings = [f"{name}: {text}" for name, each in self.models.items() for text in each.warnings]
        return {"version": self.version, "versions": self.versions, "warnings": warnings}

    def recommend(self, basket: list[Label], asked: schemas.AskRecommendOfAll) -> list[StoreRecommendation]:
        return self.store.recommend(basket, asked.k, categories=asked.categories, deny=asked.deny)

    def explain(self, basket: list[Label], each: StoreRecommendation) -> Explanation:
        catalogue, distribution = self.store[each.category].catalogue, self.store.distributions[each.category]
        part = catalogue.positions(self.store.by_category(basket).get(each.category, ()))
        return explanation(distribution, catalogue, part, catalogue.position(each.item))

    def complete(self, asked: schemas.AskCompleteOfAll, check_time: Check) -> dict[str, Any]:
        """Add the item with the highest score until there are k: the greedy rule of `complete` for one model."""
        items, categories, note = list(asked.basket), list[str](), ""
        while len(items) < asked.k:
            check_time()
            best = self.store.recommend(items, 1, categories=asked.categories)
            if not best:
                note = f"stopped at {len(items)} of {asked.k} items: no further item can be added"
                break
            items.append(best[0].item)
            categories.append(best[0].category)
        return {"items": items, "categories": categories, "note": note}


def read_store(source: Path, before: ServedStore | None = None, costs: KnownCosts | None = None) -> ServedStore:
    """Load all models that can be loaded.

    Models of `before` are kept if their file is the same, or if their new file is broken. `costs` has the measured
    costs of model files by version; others are measured.
    """
    store = ModelStore.open(source)
    known, models, broken = before.models if before else {}, dict[str, ServedModel](), dict[str, str]()
    for name in store:
        try:
            models[name] = _read_model(store, store.entry(name), known.get(name), costs or {})
        except (InputError, OSError) as error:
            broken[name] = str(error)
            if name in known:
                models[name] = known[name]
    if not models:
        why = "; ".join(broken.values()) or "its manifest lists no categories"
        raise InputError(f"{source} contains no model that can be served: {why}")
    found = ServedStore(models, broken)
    _ = found.store  # computed here, not by the first request
    return found


def _read_model(store: ModelStore, entry: StoreEntry, known: ServedModel | None, costs: KnownCosts) -> ServedModel:
    path = (store.folder / entry.file).resolve()
    if not path.is_relative_to(store.folder.resolve()) or not path.is_file():
        raise InputError(f"{path} is not a file within {store.folder}; other files are not served")
    version, result = entry.sha256, store.results.get(entry.slug)
    if known is None or known.version != version:
        version = digest(path)
        if entry.sha256 not in ("", version):
            raise InputError(f"{path} does not match the manifest: its SHA-256 is {version}, expected {entry.sha256}")
    entry = replace(entry, sha256=version)  # which a folder without a manifest does not record
    found = known if known is not None and known.version == version else _load(path, entry, costs)
    same = (found.entry, found.result) == (entry, result)
    return found if same else replace(found, entry=entry, result=result, cache={})


def _load(path: Path, entry: StoreEntry, costs: KnownCosts) -> ServedModel:
    """Load and measure a model. Raise an error if it gives probabilities that are not finite."""
    model = load(path)
    for basket in ([], list(model.items[:1])):
        if not all(np.isfinite(each.probability) for each in model.recommend(basket, 3)):
            raise InputError("the model gives probabilities that are not finite; fit it again")
    _ = model.caution  # computed here, not by the first request
    measured = costs.get(entry.sha256) or Costs.measure(model)
    return ServedModel(entry, model, measured, path.stat().st_mtime, time.time())


def stamp(source: Path) -> list[tuple[str, int, int, int]]:
    """Return names, times and sizes of the files, which change when the source does."""
    models = f"*{SUFFIX}"  # a store of `fit_all` has its models in a folder of their own
    paths = [source / MANIFEST, *source.glob(models), *(source / MODELS).glob(models)] if source.is_dir() else [source]
    found = []
    for path in sorted(paths):
        with suppress(OSError):  # a file that is just being replaced
            state = path.stat()
            found.append((str(path), state.st_mtime_ns, state.st_size, state.st_ino))
    return found


class LiveModelStore:
    """The store that is served now. `now` is replaced as a whole; requests keep the one that they started with.

    `failed` is the reason why the current source could not be loaded as a whole, or empty.
    """

    def __init__(self, source: Path, log: Callable[..., None], costs: KnownCosts | None = None) -> None:
        self._source, self._log = source, log
        self._seen = stamp(source)  # before reading: what is written meanwhile is read at the next refresh
        self.now = read_store(source, costs=costs)
        self._report("store_loaded")

    def refresh(self) -> None:
        """Load the source again if it has changed. Whatever goes wrong, the current models are kept."""
        try:
            seen, before = stamp(self._source), self.now
            if seen == self._seen:
                return
            self._seen = seen
            self.now = read_store(self._source, before)
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"
            self._log("store_refused", reason=self.failed)
        else:
            self._report("store_replaced", changed=before.version != self.now.version)

    async def watch(self, seconds: float) -> None:
        """Refresh again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.refresh)

    def _report(self, event: str, *, changed: bool = True) -> None:
        self.failed = "; ".join(self.now.broken.values())
        if changed or self.failed:
            versions = {name: version[:12] for name, version in self.now.versions.items()}
            self._log(event, models=versions, broken=dict(self.now.broken))
