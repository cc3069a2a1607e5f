"""Tables on a screen of 80 columns, for a shop whose products have long names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.cli.output import show
from dpplearn.tools.tables import TextTable
from helpers import command

COLOURS = ["Onyx Black", "Metropolis Grey", "Blossom Pink", "Ocean Blue", "Natural Oak", "Snow White"]
NAMES = [
    f"Nursery: {kind} with Adjustable Straps and Washable Cover, {colour} : Baby Gear"
    for kind in ("SnugRide Classic Connect Infant Car Seat", "Sweet Slumber Sound Machine")
    for colour in COLOURS
]


def shop(n: int = 500) -> list[list[str]]:
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
    baskets = dl.Baskets.from_lists(shop())
    dl.fit(baskets, segments=2, rank=4, rng=0).model.save(folder / "mixture.safetensors")
    dl.fit_dpp(baskets, shrinkage=0.1).model.save(folder / "dpp.safetensors")
    return folder


def calls(folder: Path) -> dict[str, tuple[object, ...]]:
    model, dpp, orders = folder / "mixture.safetensors", folder / "dpp.safetensors", folder / "orders.csv"
    return {
        "fit": ("fit", orders, "--model", "dpp", "--shrinkage", 0.1, "-o", folder / "new.safetensors"),
        "describe a mixture": ("describe", model),
        "describe a dpp": ("describe", dpp),
        "describe an item": ("describe", model, "--item", NAMES[0]),
        "describe an item of a dpp": ("describe", dpp, "--item", NAMES[0]),
        "recommend": ("recommend", model, *NAMES[:3]),
        "recommend for many": ("recommend", model, "--baskets", orders, "-k", 2),
        "complete": ("complete", model, NAMES[0], "-k", 4),
        "explain": ("explain", model, NAMES[3], NAMES[2], NAMES[1]),
        "sample": ("sample", model, "-n", 3, "--seed", 0),
        "score": ("score", model, orders, "--each"),
    }


@pytest.mark.slow
def test_no_line_is_too_long_and_no_name_is_broken(folder: Path) -> None:
    for call in calls(folder).values():
        out = command.table(*call)  # rejects lines above 80 columns
        for line in out.splitlines():
            for begun in line.split("Nursery: ")[1:]:
                assert "Baby Gear" in begun or "…" in begun, line


def test_cut_names_are_distinct_and_json_has_whole_names(folder: Path) -> None:
    call = calls(folder)["recommend"]
    out = command.table(*call)
    shown = [line.split("   ")[0] for line in out.splitlines() if line.startswith(" Nursery: ")]
    assert len(set(shown)) == len(shown) == 5
    assert all("…" in name for name in shown)
    assert all(each["item"] in NAMES for each in command.answer(*call)["recommendations"])


def test_objects_print_within_80_columns(folder: Path) -> None:
    model = dl.load(folder / "mixture.safetensors")
    found = dl.evaluate({NAMES[0]: model}, shop(60))
    related = [*model.substitutes(NAMES[0]), *model.complements(NAMES[2]), *model.segments()]
    assert len(related) > 3
    printed = (found, model.explain(NAMES[:2], NAMES[5]), dl.fit(shop(60), segments=2, rng=0), *related)
    for text in map(str, printed):
        assert max(map(len, text.splitlines())) <= 80


def test_numbers_of_a_table_of_many_columns_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "model"]
    row = ["toys-games", "12", "316", "-0.076", "48.1", "-7.209", "+0.001", "kept"]
    show([TextTable("Models", "", columns, [row])])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(cell in out for cell in row)
    assert "…" not in out
