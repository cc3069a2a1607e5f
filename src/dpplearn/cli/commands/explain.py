"""dpplearn explain: which items of a basket push a candidate up or down."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Items, Model, Quiet
from dpplearn.cli.output import Report, Shown, write
from dpplearn.distributions.compiled import few_answers
from dpplearn.models.explaining import in_words
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import briefly, chance, share, shown


def explain(
    model: Model,
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The item to be added.")],
    items: Items = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Explain why a basket makes an item more or less likely."""
    loaded = dpplearn.load(model)
    with few_answers():
        found = loaded.explain(items or [], candidate)
    report = {
        "model": str(model),
        "candidate": found.item,
        "alone": found.alone,
        "given": found.given,
        "score_alone": found.score_alone,
        "score": found.score,
        "influences": [each._asdict() for each in found.influences],
        "n_orders": found.n_orders,
        "error": found.error,
        "independent": loaded.independent,
        "caution": loaded.caution,
    }
    write(report, explain_tables, as_json)


def explain_tables(report: Report) -> Iterator[Shown]:
    influences = [
        (f"× {shown(each['item'])}", in_words(each["factor"]), chance(each["factor"]), chance(each["score_factor"]))
        for each in report["influences"]
    ]
    yield TextTable(
        f"{briefly([report['candidate']])}: what the basket does to it",
        _in_words(report),
        ["", "makes it>", "probability>", "score>"],
        [
            ("alone", "", chance(report["alone"]), chance(report["score_alone"])),
            *influences,
            ("beside the basket", "", chance(report["given"]), chance(report["score"])),
        ],
    )
    yield (
        "probability: that a set which holds the basket holds the candidate; score: P(basket with it) / P(basket). "
        "Each item's factor is its fair share of the way from alone to beside the basket (Shapley value): above 1 it "
        "goes with the candidate, below 1 it stands in for it."
    )
    if math.isnan(report["score_alone"]):
        yield "Scores do not exist here: the model gives the empty set probability zero."
    if report["n_orders"] is not None:
        yield f"Averages over {report['n_orders']} random orders of the basket, within {share(report['error'])} or so."
    yield report["caution"]


def _in_words(report: Report) -> str:
    """What the basket does, all told."""
    beside = in_words(report["given"] / report["alone"])
    return (
        f"Beside this basket it is {beside}: {share(report['given'], 1)} of the sets that hold the basket hold it, and "
        f"{share(report['alone'], 1)} of all sets."
    )
