"""Tables on a screen of 80 columns, for a shop whose products have long names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from helpers import command
from helpers.order_files import write_csv

COLOURS = ["Onyx Black", "Metropolis Grey", "Blossom Pink", "Ocean Blue", "Natural Oak", "Snow White"]
NAMES = [
    f"Nursery: {kind} with Adjustable Straps and Washable Cover, {colour} : Baby Gear"
    for kind in ("SnugRide Classic Connect Infant Car Seat", "Sweet Slumber Sound Machine")
    for colour in COLOURS
]


@pytest.mark.slow
def test_no_line_is_too_long(tmp_path: Path) -> None:
    """Of a shop in which two items never and two always occur together."""
    held = np.random.default_rng(0).random((300, len(NAMES))) < 0.2
    held[:, 1] &= ~held[:, 0]
    held[:, 3] = held[:, 2]
    rows = [(basket, NAMES[item]) for basket, item in np.argwhere(held)]
    orders, model = write_csv(tmp_path / "orders.csv", ("basket", "item"), rows), tmp_path / "mixture.safetensors"
    dl.fit(dl.read_baskets(orders), segments=2, rank=4, rng=0, max_iter=30).model.save(model)
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
