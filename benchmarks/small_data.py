"""How priors do on little data: `python -m benchmarks.small_data`. What is done is kept: a second call goes on.

From the training part of each category's split, the first 2N, 5N, 20N or all baskets are learned from; the test part
says how well. Every draw is a split of its own.
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
DRAWS = {"2N": 25, "5N": 5, "20N": 5, "all": 5}
OF_ALL_METHODS = 3  # draws; of more there are independent items and the default alone


@dataclass(frozen=True)
class Trial:
    """One way of learning on one draw: the mean test log-likelihood, the strength of the prior, the time it took."""

    data: str
    category: str
    size: str
    draw: int
    method: str
    n_items: int
    n_baskets: int
    test: float
    prior: float
    seconds: float


Draw = tuple[str, str, int]  # category, size and number
Learn = Callable[[dl.Baskets, int], dl.FitResult]

METHODS: dict[str, Learn] = {
    "independent": lambda train, draw: dl.fit(train, prior=np.inf, threads=1, nonempty=False),
    "maximum likelihood": lambda train, draw: dl.fit(train, prior=0, threads=1, nonempty=False),
    "weight N": lambda train, draw: dl.fit(train, prior=train.n_items / train.total_weight, threads=1, nonempty=False),
    "validation": lambda train, draw: dl.fit(train, prior=0, validation=0.1, rng=draw, threads=1, nonempty=False),
    "auto": lambda train, draw: dl.fit(train, prior="auto", rng=draw, threads=1, nonempty=False),
}


def draw_baskets(category: str, size: str, draw: int) -> tuple[dl.Baskets, dl.Baskets]:
    train, test = source().split(category, draw)
    per_item = SIZES[size]
    return (train if per_item is None else train[: per_item * train.n_items]), test


def run_draw(which: Draw) -> Row:
    """One line of the file, so that a kill leaves all of a draw or nothing."""
    return {"draw": list(which), "trials": [asdict(each) for each in trials(*which)]}


def trials(category: str, size: str, draw: int) -> list[Trial]:
    train, test = draw_baskets(category, size, draw)
    dl.fit(train, prior=1, max_iter=2, threads=1, nonempty=False)  # loads compiled code, which is not learning time
    found = []
    for name, learn in METHODS.items():
        if draw >= OF_ALL_METHODS and name not in ("independent", "auto"):
            continue
        began = time.perf_counter()
        result = learn(train, draw)
        seconds = time.perf_counter() - began
        found.append(
            Trial(
                source().kind, category, size, draw, name, train.n_items, len(train),
                result.dpp.log_likelihood(test), result.prior, seconds,
            )
        )  # fmt: skip
    return found


def gains(found: list[Trial], category: str, size: str, method: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Over independent items, one value per draw."""
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
            "category", "independent", *names, "least, auto", "priors, auto",
            title=f"{size}, {n_draws} draws: median test log-likelihood of independent items, and median gain over it",
        )  # fmt: skip
        for category in categories:
            of = [each for each in found if (each.category, each.size) == (category, size)]
            if not of:
                continue
            base = float(np.median([each.test for each in of if each.method == "independent"]))
            medians = [float(np.median(gains(found, category, size, name))) for name in names]
            strengths = sorted(each.prior for each in of if each.method == "auto")
            counts = ", ".join(f"{value:g}×{strengths.count(value)}" for value in dict.fromkeys(strengths))
            least = float(gains(found, category, size, "auto").min())
            shown.add_row(category, f"{base:.3f}", *(f"{value:+.3f}" for value in medians), f"{least:+.3f}", counts)
        seconds = [
            np.mean([each.seconds for each in found if (each.size, each.method) == (size, name)]) for name in names
        ]
        shown.add_row("seconds, mean", "", *(f"{value:.2f}" for value in seconds), "", "")
        yield shown


def main(
    sizes: Annotated[list[str] | None, typer.Option("--size", help="2N, 5N, 20N or all; repeat for more.")] = None,
    categories: Annotated[list[str] | None, typer.Option("--category")] = None,
    draws: Annotated[int | None, typer.Option(help="How many draws, instead of 25 at 2N and 5 at others.")] = None,
    processes: int = 1,
    fresh: Annotated[bool, typer.Option(help="Forget the draws of before.")] = False,
    output: Path = FOLDER / "small_data.jsonl",
) -> None:
    output.parent.mkdir(exist_ok=True)
    wanted = [
        (category, size, draw)
        for size in sizes or SIZES
        for draw in range(draws or DRAWS[size])
        for category in source().chosen(categories or [])
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
    console = Console(width=170)
    for shown in tables([Trial(**each) for row in rows for each in row["trials"]]):
        console.print(shown)


if __name__ == "__main__":
    typer.run(main)
