"""dpplearn diagnose: measure which model suits the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dpplearn.cli.options import FILE, Data, Filter, Positive, Read, Seed
from dpplearn.cli.output import Display


def diagnose(
    data: Data,
    read: Read,
    filter: Filter,
    display: Display,
    similarity: Annotated[Path | None, FILE] = None,
    top: Positive = 2,  # the answer fits on a screen of 25 lines
    seed: Seed = 0,
) -> None:
    """Measure on held-out baskets which model suits the data.

    Parameters
    ----------
    similarity
        CSV or Parquet file with the group of each item, or with one row and one column per item. Adds the lift of pairs
        by similarity.
    top
        How many pairs of items to show.
    """
    from dpplearn.analysis.diagnose import diagnose

    baskets = filter.filtered(read.baskets(data, display))
    result = diagnose(baskets, similarity=similarity, rng=seed, threads=display.threads, progress=display.progress)
    display.write(result, top, data=data, seed=seed)
