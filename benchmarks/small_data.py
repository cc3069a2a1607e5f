"""Shrinkage on small samples: `python -m benchmarks.small_data [CATEGORY]...`. A second call continues.

Models are fitted to the first 2N, 5N, 20N or all baskets of the training part of each category (N items), and evaluated
on its test part. Each draw is a split of its own. All models are of P(Y given Y ≠ ∅), the default for these data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source
from benchmarks.resuming import Row, all_rows

SIZES = {"2N": 2, "5N": 5, "20N": 20, "all": None}
CATEGORIES = ("feeding", "diaper", "apparel", "toys", "media", "strollers", "safety", "furniture")
DRAWS = 3

Draw = tuple[str, str, int]  # category, size and number


def fixed(n_items: int, n_baskets: float) -> float:
    """Return a shrinkage that needs no cross-validation."""
    return 8 * n_items / (n_baskets + 8 * n_items)


METHODS: dict[str, Callable[[dl.Baskets, int], dl.FitResult]] = {
    "independent": lambda train, draw: dl.fit_dpp(train, shrinkage=1, threads=1),
    "maximum likelihood": lambda train, draw: dl.fit_dpp(train, shrinkage=0, threads=1),
    "8N/(n + 8N)": lambda train, draw: dl.fit_dpp(train, shrinkage=fixed(train.n_items, len(train)), threads=1),
    "auto": lambda train, draw: dl.fit_dpp(train, shrinkage="auto", rng=draw, threads=1),
}


def run(job: Draw) -> Row:
    """Return test log-likelihood, shrinkage and CPU seconds of every method."""
    category, size, draw = job
    train, test = source().split(category, draw)
    per_item = SIZES[size]
    if per_item is not None:
        train = train[: per_item * train.n_items]
    dl.fit_dpp(train, shrinkage=0.5, max_iter=2, threads=1)  # compiles, so that the times below are those of learning
    found: Row = {}
    for name, learn in METHODS.items():
        began = time.process_time()
        result = learn(train, draw)
        seconds = time.process_time() - began
        found[name] = {
            "test": result.model.log_likelihood(test),
            "shrinkage": result.shrinkage,
            "seconds": seconds,
        }
    return found


def table(rows: dict[Draw, Row], size: str, categories: Sequence[str]) -> Table:
    names = [name for name in METHODS if name != "independent"]
    shown = Table(
        *("category", "independent", *names, "shrinkage, auto"),
        title=f"{size}, mean of {DRAWS} draws: test log-likelihood of independent items, and gain over it",
    )
    for category in categories:
        found = [rows[category, size, draw] for draw in range(DRAWS)]
        tests = {name: np.array([row[name]["test"] for row in found]) for name in METHODS}
        means = [float((tests[name] - tests["independent"]).mean()) for name in names]
        chosen = ", ".join(f"{row['auto']['shrinkage']:.2g}" for row in found)
        shown.add_row(category, f"{tests['independent'].mean():.3f}", *(f"{value:+.3f}" for value in means), chosen)
    of_size = [row for (_, its_size, _), row in rows.items() if its_size == size]
    seconds = [np.mean([row[name]["seconds"] for row in of_size]) for name in names]
    shown.add_row("CPU seconds, mean", "", *(f"{value:.2f}" for value in seconds), "")
    return shown


def main(categories: Sequence[str]) -> None:
    jobs = [(category, size, draw) for draw in range(DRAWS) for size in SIZES for category in categories]
    rows = all_rows("small_data", jobs, run, in_processes=True)
    console = Console(width=120)
    for size in SIZES:
        console.print(table(rows, size, categories))


if __name__ == "__main__":
    main(sys.argv[1:] or CATEGORIES)
