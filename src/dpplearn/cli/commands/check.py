"""dpplearn check: test recent baskets for drift."""

from __future__ import annotations

import typer

import dpplearn
from dpplearn.cli.errors import DRIFTED
from dpplearn.cli.options import Data, Model, Read, Seed
from dpplearn.cli.output import Display


def check(model: Model, data: Data, read: Read, display: Display, seed: Seed = 0) -> None:
    """Test recent baskets for drift (exit code 3 if there is any)."""
    known = dpplearn.load(model)
    baskets = read.baskets(data, display)
    result = dpplearn.check(known, baskets, rng=seed)
    display.write(result, model=str(model), data=data, seed=seed)
    if result.drifted:
        raise typer.Exit(DRIFTED)
