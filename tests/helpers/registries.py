"""The original registries and the authors' runs on them, read in place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from dpplearn import Baskets
from dpplearn.distributions.spectral import SpectralDPP
from reproduction.data import read_registry, registry_files

CATEGORIES = "feeding gear diaper bedding apparel bath toys health media strollers safety carseats furniture".split()


@dataclass(frozen=True)
class AuthorsRun:
    """One run of the authors' program: what went in, and what came out."""

    train: Baskets
    test: Baskets
    start: SpectralDPP
    arrays: NpzFile


def registry(shared: Path, category: str) -> Baskets:
    return read_registry(*registry_files(shared / "data" / "registries", category))


def authors_run(shared: Path, name: str) -> AuthorsRun:
    arrays = np.load(shared / "reference" / "authors_runs" / f"{name}.npz")
    baskets = registry(shared, name.split("_")[0])
    train, test = (baskets.subset(arrays[rows]) for rows in ("train_rows", "test_rows"))
    return AuthorsRun(train, test, SpectralDPP.from_K(arrays["K_start"]), arrays)
