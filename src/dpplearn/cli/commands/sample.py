"""dpplearn sample: random sets from a model."""

from __future__ import annotations

from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AnySeed, Model, some_seed
from dpplearn.cli.output import Display, Report
from dpplearn.utils.text import TextTable, contents, count


def sample(
    model: Model,
    display: Display,
    n: Annotated[int, typer.Option("-n")] = 10,
    k: Annotated[int | None, typer.Option("-k")] = None,
    seed: AnySeed = None,
) -> None:
    """Draw random sets from a model.

    Parameters
    ----------
    n
        Number of sets.
    k
        Items per set; by default the size is random, too.
    """
    loaded, seed = dpplearn.load(model), some_seed(seed)
    with display.busy("drawing"):
        sets = loaded.sample(n, k, rng=seed)
    rows = [(str(row), str(len(each)), contents(each)) for row, each in enumerate(sets, start=1)]
    table = TextTable(count(n, "random set"), "", [">", "size>", "items"], rows)
    display.write(Report({"n": n, "k": k, "samples": sets}, [table]), model=str(model), seed=seed)
