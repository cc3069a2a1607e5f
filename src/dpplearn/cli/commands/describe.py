"""dpplearn describe: summarise a model, or one of its items."""

from __future__ import annotations

import dpplearn
from dpplearn.cli.options import Model, Positive
from dpplearn.cli.output import Display
from dpplearn.models.describe import describe as describe_model
from dpplearn.models.describe import describe_item


def describe(model: Model, display: Display, item: str | None = None, top: Positive = 10) -> None:
    """Summarise a model: sizes, substitutes, complements, segments.

    Parameters
    ----------
    item
        Show the substitutes and complements of this item.
    top
        How many items and pairs to show.
    """
    loaded = dpplearn.load(model)
    result = describe_model(loaded, top) if item is None else describe_item(loaded, item, top)
    display.write(result, model=str(model), caution=loaded.caution)
