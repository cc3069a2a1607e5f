"""dpplearn add-items: add items without data to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import FILE, OUTPUT, Force, check_target
from dpplearn.cli.output import Display, Report
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.models.store import ModelStore
from dpplearn.utils.text import TextTable, chance


def add_items(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    items: Annotated[list[str], typer.Argument(metavar="ITEM")],
    display: Display,
    output: Annotated[Path | None, OUTPUT] = None,
    category: Annotated[str | None, typer.Option(metavar="SLUG")] = None,
    like: Annotated[str | None, typer.Option(metavar="ITEM")] = None,
    features: Annotated[Path | None, FILE] = None,
    force: Force = False,
) -> None:
    """Add items without data to a model.

    By default a new item has the mean popularity and is independent of all others.

    Parameters
    ----------
    model
        A model file, or with --category a store of dpplearn fit-all.
    items
        The new items.
    output
        The model file to write.
    category
        Category of the store whose model is replaced; instead of --output.
    like
        Existing item whose popularity and interactions the new items copy.
    features
        CSV or Parquet file with one row per item, old and new, to predict the popularity of the new items.
    """
    if like is not None and features is not None:
        raise UsageError("--like and --features are mutually exclusive")
    if (output is None) == (category is None):
        raise UsageError("give --output for a model file, or --category for a model store")
    if not all(item.strip() for item in items):
        raise UsageError("an ITEM is empty")
    how: dict[str, Any] = {"features": features, "like": like}
    if category is not None:
        store = ModelStore.open(model)
        found = store.replace(category, store[category].with_items(items, **how))[category]
    else:
        assert output is not None
        check_target("--output", output, (model, features), MODEL_FILE, force=force)
        found = dpplearn.load(model).with_items(items, **how)
        found.save(output, force=force)
    added = list(zip(found.items, found.marginals().tolist(), strict=True))[-len(items) :]
    note, probabilities = found.learned.added, [{"item": item, "probability": p} for item, p in added]
    values = {"n_items": len(found.items), "added": probabilities, "note": note}
    rows = [(str(item), chance(p)) for item, p in added]
    table = TextTable("New items", note or "", ["item", "probability>"], rows)
    display.write(Report(values, [table]), model=str(model), output=str(output or model))
