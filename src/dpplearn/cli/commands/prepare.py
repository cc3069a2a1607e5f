"""dpplearn prepare: turn raw orders into baskets per category."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

import dpplearn
from dpplearn.cli.options import BASKET_COLUMNS, FILE, OUTPUT_FOLDER, Columns, Force, Seed, named_columns
from dpplearn.cli.output import Display
from dpplearn.data.files import read_items
from dpplearn.pipeline.prepared import Prepared


@dataclass(frozen=True)
class Rules:
    """Rules by which items, baskets and categories are dropped, and the split.

    Parameters
    ----------
    drop
        Drop this item, such as postage, by identifier or name; repeat for more.
    items
        Keep the items of a file, one per line.
    min_products
        Drop baskets of fewer different items.
    max_products
        Drop baskets of more different items.
    min_count
        Drop items in fewer baskets of their category.
    top_items
        Keep this many items of a category, the most frequent.
    min_items
        Drop categories of fewer items.
    min_baskets_per_item
        Drop categories of fewer baskets per item.
    train
        Fraction of the baskets to train on; 1 for no test baskets.
    split_time
        Train on baskets before, test on the rest.
    """

    panel: ClassVar[str] = "Rules, in this order, and the split"
    drop: list[str] | None = None
    items: Annotated[Path | None, typer.Option("--keep-items", metavar="FILE")] = None
    min_products: Annotated[int, typer.Option("--min-size")] = 5
    max_products: Annotated[int, typer.Option("--max-size")] = 100
    min_count: int = 100
    top_items: int = 100
    min_items: int = 25
    min_baskets_per_item: float = 2
    train: float = 0.7
    split_time: Annotated[str | None, typer.Option(metavar="TIME")] = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of `prepare`."""
        items = () if self.items is None else read_items(self.items)
        return {**asdict(self), "drop": self.drop or (), "items": items}


def prepare(
    rules: Rules,
    display: Display,
    inputs: Annotated[list[str] | None, typer.Argument(metavar="ORDERS")] = None,
    output: Annotated[Path, OUTPUT_FOLDER] = Path("prepared"),
    columns: Columns = None,
    names: Annotated[str | None, FILE] = None,
    seed: Seed = 0,
    memory: Annotated[str | None, typer.Option(metavar="SIZE")] = None,
    force: Force = False,
) -> None:
    """Turn raw orders into training and test baskets per category.

    Categories are in the column category, if there is one; name another with --columns category=COLUMN, or
    --columns category= for one category. Input that has not changed is not prepared again. Without ORDERS, the report
    of the existing folder is printed.

    Parameters
    ----------
    inputs
        Files, folders or patterns: CSV, Parquet or JSON lines, one row per basket and item; text may be gzipped.
    output
        The folder to write; an old one is replaced at the end.
    names
        A table of items with their names, which replace identifiers; --columns name=COLUMN.
    memory
        Memory to use, such as 4GB; by default half of what is free.
    """
    if not inputs:
        display.write(Prepared.open(output))
        return
    named: dict[str, Any] = named_columns(columns, (*BASKET_COLUMNS, "category", "name"))
    if named.get("category") == "":
        named["category"] = None
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
        **rules.options,
    )
    display.write(prepared)
