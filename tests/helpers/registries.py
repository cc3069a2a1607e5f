"""The original registries, read in place, and small registries in the same format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from dpplearn import Baskets
from reproduction.data import read_registry, registry_files


def registry(shared: Path, category: str) -> Baskets:
    return read_registry(*registry_files(shared / "data" / "registries", category))


def write_registry(folder: Path, category: str, sets: Iterable[Sequence[int]], n_items: int) -> None:
    """Sets of positions from 0, written as numbers from 1."""
    folder.mkdir(exist_ok=True)
    lines = [",".join(str(item + 1) for item in each) for each in sets]
    names = [f"{number} {category}: thing {number}" for number in range(1, n_items + 1)]
    for path, text in zip(registry_files(folder, category), (lines, names), strict=True):
        path.write_text("".join(f"{line}\n" for line in text))


def shoppers(n_sets: int, n_items: int, seed: int = 0) -> list[list[int]]:
    """Sets of items taken independently, some often and some rarely; none is empty."""
    rng = np.random.default_rng(seed)
    chances = np.linspace(0.02, 3 / n_items, n_items)
    wanted = rng.random((n_sets, n_items)) < chances
    wanted[np.arange(n_sets), rng.integers(n_items, size=n_sets)] |= ~wanted.any(axis=1)
    return [np.flatnonzero(row).tolist() for row in wanted]
