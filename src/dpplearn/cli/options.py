"""The arguments and options that commands share, and what some of them come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from dpplearn.data.baskets import Baskets
from dpplearn.data.readers import FORMATS, read_baskets


def one_of(known: Iterable[str]) -> Callable[[str], str]:
    """A check that a value is one of those known; typer says whose value it is."""
    names = list(known)

    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}")
        return value

    return check


READING = "Reading baskets"

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A file of baskets, or a quoted pattern such as 'orders-*.csv'.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that dpplearn fit wrote.")]
Items = Annotated[
    list[str] | None, typer.Argument(metavar="[ITEM]...", help="Items of the basket; none is the empty one.")
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the random numbers; by default a new one.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many items and pairs to show.")]

Format = Annotated[
    str,
    typer.Option(
        metavar="|".join(FORMATS),
        callback=one_of(FORMATS),
        rich_help_panel=READING,
        help="csv and parquet have one row a basket and item; lines has one basket a line; auto goes by the ending.",
    ),
]
BasketColumn = Annotated[
    str, typer.Option("--basket", rich_help_panel=READING, help="The column of basket identifiers.")
]
ItemColumn = Annotated[str, typer.Option("--item", rich_help_panel=READING, help="The column of items.")]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", rich_help_panel=READING, help="The column of weights, one value a basket.")
]


class Reader(NamedTuple):
    """How to read baskets."""

    format: str
    basket: str
    item: str
    weight: str | None

    def read(self, path: str) -> Baskets:
        return read_baskets(path, *self)


def some_seed(seed: int | None) -> int:
    """One that can be reported, and so used again."""
    return int(np.random.default_rng().integers(2**31)) if seed is None else seed
