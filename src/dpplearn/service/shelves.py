"""What is served: the models of a shelf, of a folder of model files or of one file, as they were at one moment."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.models.shelf import FORMAT, Shelf, ShelfCategory
from dpplearn.tools.files import digest
from dpplearn.tools.manifest import MANIFEST, read_manifest

SUFFIX = ".safetensors"
SMALLEST_SHARE = 1e-9  # of the baskets that hold anything of a model whose own law nearly always holds nothing

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ServedModel:
    """A model, the SHA-256 of its file (`version`), and what the manifest says of it, if there is one."""

    category: ShelfCategory
    model: DPP | Mixture
    about: Entry
    modified: float  # when its file was written, in seconds of the epoch
    loaded: float

    @property
    def name(self) -> str:
        return self.category.slug

    @property
    def version(self) -> str:
        return self.category.sha256


class LoadedShelf(Shelf):
    """A shelf whose models are all in memory."""

    def __init__(self, served: Mapping[str, ServedModel]) -> None:
        super().__init__("", {})
        self.categories = tuple(each.category for each in served.values())
        self._models = {slug: each.model for slug, each in served.items()}


@dataclass(frozen=True)
class Served:
    """The models by name, those that cannot be loaded and why, and the files that all of this came from."""

    models: Mapping[str, ServedModel]
    broken: Mapping[str, str] = field(default_factory=dict)
    manifest: Entry = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        return {name: each.version for name, each in self.models.items()}

    def prepared(self) -> PreparedShelf:
        return PreparedShelf(self, LoadedShelf(self.models), _version(self.versions))


@dataclass(frozen=True)
class PreparedShelf:
    """What answers come from: nothing of it changes while a request is answered."""

    served: Served
    shelf: LoadedShelf
    version: str

    @property
    def models(self) -> Mapping[str, ServedModel]:
        return self.served.models


def read_served(source: Path, before: Served | None = None) -> Served:
    """All that can be loaded. Models of `before` whose file is the same are kept as they are; so are those whose new
    file is broken."""
    folder, manifest = _folder_and_manifest(source)
    entries = manifest["categories"] if manifest else list(_files(source))
    known, models, broken = before.models if before else {}, dict[str, ServedModel](), dict[str, str]()
    for entry in entries:
        name = _text(entry, "slug")
        try:
            models[name] = _read_model(folder, entry, known.get(name))
        except InputError as error:
            broken[name] = str(error)
            if name in known:
                models[name] = known[name]
    if not models:
        why = "; ".join(broken.values()) or f"it names none; expected {SUFFIX} files"
        raise InputError(f"{source} holds no model that can be served: {why}")
    return Served(models, broken, manifest)


def stamp(source: Path, served: Served | None = None) -> tuple[Any, ...]:
    """What changes when the source does, and costs little to look at."""
    folder = source if source.is_dir() else source.parent
    manifest = source / MANIFEST
    if manifest.is_file():
        named = [each.get("file") for each in (served.manifest.get("categories", []) if served else [])]
        paths = [manifest, *(folder / each for each in named if isinstance(each, str))]
    else:
        paths = [folder / entry["file"] for entry in _files(source)]
    return tuple((str(path), *_state(path)) for path in paths)


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _folder_and_manifest(source: Path) -> tuple[Path, dict[str, Any]]:
    if not source.exists():
        raise InputError(f"there is no {source}; name a shelf, a folder of model files or a model file")
    if not source.is_dir():
        return source.parent, {}
    if not (source / MANIFEST).is_file():
        return source, {}
    manifest = read_manifest(source, "shelf", FORMAT, "dpplearn fit-all", "write the shelf again")
    entries = manifest.get("categories")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise InputError(f"{source / MANIFEST} does not list categories; write the shelf again")
    return source, manifest


def _files(source: Path) -> Iterator[dict[str, Any]]:
    """What a manifest would say, where there is none."""
    paths = sorted(source.glob(f"*{SUFFIX}")) if source.is_dir() else [source]
    return ({"slug": path.stem, "name": path.stem, "file": path.name} for path in paths)


def _read_model(folder: Path, entry: Entry, known: ServedModel | None) -> ServedModel:
    """Loaded, checked against the manifest, and warm."""
    path = _inside(folder, _text(entry, "file"))
    expected = entry.get("sha256")
    if known is not None and known.version == expected:
        return replace(known, category=_category(entry, known.model, known.version), about=entry)
    before = _state(path)
    try:
        version = digest(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if expected is not None and version != expected:
        raise InputError(f"{path} is not the file that the manifest tells of: its SHA-256 is {version}, not {expected}")
    if known is not None and known.version == version:
        return replace(known, category=_category(entry, known.model, version), about=entry)
    model = load(path)
    if _state(path) != before:
        raise InputError(f"{path} was written while it was read; replace files whole")
    _warm(model)
    now = time.time()
    return ServedModel(_category(entry, model, version), model, entry, path.stat().st_mtime, now)


def _inside(folder: Path, file: str) -> Path:
    """A file of the folder itself, wherever links and dots may lead."""
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise InputError(f"{folder / file} is no file within {folder}; only those are served")
    return path


def _category(entry: Entry, model: DPP | Mixture, version: str) -> ShelfCategory:
    """Without a manifest, the law of the model itself tells how many baskets hold anything of it."""
    share = entry.get("share")
    if not isinstance(share, int | float) or not 0 < share <= 1:
        share = max(1 - model.distribution.p_empty, SMALLEST_SHARE)
    name = str(entry.get("name", entry["slug"]))
    return ShelfCategory(
        _text(entry, "slug"), name, _text(entry, "file"), version, share, len(model.items), str(entry.get("old", ""))
    )


def _text(entry: Entry, name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"the manifest has a category whose {name} is {value!r}; write the shelf again")
    return value


def _warm(model: DPP | Mixture) -> None:
    """What the first questions would have to wait for: compiled loops, and what is computed once per model. A model
    that cannot answer them is no model to serve."""
    items = list(model.items)
    model.marginals()
    for basket in ([], items[:1]):
        found = model.recommend(basket, 3)
        if not all(np.isfinite(each.probability) for each in found):
            raise InputError("the model gives probabilities that are no numbers; learn it again")
    if found:
        model.explain(items[:1], found[0].item)
    model.complete(items[:1], min(3, len(items)))
    if model.marginals()[0] > 0:
        model.substitutes(items[0], 1)


def _version(versions: Mapping[str, str]) -> str:
    text = "\n".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return hashlib.sha256(text.encode()).hexdigest()
