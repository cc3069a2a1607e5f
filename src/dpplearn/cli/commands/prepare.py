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
    Memory,
    named_columns,
)
from dpplearn.cli.output import write
from dpplearn.data.files import read_items
from dpplearn.pipeline.prepared import Prepared

RULES, SPLIT = "Rules, in this order", "Split"


def _rule(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=RULES, help=help, **more)


@dataclass(frozen=True)
class Rules:
    """Rules by which items, baskets and categories are dropped, and the split."""

    drop: Annotated[
        list[str] | None, _rule("Drop this item, such as postage, by identifier or name; repeat for more.")
    ] = None
    keep_items: Annotated[
        Path | None, _rule("Keep the items of a file, one per line.", "--keep-items", metavar="FILE")
    ] = None
    min_size: Annotated[int, _rule("Drop baskets of fewer different items.")] = 5
    max_size: Annotated[int, _rule("Drop baskets of more different items.")] = 100
    min_count: Annotated[int, _rule("Drop items in fewer baskets of their category.")] = 100
    top_items: Annotated[int, _rule("Keep this many items of a category, the most frequent.")] = 100
    min_items: Annotated[int, _rule("Drop categories of fewer items.")] = 25
    min_baskets_per_item: Annotated[float, _rule("Drop categories of fewer baskets per item.")] = 2
    train: Annotated[
        float, typer.Option(rich_help_panel=SPLIT, help="Fraction of the baskets to train on; 1 for no test baskets.")
    ] = 0.7
    split_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", rich_help_panel=SPLIT, help="Train on baskets before, test on the rest."),
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
            metavar="[ORDERS]...",
            help="Files, folders or patterns: CSV, Parquet or JSON lines, one row per basket and item; text may be "
            "gzipped.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="The folder to write; an old one is replaced at the end."
        ),
    ] = Path("prepared"),
    columns: Columns = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=READING,
            help="A table of items with their names, which replace identifiers; --columns name=COLUMN.",
        ),
    ] = None,
    seed: FixedSeed = 0,
    memory: Memory = None,
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
