"""dpplearn explain: which items of a basket make a candidate more or less likely."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Items, Model
from dpplearn.cli.output import Report, Shown, write
from dpplearn.distributions.compiled import few_answers
from dpplearn.models.explaining import N_ORDERS, in_words
from dpplearn.utils.text import TextTable, briefly, chance, share, shown


def explain(
    model: Model,
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The item to be added.")],
    items: Items = None,
    orders: Annotated[
        int, typer.Option(min=4, help="Random orders to average over, for baskets of more than 10 items.")
    ] = N_ORDERS,
    as_json: AsJson = False,
) -> None:
    """Explain why a basket makes an item more or less likely."""
    loaded = dpplearn.load(model)
    with few_answers():
        found = loaded.explain(items or [], candidate, n_orders=orders)
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
        f"{briefly([report['candidate']])}: influence of the basket",
        _in_words(report),
        ["", "makes it>", "probability>", "score>"],
        [
            ("alone", "", chance(report["alone"]), chance(report["score_alone"])),
            *influences,
            ("given the basket", "", chance(report["given"]), chance(report["score"])),
        ],
    )
    yield (
        "probability: that a set with the basket contains the candidate; score: P(basket with it) / P(basket). "
        "Factors are Shapley values: above 1 the item is a complement of the candidate, below 1 a substitute."
    )
    if math.isnan(report["score_alone"]):
        yield "Scores alone do not exist, because the empty set has probability zero."
    if report["n_orders"] is not None:
        yield f"Averages over {report['n_orders']} random orders; relative standard error {share(report['error'])}."
    yield report["caution"]


def _in_words(report: Report) -> str:
    """Return the effect of the whole basket in a sentence."""
    likely = in_words(report["given"] / report["alone"])
    return (
        f"Given this basket it is {likely}: {share(report['given'], 1)} of the sets with the basket contain it, and "
        f"{share(report['alone'], 1)} of all sets."
    )
