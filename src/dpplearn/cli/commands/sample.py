"""dpplearn sample: random sets from a model."""

from __future__ import annotations

from typing import Annotated

import numpy as np

import dpplearn
from dpplearn.cli.options import Display, Model, Seed, option, some_seed
from dpplearn.cli.output import Report, write
from dpplearn.data.catalogue import Label
from dpplearn.errors import whole_number
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import TextTable, contents, count

BATCH_SIZE = 3200  # sets between two updates of the progress


def sample(
    model: Model,
    display: Display,
    n: Annotated[int, option("Number of sets.", "-n", min=1)] = 10,
    k: Annotated[int | None, option("Items per set; by default the size is random, too.", "-k", min=0)] = None,
    seed: Seed = None,
) -> None:
    """Draw random sets from a model."""
    loaded, seed = dpplearn.load(model), some_seed(seed)
    n, rng = whole_number("n", n, 1), np.random.default_rng(seed)
    sets: list[list[Label]] = []
    with shown_progress(display.progress, transient=True) as shown:
        bar = shown.bar("drawing", n)
        while len(sets) < n:
            sets += loaded.sample(min(BATCH_SIZE, n - len(sets)), k, rng)
            bar.update(len(sets))
    rows = [(str(row), str(len(each)), contents(each)) for row, each in enumerate(sets, start=1)]
    table = TextTable(f"{count(n, 'random set')}", "", [">", "size>", "items"], rows)
    write(Report({"n": n, "k": k, "samples": sets}, [table]), display, model=str(model), seed=seed)
