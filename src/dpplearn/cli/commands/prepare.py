"""dpplearn prepare: turn raw orders into baskets per category."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.options import (
    BASKET_COLUMNS,
    READING,
    Columns,
    Display,
    FixedSeed,
    Force,
    named_columns,
    option,
)
from dpplearn.cli.output import write
from dpplearn.data.files import read_items
from dpplearn.pipeline.prepared import Prepared

RULES, SPLIT = "Rules, in this order", "Split"


@dataclass(frozen=True)
class Rules:
    """Rules by which items, baskets and categories are dropped, and the split."""

    drop: Annotated[
        list[str] | None,
        option("Drop this item, such as postage, by identifier or name; repeat for more.", panel=RULES),
    ] = None
    keep_items: Annotated[
        Path | None, option("Keep the items of a file, one per line.", metavar="FILE", panel=RULES)
    ] = None
    min_size: Annotated[int, option("Drop baskets of fewer different items.", panel=RULES)] = 5
    max_size: Annotated[int, option("Drop baskets of more different items.", panel=RULES)] = 100
    min_count: Annotated[int, option("Drop items in fewer baskets of their category.", panel=RULES)] = 100
    top_items: Annotated[int, option("Keep this many items of a category, the most frequent.", panel=RULES)] = 100
    min_items: Annotated[int, option("Drop categories of fewer items.", panel=RULES)] = 25
    min_baskets_per_item: Annotated[float, option("Drop categories of fewer baskets per item.", panel=RULES)] = 2
    train: Annotated[float, option("Fraction of the baskets to train on; 1 for no test baskets.", panel=SPLIT)] = 0.7
    split_time: Annotated[
        str | None, option("Train on baskets before, test on the rest.", metavar="TIME", panel=SPLIT)
    ] = None

    def options(self) -> dict[str, Any]:
        """Return the options of `prepare`."""
        given = asdict(self)
        given["drop"] = given["drop"] or ()
        keep = given.pop("keep_items")
        given["items"] = () if keep is None else read_items(keep)
        given["min_products"], given["max_products"] = given.pop("min_size"), given.pop("max_size")
        return given


def prepare(
    rules: Rules,
    display: Display,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ORDERS",
            help="Files, folders or patterns: CSV, Parquet or JSON lines, one row per basket and item; text may be "
            "gzipped.",
        ),
    ] = None,
    output: Annotated[
        Path, option("The folder to write; an old one is replaced at the end.", "--output", "-o", metavar="FOLDER")
    ] = Path("prepared"),
    columns: Columns = None,
    names: Annotated[
        str | None,
        option(
            "A table of items with their names, which replace identifiers; --columns name=COLUMN.",
            metavar="FILE",
            panel=READING,
        ),
    ] = None,
    seed: FixedSeed = 0,
    memory: Annotated[
        str | None, option("Memory to use, such as 4GB; by default half of what is free.", metavar="SIZE")
    ] = None,
    force: Force = False,
) -> None:
    """Turn raw orders into training and test baskets per category.

    Categories are in the column category, if there is one; name another with --columns category=COLUMN, or
    --columns category= for one category. Input that has not changed is not prepared again. Without ORDERS, the report
    of the existing folder is printed.
    """
    named: dict[str, Any] = named_columns(columns, (*BASKET_COLUMNS, "category", "name"))
    if named.get("category") == "":
        named["category"] = None
    if not inputs:
        prepared = Prepared.open(output)
    else:
        prepared = dpplearn.prepare(
            inputs,
            output,
            **named,
            names=names,
            seed=seed,
            memory=memory,
            threads=display.threads,
            force=force,
            progress=display.progress,
            **rules.options(),
        )
    write(prepared, display)
