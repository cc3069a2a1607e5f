"""dpplearn complete: a set of high probability that contains given items, or the most probable set found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Items, Model
from dpplearn.cli.output import Report, Shown, write
from dpplearn.utils.text import TextTable, chance, number, shown

FACTOR = (
    "Items in the order in which they were added. factor: ratio of the probabilities of the set with and without the "
    "item."
)


def complete(
    model: Model,
    items: Items = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            help="Size of the set, including the ITEMs. By default the set grows until no item raises its probability.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Extend a basket to a set of high probability (greedy MAP).

    Without items, the most probable set found.
    """
    dpp = dpplearn.load(model)
    chosen = dpp.complete(items or [], k)
    given = dpp.catalogue.select(dpp.catalogue.positions(items or []))
    report = {
        "model": str(model),
        "items": [
            {"item": item, "gain": gain, "given": item in given}
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
        yield "The first item has no factor, because the empty set has probability zero."
    yield f"log-probability of the set: {number(report['log_prob'])}"
    yield report["note"]
    yield report["caution"]
