"""Shelves made of models by hand, without learning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dpplearn as dl
from dpplearn.models.model import SetModel
from dpplearn.models.shelf import FORMAT
from dpplearn.tools.files import digest
from dpplearn.tools.manifest import write_manifest
from helpers.problems import random_mixture


def write_shelf(folder: Path, models: Mapping[str, SetModel], shares: Mapping[str, float]) -> Path:
    """Of these models by slug, as `fit_all` lays it out."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for slug, model in models.items():
        file = folder / f"{slug}.safetensors"
        model.save(file)
        entries.append(
            {
                "slug": slug,
                "name": slug.title(),
                "file": file.name,
                "sha256": digest(file),
                "share": shares[slug],
                "n_items": len(model.items),
                "old": "",
            }
        )
    write_manifest(folder, {"kind": "shelf", "format": FORMAT, "categories": entries})
    return folder


def three_categories() -> dict[str, SetModel]:
    """Two mixtures and a DPP, of few items; "tie" is in two of them."""
    return {
        "meals": dl.Mixture(random_mixture(3, 3, seed=1), ["bib", "cup", "tie"], nonempty=True),
        "sleep": dl.Mixture(random_mixture(2, 3, seed=2), ["cot", "crib", "lamp"], nonempty=True),
        "wear": dl.DPP(dl.Kernel.from_K([[0.5, 0.2], [0.2, 0.4]]), ["sock", "tie"]),
    }


SHARES = {"meals": 0.6, "sleep": 0.3, "wear": 0.45}
