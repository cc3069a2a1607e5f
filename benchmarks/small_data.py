"""Shrinkage on small samples: `python -m benchmarks.small_data`. Finished rows are kept; a second call continues.

Models are fitted to the first 2N, 5N, 20N or all baskets of the training part of each category (N items), and evaluated
on its test part. Each draw is a split of its own. All models are of P(Y given Y ≠ ∅), the default for these data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source
from benchmarks.resuming import all_rows, without_tracebacks
from dpplearn.tools.journal import Row

FOLDER = Path(__file__).parent / "results"
SIZES = {"2N": 2, "5N": 5, "20N": 20, "all": None}
CATEGORIES = ("feeding", "diaper", "apparel", "toys", "media", "strollers", "safety", "furniture")


@dataclass(frozen=True)
class Trial:
    """One method on one draw: mean test log-likelihood, shrinkage, CPU seconds."""

    category: str
    size: str
    draw: int
    method: str
    n_items: int
    n_baskets: int
    test: float
    shrinkage: float
    seconds: float


Draw = tuple[str, str, int]  # category, size and number
Learn = Callable[[dl.Baskets, int], dl.FitResult]


def fixed(n_items: int, n_baskets: float) -> float:
    """Shrinkage without cross-validation."""
    return 8 * n_items / (n_baskets + 8 * n_items)


METHODS: dict[str, Learn] = {
    "independent": lambda train, draw: dl.fit_dpp(train, shrinkage=1, threads=1),
    "maximum likelihood": lambda train, draw: dl.fit_dpp(train, shrinkage=0, threads=1),
    "8N/(n + 8N)": lambda train, draw: dl.fit_dpp(train, shrinkage=fixed(train.n_items, len(train)), threads=1),
    "auto": lambda train, draw: dl.fit_dpp(train, shrinkage="auto", rng=draw, threads=1),
}


def draw_baskets(category: str, size: str, draw: int) -> tuple[dl.Baskets, dl.Baskets]:
    train, test = source().split(category, draw)
    per_item = SIZES[size]
    return (train if per_item is None else train[: per_item * train.n_items]), test


def run_draw(which: Draw) -> Row:
    """Return one line of the file: all methods of a draw."""
    return {"draw": list(which), "trials": [asdict(each) for each in trials(*which)]}


def trials(category: str, size: str, draw: int) -> list[Trial]:
    train, test = draw_baskets(category, size, draw)
    dl.fit_dpp(train, shrinkage=0.5, max_iter=2, threads=1)  # compiles, so that the times below are those of learning
    found = []
    for name, learn in METHODS.items():
        began = time.process_time()
        result = learn(train, draw)
        seconds = time.process_time() - began
        score = result.model.log_likelihood(test)
        found.append(Trial(category, size, draw, name, train.n_items, len(train), score, result.shrinkage, seconds))
    return found


def gains(found: list[Trial], category: str, size: str, method: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the gain over independent items, one value per draw."""
    values = {
        name: {
            each.draw: each.test for each in found if (each.category, each.size, each.method) == (category, size, name)
        }
        for name in (method, "independent")
    }
    return np.array([values[method][draw] - values["independent"][draw] for draw in sorted(values[method])])


def tables(found: list[Trial]) -> Iterator[Table]:
    categories = list(dict.fromkeys(each.category for each in found))
    names = [name for name in METHODS if name != "independent"]
    for size in dict.fromkeys(each.size for each in found):
        n_draws = len({each.draw for each in found if each.size == size})
        shown = Table(
            "category", "items", "independent", *names, "shrinkage, auto",
            title=f"{size}, mean of {n_draws} draws: test log-likelihood of independent items, and gain over it",
        )  # fmt: skip
        for category in categories:
            of = [each for each in found if (each.category, each.size) == (category, size)]
            if not of:
                continue
            base = float(np.mean([each.test for each in of if each.method == "independent"]))
            means = [float(np.mean(gains(found, category, size, name))) for name in names]
            chosen = ", ".join(f"{each.shrinkage:.2g}" for each in of if each.method == "auto")
            shown.add_row(category, str(of[0].n_items), f"{base:.3f}", *(f"{value:+.3f}" for value in means), chosen)
        seconds = [
            np.mean([each.seconds for each in found if (each.size, each.method) == (size, name)]) for name in names
        ]
        shown.add_row("CPU seconds, mean", "", "", *(f"{value:.2f}" for value in seconds), "")
        yield shown


def main(
    sizes: Annotated[list[str] | None, typer.Option("--size", help="2N, 5N, 20N or all; repeat for more.")] = None,
    categories: Annotated[list[str] | None, typer.Option("--category")] = None,
    draws: Annotated[int, typer.Option(help="Number of draws per category and size.")] = 3,
    processes: int = 1,
    fresh: Annotated[bool, typer.Option(help="Discard earlier results.")] = False,
    output: Path = FOLDER / "small_data.jsonl",
) -> None:
    output.parent.mkdir(exist_ok=True)
    wanted = [
        (category, size, draw)
        for draw in range(draws)
        for size in sizes or SIZES
        for category in source().chosen(categories or list(CATEGORIES))
    ]
    with without_tracebacks(output):
        rows = all_rows(
            output,
            wanted,
            run_draw,
            columns=("draw", "trials"),
            key=lambda row: tuple(row["draw"]),
            fresh=fresh,
            processes=processes,
        )
    console = Console(width=120)
    for shown in tables([Trial(**each) for row in rows for each in row["trials"]]):
        console.print(shown)


if __name__ == "__main__":
    typer.run(main)
