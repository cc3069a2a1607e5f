"""dpplearn check: whether recent baskets are still what a model expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.errors import DRIFTED
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Format,
    ItemColumn,
    Model,
    Quiet,
    Reader,
    Since,
    TimeColumn,
    WeightColumn,
)
from dpplearn.cli.output import Shown, busy, show, wants_progress, write_json
from dpplearn.upkeep.drift import Drift

FixedSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the sets that are drawn from the model.")]


def check(
    model: Model,
    data: Data,
    seed: FixedSeed = 0,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Test recent baskets for drift (exit code 3 if there is any)."""
    known = dpplearn.load(model)
    with busy(f"reading {data}", wants_progress(quiet)):
        baskets = Reader(format, basket, item, weight, time=time, since=since, before=before).read(data)
    found = dpplearn.check(known, baskets, rng=seed)
    if as_json:
        write_json({"model": str(model), "data": data, "seed": seed, **found.to_dict()})
    else:
        show(_shown(found))
    if found.drifted:
        raise typer.Exit(DRIFTED)


def _shown(found: Drift) -> Iterator[Shown]:
    yield found.verdict
    yield from found.sentences
    if found.moved:
        yield found.table
