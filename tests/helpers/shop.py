"""A shop: its orders, and a model that the program learned from them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import dpplearn as dl
from helpers.command import run


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a model that the program learned from them."""
    folder = tmp_path_factory.mktemp("shop")
    with open(folder / "orders.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item"])
        for number, basket in enumerate(dl.datasets.make_registries("safety", 400, rng=0)):
            rows.writerows((number, item) for item in basket)
    done = run("fit", folder / "orders.csv", "-o", folder / "model.safetensors", "--seed", 5, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "fit.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="session")
def model(shop: Path) -> Path:
    return shop / "model.safetensors"


@pytest.fixture(scope="session")
def dpp(model: Path) -> dl.DPP:
    return dl.load(model)


@pytest.fixture(scope="session")
def orders(shop: Path) -> dl.Baskets:
    return dl.read_baskets(shop / "orders.csv")
