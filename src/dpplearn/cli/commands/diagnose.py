"""dpplearn diagnose: measure which model suits the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpplearn.analysis.cooccurrence import LEVEL
from dpplearn.analysis.diagnosis import MAX_PAIRS_SHOWN, MOST_ITEMS
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Format,
    ItemColumn,
    MinCount,
    OnlyItems,
    Quiet,
    Reader,
    Since,
    Threads,
    TimeColumn,
    Top,
    TopItems,
    WeightColumn,
    share_of_one,
)
from dpplearn.cli.output import busy, show, wants_progress, write_json

Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the folds and the fits.")]
MostItems = Annotated[
    int, typer.Option("--most-items", min=2, help="With more items, fit models to the most frequent only.")
]
Level = Annotated[
    float,
    typer.Option(
        "--level",
        callback=share_of_one,
        help="False discovery rate of the pairs.",
    ),
]


Similarity = Annotated[
    Path | None,
    typer.Option(
        "--similarity",
        metavar="FILE",
        help="Similarity of items (CSV or Parquet): a group per item, or a row and a column per item. Adds the lift of "
        "pairs by similarity.",
    ),
]


def diagnose(
    data: Data,
    similarity: Similarity = None,
    top: Top = MAX_PAIRS_SHOWN,
    most_items: MostItems = MOST_ITEMS,
    level: Level = LEVEL,
    seed: Seed = 0,
    threads: Threads = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    min_count: MinCount = None,
    top_items: TopItems = None,
    only: OnlyItems = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure on held-out baskets which model suits the data."""
    from dpplearn.analysis.diagnosis import diagnose

    progress = wants_progress(quiet)
    with busy(f"reading {data}", progress):
        baskets = Reader(format, basket, item, weight, "error", min_count, top_items, only, time, since, before).read(
            data
        )
    found = diagnose(
        baskets,
        similarity=similarity,
        most_items=most_items,
        level=level,
        rng=seed,
        threads=threads,
        progress=progress,
    )
    if as_json:
        write_json({"data": data, "seed": seed, "level": level, **found.to_dict(top)})
    else:
        show([found.text(top)])
