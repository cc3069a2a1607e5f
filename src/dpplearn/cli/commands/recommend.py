"""dpplearn recommend: items to add to a basket, or to every basket of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    FILE,
    OUTPUT,
    Columns,
    Force,
    Format,
    Items,
    Unknown,
    check_exclusive,
    check_target,
    named_columns,
    one_of,
)
from dpplearn.cli.output import Display
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.compiled import few_answers
from dpplearn.models.answers import RECOMMENDATION_TABLE, Recommendations
from dpplearn.models.store import ModelStore


def recommend(
    models: Annotated[Path, typer.Argument(metavar="MODEL")],
    display: Display,
    items: Items = None,
    k: Annotated[int, typer.Option("-k", min=1)] = 5,
    allow: list[str] | None = None,
    deny: list[str] | None = None,
    order: Annotated[str, one_of(("score", "blend"))] = "score",
    baskets: Annotated[str | None, FILE] = None,
    output: Annotated[Path | None, OUTPUT] = None,
    columns: Columns = None,
    format: Format = "auto",
    unknown: Unknown = "error",
    force: Force = False,
) -> None:
    """Recommend items to add to a basket, or to many baskets.

    Parameters
    ----------
    models
        A model file, a model store of fit-all, or a folder of models.
    k
        Number of items to recommend.
    allow
        Recommend only this item; repeat for more. By default all.
    deny
        Never recommend this item; repeat for more.
    order
        Rank by score, P(basket with the item) / P(basket); or blend item-to-item into the ranking, with the weight that
        fit found.
    baskets
        Recommend for every basket of a file, a pattern or a folder.
    output
        Table to write with --baskets: .csv, .parquet or .jsonl.
    """
    if (baskets is None) != (output is None):
        raise UsageError("--baskets FILE and --output FILE need each other")
    if order != "score" and (baskets is not None or models.is_dir()):
        raise UsageError(f"--order {order} needs a model file, and is not valid with --baskets")
    if baskets is None or output is None:
        check_exclusive({"--columns": columns}, "needs --baskets")
        found = _for_one(models, items or [], k, allow, deny or [], order == "blend", unknown)
        display.write(found, model=str(models))
        return
    check_exclusive({"ITEM": items}, "is not valid with --baskets")
    check_target("--output", output, (models, baskets), RECOMMENDATION_TABLE, force=force)
    named: dict[str, Any] = named_columns(columns, ("basket", "item"))
    store = ModelStore.open(models)
    result = dpplearn.recommend_all(
        store,
        baskets,
        output,
        **named,
        k=k,
        format=format,
        deny=_denied(store.catalogue, allow, deny or []),
        unknown=unknown,
        threads=display.threads,
        force=force,
        progress=display.progress,
    )
    display.write(result, model=str(models), baskets=baskets, output=str(output))


def _for_one(
    path: Path, basket: list[str], k: int, allow: list[str] | None, deny: list[str], blended: bool, unknown: str
) -> Recommendations:
    models: Any = ModelStore.open(path) if path.is_dir() else dpplearn.load(path)
    catalogue = models.catalogue
    known, dropped = known_items(basket, catalogue, unknown)
    held = catalogue.select(catalogue.positions(known))
    blend = {"blend": "auto"} if blended else {}
    with few_answers():
        found = models.recommend(held, k, deny=_denied(catalogue, allow, deny), **blend)
    caution = "" if path.is_dir() else models.caution
    return Recommendations(held, tuple(found), k, tuple(dropped), caution, blended)


def _denied(catalogue: Catalogue, allow: list[str] | None, deny: list[str]) -> list[Label]:
    """Return the items that are denied or not allowed."""
    denied = {*catalogue.select(catalogue.positions(deny))}
    if allow is not None:
        denied |= {*catalogue.labels} - {*catalogue.select(catalogue.positions(allow))}
    return list(denied)
