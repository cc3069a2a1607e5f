"""Tables on a screen of 80 columns, for a shop whose products have long names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from helpers import command

COLOURS = ["Onyx Black", "Metropolis Grey", "Blossom Pink", "Ocean Blue", "Natural Oak", "Snow White"]
NAMES = [
    f"Nursery: {kind} with Adjustable Straps and Washable Cover, {colour} : Baby Gear"
    for kind in ("SnugRide Classic Connect Infant Car Seat", "Sweet Slumber Sound Machine")
    for colour in COLOURS
]


def shop(n: int = 300) -> list[list[str]]:
    """Return baskets in which two items never and two nearly always occur together."""
    held = np.random.default_rng(0).random((n, len(NAMES))) < 0.2
    held[:, 1] &= ~held[:, 0]
    held[:, 3] = held[:, 2] ^ (np.random.default_rng(1).random(n) < 0.05)
    held[~held.any(axis=1), 4] = True
    return [[NAMES[i] for i in np.flatnonzero(row)] for row in held]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reading")
    with open(folder / "orders.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item"])
        rows.writerows((number, item) for number, basket in enumerate(shop()) for item in basket)
    dl.fit(shop(), segments=2, rank=4, rng=0, max_iter=30).model.save(folder / "mixture.safetensors")
    return folder


@pytest.mark.slow
def test_no_line_is_too_long(folder: Path) -> None:
    model, orders = folder / "mixture.safetensors", folder / "orders.csv"
    for call in (
        ("describe", model),
        ("describe", model, "--item", NAMES[0]),
        ("recommend", model, *NAMES[:3]),
        ("complete", model, NAMES[0], "-k", 4),
        ("explain", model, NAMES[3], NAMES[2], NAMES[1]),
        ("sample", model, "-n", 3, "--seed", 0),
        ("score", model, orders),
    ):
        command.table(*call)  # rejects lines above 80 columns
