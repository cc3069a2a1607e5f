"""dpplearn complete: extend a basket to a set of high probability."""

from __future__ import annotations

from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import Items, Model
from dpplearn.cli.output import Display


def complete(
    model: Model, display: Display, items: Items = None, k: Annotated[int | None, typer.Option("-k")] = None
) -> None:
    """Extend a basket to a set of high probability (greedy MAP).

    Without items, the most probable set found.

    Parameters
    ----------
    k
        Size of the set, including the ITEMs. By default the set grows until no item raises its probability.
    """
    loaded = dpplearn.load(model)
    display.write(loaded.complete(items or [], k), model=str(model), caution=loaded.caution)
