"""dpplearn sample: sets drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

import dpplearn
from dpplearn.cli.options import AsJson, Model, Quiet, Seed, some_seed
from dpplearn.cli.output import Report, Shown, counted, wants_progress, write
from dpplearn.data.catalogue import Label
from dpplearn.errors import whole_number
from dpplearn.models.model import SetModel
from dpplearn.utils.text import TextTable, contents, count

AT_ONCE = 3200  # sets, after which progress is shown


def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="How many sets.")] = 10,
    k: Annotated[
        int | None, typer.Option("-k", min=0, help="Items per set; by default as many as the model draws.")
    ] = None,
    seed: Seed = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw random sets from a model."""
    dpp, seed = dpplearn.load(model), some_seed(seed)
    sets = _draw(dpp, n, k, seed, wants_progress(quiet))
    report = {"model": str(model), "n": len(sets), "k": k, "seed": seed, "samples": sets}
    write(report, sample_tables, as_json)


def _draw(dpp: SetModel, n: int, k: int | None, seed: int, progress: bool) -> list[list[Label]]:
    """The sets that `dpp.sample` gives from a generator of this seed, of many so many at a time."""
    n, rng = whole_number("n", n, 1), np.random.default_rng(seed)
    sets: list[list[Label]] = []
    with counted("drawing", n, progress) as done:
        while len(sets) < n:
            size = min(AT_ONCE, n - len(sets))
            sets += dpp.sample(size, k, rng)
            done(size)
    return sets


def sample_tables(report: Report) -> Iterator[Shown]:
    rows = [(str(row), str(len(each)), contents(each)) for row, each in enumerate(report["samples"])]
    size = "" if report["k"] is None else f" of {count(report['k'], 'item')}"
    title = f"{count(report['n'], 'set')}{size}, seed {report['seed']}"
    meaning = "Drawn at random, each as likely as the model has it."
    yield TextTable(title, meaning, ["set>", "size>", "items"], rows)
