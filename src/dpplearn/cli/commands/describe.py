"""dpplearn describe: what a model says, of all items or of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from dpplearn.analysis.stability import is_learned_again, stability
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
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    READING,
    AsJson,
    BasketColumn,
    Before,
    Format,
    MinCount,
    Model,
    OnlyItems,
    Quiet,
    Reader,
    Since,
    TimeColumn,
    Top,
    TopItems,
    Unknown,
    WeightColumn,
)
from dpplearn.cli.output import Report, Shown, counted, wants_progress, write
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import read_model
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import chance, shown

RESAMPLES = 20
MOST_ITEMS, MOST_SETS = 200, 120_000  # beyond, learning a model again twenty times is not for the impatient
SETS_OF_THE_PRIOR = 1000  # per item, about
RELYING = "Of a DPP: how far to rely on it"

TrainingData = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DATA",
        rich_help_panel=RELYING,
        help="The baskets that the model was learned from, to resample; by default baskets drawn from the model.",
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        min=0,
        rich_help_panel=RELYING,
        help=f"How often to learn the model again from a resample. By default {RESAMPLES}, and 0 for large models.",
    ),
]
ResamplingSeed = Annotated[int, typer.Option("--seed", min=0, rich_help_panel=RELYING, help="Seed of the resamples.")]


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
        rich_help_panel=RELYING,
        help="Group items that are kept apart in at least this share of the sets which would hold both by chance, "
        "on average.",
    ),
]
ItemColumnOfData = Annotated[
    str, typer.Option("--item-column", rich_help_panel=READING, help="The column of items, in --data.")
]


def describe(
    model: Model,
    item: Annotated[
        str | None, typer.Option("--item", help="Show what stands in for this item, or goes with it.")
    ] = None,
    top: Top = 10,
    groups_at_least: GroupsAtLeast = AT_LEAST,
    resamples: Resamples = None,
    data: TrainingData = None,
    seed: ResamplingSeed = 0,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item_column: ItemColumnOfData = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    min_count: MinCount = None,
    top_items: TopItems = None,
    only: OnlyItems = None,
    unknown: Unknown = "error",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Summarise a model: sizes, substitutes, complements, segments."""
    found, versions = read_model(model)
    where = {"model": str(model)}
    if isinstance(found, Mixture):
        if data is not None or resamples:
            raise UsageError(f"--data and --resamples are for DPPs, and {model} holds a Mixture, which tells by itself")
        if item is not None:
            write({**where, **mixture_item_report(found, item, top)}, mixture_item_tables, as_json)
        else:
            report = {**where, **describe_report(found, versions, top), **relations_report(found, top)}
            write(report, describe_tables, as_json)
        return
    if item is not None:
        write({**where, **dpp_item_report(found, item, top)}, dpp_item_tables, as_json)
        return
    reader = Reader(format, basket, item_column, weight, unknown, min_count, top_items, only, time, since, before)
    reliance = _reliance(found, reader, data, resamples, seed, top, groups_at_least, wants_progress(quiet))
    write({**where, **describe_report(found, versions, top), **reliance}, describe_tables, as_json)


def _reliance(
    dpp: DPP,
    reader: Reader,
    data: str | None,
    resamples: int | None,
    seed: int,
    top: int,
    at_least: float,
    progress: bool,
) -> Report:
    """What a DPP keeps apart, and how often that comes back when it is learned again."""
    baskets = None if data is None else reader.read_warned(data, dpp.catalogue)
    times = resamples if resamples is not None else _usual_resamples(dpp, data is not None)
    found = None
    if times:
        with counted("learning again", times, progress) as done:
            found = stability(dpp, baskets, times, at_least=at_least, rng=seed, done=done)
    return {
        **apart_report(dpp, top, at_least, found),
        "resamples": {"n": times, "of": data or "the model", "seed": seed},
    }


def _usual_resamples(dpp: DPP, with_data: bool) -> int:
    """None for models that would take long to learn again, do not tell what they were learned from, or were told how
    alike items are."""
    if not is_learned_again(dpp) or (not with_data and dpp.training is None and dpp.learned.weight is None):
        return 0
    prior = 0 < (dpp.learned.prior or 0) < np.inf
    sets = (dpp.learned.n_distinct or 0) + (SETS_OF_THE_PRIOR * len(dpp.items) if prior else 0)
    return RESAMPLES if len(dpp.items) <= MOST_ITEMS and sets <= MOST_SETS else 0


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
