"""A shop: its orders, and models that the program learned from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import dpplearn as dl
from dpplearn.models.mixture import Mixture
from helpers.command import run
from helpers.order_files import write_csv


def write_orders(path: Path, baskets: Iterable[Iterable[object]]) -> Path:
    rows = [(number, item) for number, basket in enumerate(baskets) for item in basket]
    return write_csv(path, ["basket", "item"], rows)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and a DPP and a mixture that the program learned from them."""
    folder = tmp_path_factory.mktemp("shop")
    write_orders(folder / "orders.csv", dl.datasets.make_registries("safety", 400, rng=0))
    for name, options in (("model", ["--model", "dpp", "--may-be-empty"]), ("mixture", [])):
        call = ("fit", folder / "orders.csv", "-o", folder / f"{name}.safetensors", "--seed", 5, "--json", *options)
        done = run(*call)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / f"{name}.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="session")
def few_orders(shop: Path) -> Path:
    """Orders of the largest kind of items, for tests in which it does not matter how well the program learns."""
    chosen = max(dl.datasets.items_by_kind("safety"), key=len)
    lists = [[item for item in basket if item in chosen] for basket in dl.read_baskets(shop / "orders.csv")]
    return write_orders(shop / "few.csv", lists)


@pytest.fixture(scope="session")
def model(shop: Path) -> Path:
    return shop / "model.safetensors"


@pytest.fixture(scope="session")
def dpp(model: Path) -> dl.DPP:
    return dl.load(model)


@pytest.fixture(scope="session")
def mixture_file(shop: Path) -> Path:
    return shop / "mixture.safetensors"


@pytest.fixture(scope="session")
def mixture(mixture_file: Path) -> Mixture:
    return dl.load(mixture_file)


@pytest.fixture(scope="session")
def orders(shop: Path) -> dl.Baskets:
    return dl.read_baskets(shop / "orders.csv")
