"""Model stores written by hand, and fitted in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dpplearn as dl
from dpplearn.models.model import SetModel
from dpplearn.models.store import STORE_FOLDER
from dpplearn.pipeline.fit_all import Job
from dpplearn.utils.files import digest
from dpplearn.utils.parallel import Failure
from helpers.problems import as_mixture, random_mixture


def write_models(folder: Path, models: Mapping[str, SetModel], shares: Mapping[str, float]) -> Path:
    """Write a store of these models by slug."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for slug, model in models.items():
        file = folder / f"{slug}.safetensors"
        model.save(file)
        of_file = {"file": file.name, "sha256": digest(file), "n_items": len(model.items), "old": ""}
        entries.append({"slug": slug, "name": slug.title(), "share": shares[slug], **of_file})
    STORE_FOLDER.write(folder, {"kind": "store", "format": 1, "categories": entries})
    return folder


def edit_category(folder: Path, slug: str, **changes: Any) -> None:
    """Change the entry of a category in the manifest of a store."""
    manifest = STORE_FOLDER.read(folder)
    next(each for each in manifest["categories"] if each["slug"] == slug).update(changes)
    STORE_FOLDER.write(folder, manifest)


def three_categories() -> dict[str, SetModel]:
    """Two mixtures and a DPP, of few items; "tie" is in two of them."""
    return {
        "meals": as_mixture(random_mixture(3, 3, seed=1), ["bib", "cup", "tie"], nonempty=True),
        "sleep": as_mixture(random_mixture(2, 3, seed=2), ["cot", "crib", "lamp"], nonempty=True),
        "wear": dl.DPP.from_K([[0.5, 0.2], [0.2, 0.4]], ["sock", "tie"]),
    }


SHARES = {"meals": 0.6, "sleep": 0.3, "wear": 0.45}
QUICK = {"segments": 1, "max_iter": 5}


def in_turn(jobs: Sequence[Job], run: Callable[[Job], Any]) -> Iterator[tuple[Job, Any]]:
    """In this process, as `run_with_retries` does it over others."""
    for job in jobs:
        try:
            yield job, run(job)
        except dl.InputError as error:
            yield job, Failure(str(error))


def fitted(prepared: dl.Prepared, over: Any = in_turn, output: Path | None = None, **options: Any) -> dl.ModelStore:
    """Fit in this process, by default into the folder "store" next to the prepared one."""

    def run(jobs: Sequence[Job], run: Callable[[Job], Any], processes: int | None) -> Iterator[tuple[Job, Any]]:
        return over(jobs, run)

    with patch("dpplearn.pipeline.fit_all.run_with_retries", run):
        return dl.fit_all(prepared, output or prepared.folder.parent / "store", **{**QUICK, **options})
