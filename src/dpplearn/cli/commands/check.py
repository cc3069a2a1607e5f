"""dpplearn check: test recent baskets for drift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.errors import DRIFTED
from dpplearn.cli.options import Data, Display, Model, Reading
from dpplearn.cli.output import Shown, busy, show, write_json
from dpplearn.lifecycle.check import Drift

FixedSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the sets that are drawn from the model.")]


def check(model: Model, data: Data, reading: Reading, display: Display, seed: FixedSeed = 0) -> None:
    """Test recent baskets for drift (exit code 3 if there is any)."""
    known = dpplearn.load(model)
    with busy(f"reading {data}", display.progress):
        baskets = reading.reader().read(data)
    found = dpplearn.check(known, baskets, rng=seed)
    if display.as_json:
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
