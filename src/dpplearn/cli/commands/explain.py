"""dpplearn explain: which items of a basket make a candidate more or less likely."""

from __future__ import annotations

from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import Items, Model
from dpplearn.cli.output import Display
from dpplearn.distributions.compiled import few_answers
from dpplearn.models.explaining import N_ORDERS


def explain(
    model: Model,
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE")],
    display: Display,
    items: Items = None,
    orders: int = N_ORDERS,
) -> None:
    """Explain why a basket makes an item more or less likely.

    Parameters
    ----------
    candidate
        The item to be added.
    orders
        Random orders to average over, for baskets of more than 10 items.
    """
    loaded = dpplearn.load(model)
    with few_answers():
        result = loaded.explain(items or [], candidate, n_orders=orders)
    display.write(result, model=str(model), caution=loaded.caution)
