"""dpplearn prepare: a table of raw orders to baskets per category."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import READING, AsJson, BasketColumn, Force, ItemColumn, Quiet, one_of
from dpplearn.cli.output import Report, Shown, wants_progress, write
from dpplearn.data.readers import read_items
from dpplearn.pipeline.manifest import Prepared
from dpplearn.pipeline.prepare import prepare as prepare_orders
from dpplearn.pipeline.rules import COUNTS
from dpplearn.utils.text import Facts, TextTable, share, shown
from dpplearn.utils.text import count as counted

RULES, SPLIT = "Rules, in this order", "Split"
COUNTED = ("rows", "baskets", "items", "categories")

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ORDERS]...",
        help="Files, folders or patterns: CSV, Parquet or JSON lines, one row per item of a basket; text may be .gz.",
    ),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write; an old one is replaced at the end."),
]
CategoryColumn = Annotated[
    str,
    typer.Option(
        "--category", rich_help_panel=READING, help="The column of categories; auto: that called category, if any."
    ),
]
OneCategory = Annotated[
    bool, typer.Option("--one-category", rich_help_panel=READING, help="Put all items into one category.")
]
TimeColumn = Annotated[
    str | None, typer.Option("--time", rich_help_panel=READING, help="The column of dates or times, for --split-time.")
]
WeightColumn = Annotated[
    str | None,
    typer.Option("--weight", rich_help_panel=READING, help="The column of weights, above 0, one value per basket."),
]
Names = Annotated[
    str | None,
    typer.Option(metavar="FILE", rich_help_panel=READING, help="A table with the column --item and one of names."),
]
NameColumn = Annotated[str, typer.Option("--name", rich_help_panel=READING, help="The column of names in --names.")]


def _rule(help: str) -> Any:
    return typer.Option(rich_help_panel=RULES, help=help)


def prepare(
    inputs: Inputs = None,
    output: Output = Path("prepared"),
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    category: CategoryColumn = "auto",
    one_category: OneCategory = False,
    time: TimeColumn = None,
    weight: WeightColumn = None,
    names: Names = None,
    name: NameColumn = "name",
    drop: Annotated[
        list[str] | None, _rule("An item that is no product, as postage, by identifier or name; repeat for more.")
    ] = None,
    only: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", rich_help_panel=RULES, help="Keep the items of a file, one per line."),
    ] = None,
    min_products: Annotated[int, _rule("Baskets of fewer products are dropped.")] = 5,
    max_products: Annotated[int, _rule("Baskets of more products are dropped.")] = 100,
    count: Annotated[
        str,
        typer.Option(
            metavar="|".join(COUNTS),
            callback=one_of(COUNTS),
            rich_help_panel=RULES,
            help="What these count: different products, or rows.",
        ),
    ] = "products",
    min_count: Annotated[int, _rule("Items in fewer sub-baskets of their category are dropped.")] = 100,
    top_items: Annotated[int, _rule("How many items a category keeps, the most frequent.")] = 100,
    min_items: Annotated[int, _rule("Categories of fewer items are dropped, counted after the rules on items.")] = 25,
    min_baskets_per_item: Annotated[
        float, _rule("Categories of fewer sub-baskets per item are dropped, counted after the rules on items.")
    ] = 2,
    train: Annotated[
        float, typer.Option(rich_help_panel=SPLIT, help="The share of the baskets to learn from; 1 for no test.")
    ] = 0.7,
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=SPLIT, help="Seed of the random split.")] = 0,
    split_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", rich_help_panel=SPLIT, help="Learn from what is before, test on the rest."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What it may use, as 4GB; by default half of what there is.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="How many threads; by default all cores.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Turn raw orders into training and test baskets per category.

    Input that has not changed is not prepared again. An interrupted run continues. Without ORDERS, the report of the
    existing folder is printed.
    """
    if one_category and category != "auto":
        raise UsageError("give --category or --one-category, not both")
    if not inputs:
        prepared = Prepared.open(output)
    else:
        prepared = prepare_orders(
            inputs,
            output,
            basket=basket,
            item=item,
            category=None if one_category else category,
            time=time,
            weight=weight,
            names=names,
            name=name,
            min_products=min_products,
            max_products=max_products,
            count=count,
            top_items=top_items,
            min_count=min_count,
            min_items=min_items,
            min_baskets_per_item=min_baskets_per_item,
            train=train,
            seed=seed,
            split_time=split_time,
            drop=drop or (),
            items=() if only is None else read_items(only),
            memory=memory,
            threads=threads,
            force=force,
            progress=wants_progress(quiet),
        )
    write(prepare_report(prepared), prepare_tables, as_json)


