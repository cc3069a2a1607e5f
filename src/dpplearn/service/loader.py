"""The models that are served: read, checked and measured from a source, and replaced when the source changes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.models.store import MODELS, SUFFIX, ModelStore, StoreEntry
from dpplearn.service.budget import Costs
from dpplearn.utils.files import MANIFEST, digest

MIN_SHARE = 1e-9  # of the baskets with items of a model whose own distribution is almost always empty

Entry = Mapping[str, Any]
KnownCosts = Mapping[str, Costs]  # by the version of the model


@dataclass(frozen=True)
class ServedModel:
    """A model with its entry in the manifest (if any) and its measured costs."""

    category: StoreEntry
    model: DPP | Mixture
    about: Entry
    modified: float  # time of the file, in seconds since the epoch
    loaded: float
    costs: Costs
    cache: dict[str, Any] = field(default_factory=dict)  # answers that depend on the model alone

    @property
    def name(self) -> str:
        return self.category.slug

    @property
    def version(self) -> str:
        """SHA-256 of the model file."""
        return self.category.sha256

    @property
    def warnings(self) -> list[str]:
        """Warnings that are part of every answer of this model."""
        return [self.model.caution] if self.model.caution else []


@dataclass(frozen=True)
class ServedStore:
    """The models by name, and the reasons why others cannot be loaded. It does not change while requests use it."""

    models: Mapping[str, ServedModel]
    broken: Mapping[str, str]

    @cached_property
    def versions(self) -> dict[str, str]:
        return {name: each.version for name, each in self.models.items()}

    @cached_property
    def version(self) -> str:
        text = "\n".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def all_models(self) -> ModelStore:
        entries = [asdict(each.category) for each in self.models.values()]
        models = {slug: each.model for slug, each in self.models.items()}
        found = ModelStore("", {"categories": entries}, models)
        found.recommend([], 10)  # computes what is kept
        return found


def read_store(source: Path, before: ServedStore | None = None, costs: KnownCosts | None = None) -> ServedStore:
    """Load all models that can be loaded.

    Models of `before` are kept if their file is the same, or if their new file is broken. `costs` has the measured
    costs of model files by version; others are measured.
    """
    store = ModelStore.open(source)
    known, models, broken = before.models if before else {}, dict[str, ServedModel](), dict[str, str]()
    for entry, about in zip(store.entries, store.manifest["categories"], strict=True):
        name = entry.slug
        try:
            models[name] = _read_model(store.folder, entry, about, known.get(name), costs or {})
        except InputError as error:
            broken[name] = str(error)
            if name in known:
                models[name] = known[name]
    if not models:
        why = "; ".join(broken.values()) or "its manifest lists no categories"
        raise InputError(f"{source} contains no model that can be served: {why}")
    return ServedStore(models, broken)


def stamp(source: Path) -> tuple[Any, ...]:
    """Return names, times and sizes of the files, which change when the source does."""
    paths = [source]
    if source.is_dir():
        folders = (source, source / MODELS)  # a store of `fit_all` has its models in the second
        paths = [source / MANIFEST, *(path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}")))]
    return tuple((str(path), *_state(path)) for path in paths)


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_model(
    folder: Path, entry: StoreEntry, about: Entry, known: ServedModel | None, costs: KnownCosts
) -> ServedModel:
    path = _inside(folder, entry.file)
    before = _state(path)
    version = entry.sha256
    if known is None or known.version != version:
        version = _checked_digest(path, version)
    if known is not None and known.version == version:
        cache = known.cache if known.about == about else {}
        return replace(known, category=_complete(entry, known.model, version), about=about, cache=cache)
    model = load(path)
    if _state(path) != before:
        raise InputError(f"{path} was written while it was read; replace files as a whole")
    _check_answers(model)
    category = _complete(entry, model, version)
    measured = costs.get(version) or Costs.measure(model)
    return ServedModel(category, model, about, path.stat().st_mtime, time.time(), measured)


def _checked_digest(path: Path, expected: str) -> str:
    """Return the SHA-256 of a file, or raise an error if the manifest records another one."""
    try:
        version = digest(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if expected and version != expected:
        raise InputError(f"{path} does not match the manifest: its SHA-256 is {version}, expected {expected}")
    return version


def _inside(folder: Path, file: str) -> Path:
    """Return the path of a file in the folder itself, after links and dots are resolved."""
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise InputError(f"{folder / file} is not a file within {folder}; other files are not served")
    return path


def _complete(entry: StoreEntry, model: DPP | Mixture, version: str) -> StoreEntry:
    """Return the entry with digest and share, which a folder without a manifest does not record."""
    share = entry.share if entry.share is not None else max(1 - model.distribution.p_empty, MIN_SHARE)
    return replace(entry, sha256=version, share=share)


def _check_answers(model: DPP | Mixture) -> None:
    """Raise an error if the model gives probabilities that are not finite. Compute what all requests use."""
    _ = model.caution
    for basket in ([], list(model.items[:1])):
        if not all(np.isfinite(each.probability) for each in model.recommend(basket, 3)):
            raise InputError("the model gives probabilities that are not finite; fit it again")


class LiveModelStore:
    """The store that is served now. `now` is replaced as a whole; requests keep the one that they started with.

    `failed` is the reason why the current source could not be loaded as a whole, or empty.
    """

    def __init__(self, source: Path, log: Callable[..., None], costs: KnownCosts | None = None) -> None:
        self._source, self._log = source, log
        self._seen = stamp(source)  # before reading: what is written meanwhile is read at the next refresh
        self.now = read_store(source, costs=costs)
        _ = self.now.all_models
        self.failed = "; ".join(self.now.broken.values())
        self._report("store_loaded")

    def refresh(self) -> bool:
        """Load the source again if it has changed. Return whether it was replaced."""
        seen = stamp(self._source)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            new = read_store(self._source, self.now)
        except InputError as error:
            self._refuse(str(error))
            return False
        _ = new.all_models
        before, self.now, self.failed = self.now, new, "; ".join(new.broken.values())
        if before.version != new.version or self.failed:
            self._report("store_replaced")
        return True

    async def watch(self, seconds: float) -> None:
        """Refresh again and again, until cancelled. No error ends it: the current models are kept."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.refresh)
            except Exception as error:
                self._refuse(f"{type(error).__name__}: {error}")

    def _refuse(self, reason: str) -> None:
        self.failed = reason
        self._log("store_refused", reason=reason)

    def _report(self, event: str) -> None:
        versions = {name: version[:12] for name, version in self.now.versions.items()}
        self._log(event, models=versions, broken=dict(self.now.broken))
