"""dpplearn recommend: items to add to a basket, or to every basket of a table."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    Columns,
    Display,
    Force,
    Format,
    Items,
    TableOutput,
    Unknown,
    check_exclusive,
    check_target,
    named_columns,
    option,
)
from dpplearn.cli.output import Report, write
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.compiled import few_answers
from dpplearn.errors import InputError
from dpplearn.models.answers import RANKED, RECOMMENDATION_TABLE, Recommendations
from dpplearn.models.store import ModelStore
from dpplearn.utils.text import TextTable, chance

ORDERS = ("score", "blend")


def recommend(
    models: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, a model store of fit-all, or a folder of models.")
    ],
    display: Display,
    items: Items = None,
    k: Annotated[int, option("Number of items to recommend.", "-k", min=1)] = 5,
    allow: Annotated[list[str] | None, option("Recommend only this item; repeat for more. By default all.")] = None,
    deny: Annotated[list[str] | None, option("Never recommend this item; repeat for more.")] = None,
    order: Annotated[
        str,
        option(
            "Rank by score, P(basket with the item) / P(basket); or blend item-to-item into the ranking, with the "
            "weight that fit found.",
            known=ORDERS,
        ),
    ] = "score",
    baskets: Annotated[
        str | None, option("Recommend for every basket of a file, a pattern or a folder.", metavar="FILE")
    ] = None,
    output: TableOutput = None,
    columns: Columns = None,
    format: Format = "auto",
    unknown: Unknown = "error",
    force: Force = False,
) -> None:
    """Recommend items to add to a basket, or to many baskets."""
    if baskets is None:
        check_exclusive({"--output": output, "--columns": columns}, "needs --baskets")
        write(_for_one(models, items or [], k, allow, deny or [], order, unknown), display, model=str(models))
        return
    if items:
        raise UsageError("give ITEMs or --baskets FILE, not both")
    if order != "score":
        raise UsageError(f"--order {order} is not valid with --baskets")
    check_target("--output", output, (models, baskets), RECOMMENDATION_TABLE, force=force)
    named: dict[str, Any] = named_columns(columns, ("basket", "item"))
    denied = _denied(ModelStore.open(models).catalogue, allow, deny or [])
    options = {**named, "k": k, "format": format, "deny": denied, "unknown": unknown}
    options |= {"threads": display.threads, "progress": display.progress}
    if output is not None:
        result = dpplearn.recommend_all(models, baskets, output, force=force, **options)
        write(result, display, model=str(models), baskets=baskets, output=str(output))
        return
    with TemporaryDirectory() as folder:
        table = Path(folder) / "recommendations.jsonl"
        result = dpplearn.recommend_all(models, baskets, table, **options)
        with open(table, encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    write(_table(rows, result), display, model=str(models), baskets=baskets)


def _for_one(
    path: Path, basket: list[str], k: int, allow: list[str] | None, deny: list[str], order: str, unknown: str
) -> Recommendations:
    if path.is_dir():
        store = ModelStore.open(path)
        if order != "score":
            raise InputError(f"--order {order} needs a model file, and {path} is a model store")
        catalogue, caution = store.catalogue, ""
    else:
        model = dpplearn.load(path)
        catalogue, caution = model.catalogue, model.caution
    known, dropped = known_items(basket, catalogue, unknown)
    held = catalogue.select(catalogue.positions(known))
    with few_answers():
        if path.is_dir():
            found: tuple[Any, ...] = tuple(store.recommend(held, k, deny=_denied(catalogue, allow, deny)))
        else:
            blend = "auto" if order == "blend" else None
            found = tuple(model.recommend(held, k, allow=allow, deny=deny, blend=blend))
    return Recommendations(held, found, k, tuple(dropped), caution, blended=order == "blend")


def _denied(catalogue: Catalogue, allow: list[str] | None, deny: list[str]) -> list[Label]:
    """Return the items that are denied or not allowed."""
    denied = {*catalogue.select(catalogue.positions(deny))}
    if allow is not None:
        denied |= {*catalogue.labels} - {*catalogue.select(catalogue.positions(allow))}
    return list(denied)


def _table(rows: list[dict[str, Any]], result: dpplearn.Recommended) -> Report:
    cells = [
        (
            str(row["basket"]) if row["rank"] == 1 else "",
            str(row["item"]),
            chance(row["probability"]),
            "-" if row["score"] is None else chance(row["score"]),
        )
        for row in rows
    ]
    table = TextTable("To add to each basket", RANKED, ["basket", "item", "probability>", "score>"], cells)
    dropped = [each for each in result.tables() if isinstance(each, str)]
    return Report({"recommendations": rows}, [table, *dropped])
