"""dpplearn add-items: a model with items that no basket has held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import AsJson, Force, Quiet, check_target
from dpplearn.cli.output import Report, Shown, write
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.models.store import ModelStore
from dpplearn.utils.text import TextTable, chance, shown


def add_items(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, or with --category a store of dpplearn fit-all.")
    ],
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="The items to add, which the model lacks.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write the model to.")
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(metavar="SLUG", help="Category of the store whose model is replaced; instead of --output."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="An item of the model that they are like: as likely, and to others as that."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table (CSV or Parquet) with a row for every item, old and new, that says how likely new ones are; "
            "where it predicts no better than their average, that is taken.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add items without data to a model."""
    if like is not None and features is not None:
        raise UsageError("--like and --features exclude each other; give one of them, or neither")
    if (output is None) == (category is None):
        raise UsageError("give --output for a model file, or --category for a model store, not both")
    if not all(item.strip() for item in items):
        raise UsageError("an ITEM is empty; name every item to add")
    how: dict[str, Any] = {"features": str(features) if features is not None else None, "like": like}
    if category is not None:
        store = ModelStore.open(model)
        found = store.replace(category, store[category].with_items(items, **how))[category]
    else:
        assert output is not None
        check_target("--output", output, (model, features), MODEL_FILE, force=force)
        found = dpplearn.load(model).with_items(items, **how)
        found.save(output, force=force)
    p = dict(zip(found.items, found.marginals().tolist(), strict=True))
    report = {
        "model": str(output or model),
        "n_items": len(found.items),
        "added": [{"item": item, "probability": p[item]} for item in found.items[-len(items) :]],
        "note": found.learned.added,
    }
    write(report, add_items_tables, as_json)


def add_items_tables(report: Report) -> Iterator[Shown]:
    rows = [(shown(each["item"]), chance(each["probability"])) for each in report["added"]]
    yield TextTable("Added", report["note"], ["item", "probability>"], rows)
    yield f"model: {shown(report['model'])}, of {report['n_items']} items"