def prepare_report(prepared: Prepared) -> Report:
    """The manifest, without what only a program can use."""
    left_out = {"setting", "kind", "format"}
    found = {name: value for name, value in prepared.manifest.items() if name not in left_out}
    return {"folder": str(prepared.folder), "new": prepared.new, **found}


def prepare_tables(report: Report) -> Iterator[Shown]:
    *lost, kept = report["account"]
    rows = [
        ("rows", f"{counted(report['n_rows'])}, of which {counted(kept['rows'])} kept"),
        ("baskets", f"{_sum([*lost, kept], 'baskets')}, of which {counted(kept['baskets'])} kept"),
        ("categories", f"{_sum([*lost, kept], 'categories')}, of which {counted(kept['categories'])} kept"),
        ("folder", shown(report["folder"]) + ("" if report["new"] else " (as it was: same input, same rules)")),
    ]
    yield Facts("Prepared", rows)
    yield _by_rule(report)
    yield _categories(report)
    if report["lost_categories"]:
        removed = [
            (shown(each["name"]), each["rule"], counted(each["n_items"]), counted(each["n_baskets"]))
            for each in report["lost_categories"]
        ]
        meaning = "What is not learned of, and by which rule; items and sub-baskets as the rules on items left them."
        yield TextTable("Categories lost", meaning, ["category", "rule", "items>", "sub-baskets>"], removed)
    yield from _bad_rows(report)
    yield from _notes(report)


def _by_rule(report: Report) -> TextTable:
    """Every row of the input is in one line of it. Baskets, items and categories are those of rows that can be used."""
    *lost, kept = report["account"]
    n_bad = sum(each["rows"] for each in report["bad_rows"])
    rows = [("read", counted(report["n_rows"]), *(_sum([*lost, kept], name) for name in COUNTED[1:]))]
    rows += [("bad rows", _lost(n_bad), "", "", "")]
    rows += [(each["what"], *(_lost(each[name]) for name in COUNTED)) for each in lost]
    rows += [("kept", *(counted(kept[name]) for name in COUNTED))]
    meaning = "Each line is what one rule took away; the last is what is left to learn from."
    return TextTable("What became of the orders", meaning, ["~", *(f"{name}>" for name in COUNTED)], rows)


def _categories(report: Report) -> TextTable:
    rows = [
        (
            shown(each["name"]),
            each["slug"],
            counted(each["n_items"]),
            counted(each["n_baskets"]["train"]),
            counted(each["n_baskets"]["test"]),
        )
        for each in report["categories"]
    ]
    meaning = "One model can be learned of each, from files of this name."
    return TextTable("Categories", meaning, ["category", "files", "items>", "to learn from>", "to test on>"], rows)


def _bad_rows(report: Report) -> Iterator[Shown]:
    rows = [
        (
            each["reason"],
            counted(each["rows"]) if not number else "",
            str(example["line"]),
            shown(example["file"]),
            shown(example["text"]),
        )
        for each in report["bad_rows"]
        for number, example in enumerate(each["examples"])
    ]
    if rows:
        meaning = "Rows that could not be read, and why; all others were."
        yield TextTable("Bad rows, for example", meaning, ["reason", "rows>", "line>", "file", "text"], rows)


def _notes(report: Report) -> Iterator[Shown]:
    for each in report["nearly_everywhere"]:
        yield (
            f"{shown(each['item'])} is in {share(each['share'])} of all baskets; if it is no product, such as "
            "postage, leave it out with --drop."
        )
    for each in report["dropped_items"]:
        yield f"{shown(each['item'])} was left out as no product: {counted(each['rows'], 'row')}."


def _lost(n: int) -> str:
    return f"-{counted(n)}" if n else ""


def _sum(entries: list[Report], name: str) -> str:
    return counted(sum(each[name] for each in entries))
