"""What the learners that the paper builds on are worth: `python -m benchmarks.prior_work`. What is done is kept.

On the registries, by the test part of each category's split: independent items, quality with a uniform similarity,
quality with the type that names tell, a whole kernel, and a mixture, learned from the first 2N or 20N baskets, or from
all. All of them given that baskets are not empty, as none is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source
from benchmarks.resuming import all_rows, without_tracebacks
from benchmarks.small_data import FOLDER, SIZES
from dpplearn.tools.journal import Row

TAKEN = ("2N", "20N", "all")
FEWEST_FIELDS = 3  # of a name that tells a type: what it is called, its type, its department


def type_of(name: str) -> str | None:
    """Of "Britax Back Seat Mirror : Rear Facing Baby View Mirrors : Baby", what stands before the department."""
    fields = re.split(r"\s*:\s+|\s+:\s*", name)
    return fields[-2] if len(fields) >= FEWEST_FIELDS else None


def of_type(train: dl.Baskets) -> dl.FitResult:
    kinds = [type_of(str(item)) for item in train.items]
    return dl.fit(train, learner="quality", similarity={"type": kinds}, threads=1)


METHODS: dict[str, Callable[[dl.Baskets], dl.FitResult]] = {
    "independent": lambda train: dl.fit(train, prior=np.inf, threads=1),
    "uniform": lambda train: dl.fit(train, learner="quality", similarity="uniform", threads=1),
    "type": of_type,
    "whole kernel": lambda train: dl.fit(train, model="dpp", rng=0, threads=1),
    "mixture": lambda train: dl.fit(train, model="mixture", rng=0, threads=1),
}


def trial(job: tuple[str, str]) -> Row:
    size, category = job
    train, test = source().split(category, 0)
    per_item = SIZES[size]
    train = train if per_item is None else train[: per_item * train.n_items]
    found: Row = {"job": list(job), "n_items": train.n_items, "n_baskets": len(train), "tests": {}, "seconds": {}}
    for name, learn in METHODS.items():
        began = time.perf_counter()
        result = learn(train)
        found["seconds"][name] = time.perf_counter() - began
        found["tests"][name] = result.model.log_likelihood(test)
        if name == "type":
            found["strengths"] = {row.name: [row.weight, row.standard_error] for row in result.quality.strength_rows}
    return found


def table(size: str, rows: list[Row]) -> Table:
    shown = Table(
        "category", "items", "baskets", "independent", *list(METHODS)[1:], "uniform τ", "type w",
        title=f"{size}: test log-likelihood per basket of independent items, and gains over it",
    )  # fmt: skip
    for row in rows:
        tests, strengths = row["tests"], row["strengths"]
        gains = [f"{tests[name] - tests['independent']:+.3f}" for name in list(METHODS)[1:]]
        learned = [f"{weight:.2f} ± {error:.2f}" for weight, error in strengths.values()]
        counts = [str(row["n_items"]), str(row["n_baskets"])]
        shown.add_row(row["job"][1], *counts, f"{tests['independent']:.3f}", *gains, *learned)
    return shown


def main(
    sizes: Annotated[list[str] | None, typer.Option("--size", help="2N, 20N or all; repeat for more.")] = None,
    categories: Annotated[list[str] | None, typer.Option("--category")] = None,
    fresh: Annotated[bool, typer.Option(help="Forget what was done before.")] = False,
    output: Path = FOLDER / "prior_work.jsonl",
) -> None:
    output.parent.mkdir(exist_ok=True)
    jobs = [(size, category) for size in sizes or TAKEN for category in source().chosen(categories or [])]
    with without_tracebacks(output):
        columns = ("job", "n_items", "n_baskets", "tests", "seconds", "strengths")
        rows = all_rows(output, jobs, trial, columns=columns, key=lambda row: tuple(row["job"]), fresh=fresh)
    for size in sizes or TAKEN:
        Console(width=150).print(table(size, [row for row in rows if row["job"][0] == size]))


if __name__ == "__main__":
    typer.run(main)
