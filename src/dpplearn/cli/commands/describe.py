"""dpplearn describe: what a model says, of all items or of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from dpplearn.analysis.substitutes import AT_LEAST
from dpplearn.arrays import Floats
from dpplearn.cli.commands.describe_dpp import apart_report, apart_tables, dpp_item_report, dpp_item_tables
from dpplearn.cli.commands.describe_learned import learned_tables
from dpplearn.cli.commands.describe_mixture import (
    mixture_item_report,
    mixture_item_tables,
    relations_report,
    relations_tables,
)
from dpplearn.cli.options import AsJson, Model, Quiet, Top
from dpplearn.cli.output import Report, Shown, write
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import read_model
from dpplearn.utils.text import TextTable, chance, shown


def up_to_one(value: float) -> float:
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{value:g} is not a number above 0, up to 1")
    return value


GroupsAtLeast = Annotated[
    float,
    typer.Option(
        "--groups-at-least",
        metavar="SHARE",
        callback=up_to_one,
        help="For a DPP: group items whose mean substitution, 1 - P(both) / P(both under independence), is at least "
        "this.",
    ),
]


def describe(
    model: Model,
    item: Annotated[
        str | None, typer.Option("--item", help="Show what stands in for this item, or goes with it.")
    ] = None,
    top: Top = 10,
    groups_at_least: GroupsAtLeast = AT_LEAST,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Summarise a model: sizes, substitutes, complements, segments."""
    found, versions = read_model(model)
    where = {"model": str(model)}
    if isinstance(found, Mixture):
        if item is not None:
            write({**where, **mixture_item_report(found, item, top)}, mixture_item_tables, as_json)
        else:
            report = {**where, **describe_report(found, versions, top), **relations_report(found, top)}
            write(report, describe_tables, as_json)
        return
    if item is not None:
        write({**where, **dpp_item_report(found, item, top)}, dpp_item_tables, as_json)
        return
    report = {**where, **describe_report(found, versions, top), **apart_report(found, top, groups_at_least)}
    write(report, describe_tables, as_json)


def describe_report(model: SetModel, versions: dict[str, str], top: int) -> Report:
    """What every kind of model tells."""
    marginals = model.marginals()
    likeliest = np.argsort(-marginals, kind="stable")[:top]
    return {
        "kind": "mixture" if isinstance(model, Mixture) else "dpp",
        "nonempty": model.nonempty,
        "n_items": len(model.items),
        "size": _size_summary(model.size_distribution),
        "learned": model.learned.to_dict(),
        "written_with": versions,
        "likeliest_items": [{"item": model.items[i], "probability": float(marginals[i])} for i in likeliest],
        "top": top,
        "independent": model.independent,
        "caution": model.caution,
    }


def _size_summary(law: Floats) -> Report:
    """Of P(|Y| = k), k = 0, 1, ..."""
    sizes = np.arange(len(law))
    mean = float(law @ sizes)
    low, median, high = (int(np.searchsorted(np.cumsum(law), share)) for share in (0.05, 0.5, 0.95))
    return {
        "expected": mean,
        "standard_deviation": float(law @ (sizes - mean) ** 2) ** 0.5,
        "most_likely": int(np.argmax(law)),
        "percentile_5": low,
        "median": median,
        "percentile_95": min(high, len(law) - 1),
        "probability_empty": float(law[0]),
    }


def describe_tables(report: Report) -> Iterator[Shown]:
    """What people ask first comes first; how it was learned, last."""
    yield f"{report['caution']}\n" if report["caution"] else ""
    yield TextTable(
        "What sells: most likely items",
        "Of all sets, the share that holds the item.",
        ["item", "probability>"],
        [(shown(each["item"]), chance(each["probability"])) for each in report["likeliest_items"]],
    )
    yield from relations_tables(report) if report["kind"] == "mixture" else apart_tables(report)
    yield from learned_tables(report)
