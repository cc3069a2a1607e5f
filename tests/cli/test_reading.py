"""What an analyst reads on a screen of 80 columns: the program itself, on a shop whose products have long names."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import shortened
from helpers import command
from helpers.program import ENVIRONMENT, answer, run, table

COLOURS = ["Onyx Black", "Metropolis Grey", "Blossom Pink", "Ocean Blue", "Natural Oak", "Snow White"]
NAMES = [
    f"Nursery: {kind} with Adjustable Straps and Washable Cover, {colour} : Baby Gear"
    for kind in ("SnugRide Classic Connect Infant Car Seat", "Sweet Slumber Sound Machine")
    for colour in COLOURS
]


def shop(n: int = 500) -> list[list[str]]:
    """The first two never together, the next two nearly always."""
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
    dl.fit(baskets, model="dpp", shrinkage=0.1).model.save(folder / "dpp.safetensors")
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


@pytest.mark.parametrize("name", calls(Path()))
def test_no_line_is_too_long_no_name_is_broken_and_every_table_has_a_sentence(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[TextTable] = []
    fitted = TextTable.fitted

    def recorded(self: TextTable, width: int, between: int = 2) -> TextTable:
        drawn.append(self)
        return fitted(self, width, between)

    monkeypatch.setattr(TextTable, "fitted", recorded)
    out = command.table(*calls(folder)[name])  # refuses lines above 80 columns
    assert drawn
    assert [each.title for each in drawn if not re.search(r"[a-z].*\.", each.meaning)] == []
    for line in out.splitlines():  # what begins a name ends it on the same line
        for begun in line.split("Nursery: ")[1:]:
            assert "Baby Gear" in begun or "…" in begun, line


def test_the_program_cuts_names_piped_or_not_and_keeps_them_whole_in_json(folder: Path) -> None:
    call = calls(folder)["recommend"]
    out = table(*call)
    shown = [line.split("   ")[0] for line in out.splitlines() if line.startswith(" Nursery: ")]
    assert len(set(shown)) == len(shown) == 5  # cut where they do not differ
    assert all("…" in name for name in shown)
    assert all(each["item"] in NAMES for each in answer(*call)["recommendations"])
    wide = {**ENVIRONMENT, "COLUMNS": "200"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("helpers.program.ENVIRONMENT", wide)
        assert any(name in run(*call).stdout for name in NAMES)


def test_describe_begins_with_what_sells_and_ends_with_how_it_was_learned(folder: Path) -> None:
    out = table("describe", folder / "mixture.safetensors")
    parts = ["What sells", "What competes", "What goes together", "Segments", "How it was learned", "written with"]
    places = [out.index(part) for part in parts]
    assert places == sorted(places)
    told = " ".join(out.split())
    assert "From 500 baskets" in told
    assert "compared with independent items" in told
    assert "times as likely" in told


def test_pairs_are_on_one_line_where_they_fit(tmp_path: Path) -> None:
    lists = [[name.replace(NAMES[i], f"item {i}") for i in range(12) for name in basket if name == NAMES[i]]
             for basket in shop()]  # fmt: skip
    dl.fit(dl.Baskets.from_lists(lists), segments=2, rank=4, rng=0).model.save(tmp_path / "m.safetensors")
    out = command.table("describe", tmp_path / "m.safetensors")
    assert "item 0 and item 1 " in out
    assert "item 2 and item 3 " in out


def test_words_come_before_nats(folder: Path) -> None:
    told = " ".join(command.table(*calls(folder)["fit"]).split())
    assert re.search(
        r"is \d\.\d+ times as likely under the model, on average, compared with independent items \(\+0\.\d+ nats", told
    )
    told = " ".join(command.table(*calls(folder)["score"]).split())
    assert re.search(
        r"Compared with independent items, a basket is .*times as likely under model \(\+0\.\d+ nats\)", told
    )


def test_what_is_printed_in_python_fits_as_well(folder: Path) -> None:
    model = dl.load(folder / "mixture.safetensors")
    found = dl.evaluate({NAMES[0]: model}, shop(60))
    related = [*model.substitutes(NAMES[0]), *model.complements(NAMES[2]), *model.segments()]
    assert len(related) > 3
    printed = (found, model.explain(NAMES[:2], NAMES[5]), dl.fit(shop(60), segments=2, rng=0), *related)
    for text in map(str, printed):
        assert max(map(len, text.splitlines())) <= 80
    assert shortened([NAMES[5]], 40)[0] in str(model.explain(NAMES[:2], NAMES[5]))
