"""dpplearn complete: a set of high probability that contains the items given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Items, Model, Quiet
from dpplearn.cli.output import Report, Shown, write
from dpplearn.models.dpp import Selection
from dpplearn.models.model import SetModel
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import chance, number, shown

FACTOR = (
    "Items that go well with those before them, one after another. factor: what adding the item multiplies the "
    "probability of the set by."
)


def complete(
    model: Model,
    items: Items = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Size of the whole set, the ITEMs included.")] = 10,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Extend a basket to a set of high probability (greedy MAP)."""
    dpp = dpplearn.load(model)
    write_selection(model, dpp, items or [], dpp.complete(items or [], k), as_json)


def write_selection(model: Path, dpp: SetModel, given: Sequence[str], chosen: Selection, as_json: bool) -> None:
    """The items given come first, in their order."""
    expected = dpp.catalogue.select(dpp.catalogue.positions(given))
    report = {
        "model": str(model),
        "items": [
            {"item": item, "gain": gain, "given": item in expected}
            for item, gain in zip(chosen.items, chosen.gains, strict=True)
        ],
        "log_prob": chosen.log_prob,
        "note": chosen.note,
        "independent": dpp.independent,
        "caution": dpp.caution,
    }
    write(report, selection_tables, as_json)


def selection_tables(report: Report) -> Iterator[Shown]:
    rows = [
        (str(place), f"{shown(each['item'])}{' (given)' if each['given'] else ''}", chance(each["gain"]))
        for place, each in enumerate(report["items"], start=1)
    ]
    yield TextTable("Set of high probability", FACTOR, [">", "item", "factor>"], rows)
    if any(math.isnan(each["gain"]) for each in report["items"]):
        yield "The first item has none: the model gives the empty set probability zero."
    yield f"log-probability of the set: {number(report['log_prob'])}"
    yield report["note"]
    yield report["caution"]
