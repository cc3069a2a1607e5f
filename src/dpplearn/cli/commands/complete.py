"""dpplearn complete: extend a basket to a set of high probability."""

from __future__ import annotations

from typing import Annotated

import dpplearn
from dpplearn.cli.options import Display, Items, Model, option
from dpplearn.cli.output import write


def complete(
    model: Model,
    display: Display,
    items: Items = None,
    k: Annotated[
        int | None,
        option(
            "Size of the set, including the ITEMs. By default the set grows until no item raises its probability.",
            "-k",
            min=1,
        ),
    ] = None,
) -> None:
    """Extend a basket to a set of high probability (greedy MAP).

    Without items, the most probable set found.
    """
    loaded = dpplearn.load(model)
    write(loaded.complete(items or [], k), display, model=str(model), caution=loaded.caution)
