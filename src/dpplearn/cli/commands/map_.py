"""dpplearn map: a set of high probability."""

from __future__ import annotations

from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.complete import write_selection
from dpplearn.cli.options import AsJson, Model, Quiet


def map_(
    model: Model,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Size; by default until no item raises the probability.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """A set of high probability, found greedily."""
    dpp = dpplearn.load(model)
    write_selection(model, dpp, [], dpp.greedy_map(k), as_json)
