"""Baskets divided into parts, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpplearn import Baskets, Parts
from helpers.order_files import write_parquet


def divided(baskets: Baskets, n_parts: int = 3) -> list[Baskets]:
    """Every third basket or so in one part; where baskets are few, some parts have none."""
    place = np.arange(len(baskets)) % n_parts
    return [baskets.subset(place == part) for part in range(n_parts)]


def in_parts(baskets: Baskets, n_parts: int = 3) -> Parts:
    return Parts.of(divided(baskets, n_parts))


def write_parts(folder: Path, baskets: Baskets, n_parts: int = 3) -> str:
    """A file per part, with the items under names; the pattern that finds them."""
    for number, part in enumerate(divided(baskets, n_parts)):
        rows = [(str(row), f"item {item:02d}") for row in range(len(part)) for item in part.positions(row)]
        write_parquet(folder / f"part-{number}.parquet", ["basket", "item"], rows)
    return str(folder / "part-*.parquet")
