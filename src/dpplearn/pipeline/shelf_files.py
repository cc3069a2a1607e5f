"""How a shelf lies in its folder, and what a run that is under way keeps beside it.

shelf/manifest.json                        what is on the shelf, written last and in one go
shelf/models/toys-1a2b3c4d5e6f.safetensors   named by content: those of the manifest, and of the one before it
shelf/.fit-all/                            a lock, and the journal of a run that is not finished
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError
from dpplearn.models.shelf import FORMAT
from dpplearn.pipeline.learning import LEARNING, MODELS
from dpplearn.pipeline.shelf import Shelf
from dpplearn.tools.files import digest, only_one
from dpplearn.tools.journal import Journal
from dpplearn.tools.manifest import manifest_folder, write_manifest

WORK, LOCK, JOURNAL = ".fit-all", "lock", "journal.jsonl"
FINISHED = ("key", "fresh", "entry")  # what the journal has of a category

STORE_FOLDER = manifest_folder("shelf", WORK, "dpplearn fit-all")
MODEL_NAME = re.compile(r".+-[0-9a-f]{12}\.safetensors")  # as `saved_model` names them

Entry = dict[str, Any]


@contextmanager
def open_folder(output: Path) -> Iterator[Shelf | None]:
    """What is on the shelf, None where that is nothing. Within, no other run writes to it."""
    try:
        last: Shelf | None = Shelf.open(output)
    except InputError:  # there is none, or none that can be read
        last = None
    new = not output.exists()
    try:
        (output / WORK).mkdir(parents=True, exist_ok=True)  # first, as it identifies the folder after a kill
        (output / MODELS).mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror or error}") from None
    refusal = f"another run is writing the shelf {output}; wait until it has ended, or name another folder"
    with only_one(output / WORK / LOCK, refusal):
        try:
            yield last
        except InputError:
            if new:
                shutil.rmtree(output, ignore_errors=True)
            raise


class Finished:
    """The categories that a run has done, on disk, until the shelf is written."""

    def __init__(self, output: Path) -> None:
        anew = f"remove {output / WORK}"
        self._journal = Journal(output / WORK / JOURNAL, {"shelf": FORMAT}, FINISHED, anew)
        self._rows = self._journal.rows()

    def entry(self, key: str, *, fresh: bool) -> Entry | None:
        """What is there of a category; of a fresh run, nothing of one that was not."""
        found = [row["entry"] for row in self._rows if row["key"] == key and (row["fresh"] or not fresh)]
        return found[-1] if found else None

    @contextmanager
    def adding(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Within, call the function with every row that is finished."""
        with self._journal.appending(self._rows) as add:
            yield lambda row: add(dict(row))

    def forget(self) -> None:
        """The shelf has it all."""
        with suppress(FileNotFoundError):
            self._journal.path.unlink()


def is_there(output: Path, entry: Mapping[str, Any]) -> bool:
    """Whether the model of an entry is, as it was written."""
    path = output / entry["file"]
    return path.is_file() and bool(digest(path) == entry["sha256"])


def write_shelf(output: Path, manifest: Mapping[str, Any], last: Shelf | None) -> dict[str, Any]:
    """From here on, this is the shelf, unless it is what is there. Returns the manifest that holds now."""
    told_apart = {name: value for name, value in manifest.items() if name not in ("versions",)}
    if last is not None and {name: last.manifest.get(name) for name in told_apart} == told_apart:
        return dict(last.manifest)
    before = files_of(last.manifest) if last is not None else []
    generation = 1 + (last.manifest.get("generation", 0) if last is not None else 0)
    whole = {**manifest, "generation": generation, "previous": sorted(set(before) - set(files_of(manifest)))}
    write_manifest(output, whole)
    return whole


def files_of(manifest: Mapping[str, Any]) -> list[str]:
    return [each["file"] for each in manifest["categories"]]


def clean(output: Path, manifest: Mapping[str, Any]) -> None:
    """Remove models that are neither on this shelf nor on the one before it, of which somebody may still read."""
    kept = {*files_of(manifest), *manifest["previous"]}
    for path in (output / MODELS).iterdir():
        ours = MODEL_NAME.fullmatch(path.name) or path.name.startswith(LEARNING)
        if ours and f"{MODELS}/{path.name}" not in kept:
            path.unlink(missing_ok=True)
