"""Compare the models with each other and with baselines: `python -m benchmarks.models`. Finished splits are kept.

Data: the registries, groceries and Belgian retail (its 200 most frequent items), three splits each, and 2N and 20N
baskets of every registry. Without the original data, generated registries replace them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import dpplearn as dl
from benchmarks.learners.problems import SHARED, source
from benchmarks.resuming import all_rows, without_tracebacks
from dpplearn.evaluation.baselines import INDEPENDENT, ITEM_TO_ITEM, POPULARITY
from dpplearn.tools.journal import Row
from dpplearn.tools.tables import TextTable, aligned
from dpplearn.tools.words import number

FOLDER = Path(__file__).parent / "results"
TRAIN_SHARE, FIRST_SEED = 0.7, 31
MOST_FREQUENT = 200
GROCERIES, RETAIL = "groceries", "retail"
SIZES = {"all": None, "2N": 2, "20N": 20}
LITTLE = {"2N": 10, "20N": 3}  # draws
MIXTURE, SYMMETRIC, NONSYMMETRIC, SEGMENTS = "mixture", "symmetric DPP", "nonsymmetric DPP", "segments alone"
FIGURES = ("log_likelihood", "percentile_rank", "recall@10")

Job = tuple[str, str, int]  # data, size, number of the split
Learn = Callable[[dl.Baskets, int], dl.FitResult]

MODELS: dict[str, Learn] = {
    MIXTURE: lambda train, seed: dl.fit(train, rng=seed),
    NONSYMMETRIC: lambda train, seed: dl.fit(train, segments=1, rng=seed),
    SEGMENTS: lambda train, seed: dl.fit(train, attraction=False, rank=0, rng=seed),
    SYMMETRIC: lambda train, seed: dl.fit_dpp(
        train, shrinkage=0.01, rng=seed
    ),  # so that no unseen basket is impossible
}
OF_LITTLE = (MIXTURE,)


@lru_cache(maxsize=2)
def baskets_of(name: str) -> dl.Baskets:
    if name == GROCERIES:
        lines = (SHARED / "data" / "baskets" / "groceries.csv").read_text(encoding="utf-8").splitlines()
        return dl.Baskets.from_lists([line.split(",") for line in lines])
    if name == RETAIL:
        lines = (SHARED / "data" / "baskets" / "retail.dat").read_text(encoding="utf-8").splitlines()
        return dl.Baskets.from_lists([line.split() for line in lines]).most_frequent(MOST_FREQUENT)
    return source().load(name)


def data_names() -> list[str]:
    original = source().kind == "original"
    return [*source().chosen([]), *((GROCERIES, RETAIL) if original else ())]


def run(job: Job) -> Row:
    """Every model and baseline on one split."""
    name, size, number_ = job
    train, test = baskets_of(name).split(TRAIN_SHARE, rng=FIRST_SEED + number_)
    if SIZES[size] is not None:
        rows = np.random.default_rng(number_).permutation(len(train))[: SIZES[size] * train.n_items]
        train = train.subset(np.sort(rows))
    models, seconds = {}, {}
    for model in MODELS if size == "all" else OF_LITTLE:
        began = time.perf_counter()
        models[model] = MODELS[model](train, number_)
        seconds[model] = time.perf_counter() - began
    found = dl.evaluate(models, test, train=train, k=10, rng=number_)
    figures = {
        each: {
            **{name: found.estimate(each, name).value for name in found.measures(each) if name in FIGURES},
            "calibration": found.reliability[each].error if each in found.reliability else None,
            "sizes": found.size_distance.get(each),
            "seconds": seconds.get(each),
        }
        for each in found.names
    }
    return {"name": name, "size": size, "number": number_, "figures": figures}


def mean(rows: Sequence[Row], model: str, figure: str) -> float:
    return float(np.mean([row["figures"][model][figure] for row in rows]))


def gain(rows: Sequence[Row], model: str = MIXTURE) -> float:
    return mean(rows, model, "log_likelihood") - mean(rows, INDEPENDENT, "log_likelihood")


def tables(rows: Sequence[Row], names: Sequence[str]) -> list[TextTable]:
    of = {(name, size): [r for r in rows if (r["name"], r["size"]) == (name, size)] for name in names for size in SIZES}
    full = [name for name in names if of[name, "all"]]
    models = [SYMMETRIC, NONSYMMETRIC, SEGMENTS, MIXTURE]
    rankers = [MIXTURE, "EASE", ITEM_TO_ITEM, "cosine", POPULARITY]
    little = [name for name in names if of[name, "2N"]]
    return [
        TextTable(
            "Gain over independent items, in nats per unseen basket",
            "",
            ("data", *(f"{each}>" for each in models)),
            [(name, *(number(gain(of[name, "all"], each), 3) for each in models)) for name in full],
        ),
        TextTable(
            "Mean percentile rank / recall@10 of a random item held out",
            "",
            ("data", *(f"{each}>" for each in rankers)),
            [(name, *(ranking(of[name, "all"], each) for each in rankers)) for name in full],
        ),
        TextTable(
            "Calibration error of P(i given a), times 10,000; total variation of the size law; seconds",
            "",
            ("data", "mixture>", "item-to-item>", "symmetric>", "size law>", "symmetric>", "s>"),
            [(name, *quality(of[name, "all"])) for name in full],
        ),
        TextTable(
            "Little data: gain; percentile rank of the mixture and of item-to-item",
            "",
            ("data", "2N>", "rank>", "item-to-item>", "20N>", "rank>", "item-to-item>"),
            [(name, *(each for size in LITTLE for each in of_little(of[name, size]))) for name in little],
        ),
    ]


def ranking(rows: Sequence[Row], model: str) -> str:
    return f"{mean(rows, model, 'percentile_rank'):.1f}/{100 * mean(rows, model, 'recall@10'):.1f}"


def quality(rows: Sequence[Row]) -> tuple[str, ...]:
    errors = [number(1e4 * mean(rows, each, "calibration"), 0) for each in (MIXTURE, ITEM_TO_ITEM, SYMMETRIC)]
    sizes = [number(mean(rows, each, "sizes"), 3) for each in (MIXTURE, SYMMETRIC)]
    return (*errors, *sizes, number(mean(rows, MIXTURE, "seconds"), 2))


def of_little(rows: Sequence[Row]) -> tuple[str, ...]:
    if not rows:
        return ("", "", "")
    ranks = (f"{mean(rows, each, 'percentile_rank'):.1f}" for each in (MIXTURE, ITEM_TO_ITEM))
    return (number(gain(rows), 3), *ranks)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    splits: Annotated[int, typer.Option(min=1, help="Of all data.")] = 3,
    little: Annotated[bool, typer.Option(help="Also on 2N and 20N baskets.")] = True,
    data: Annotated[str | None, typer.Option(help="Names, with commas between; by default all.")] = None,
    output: Annotated[Path, typer.Option(help="Where results are kept.")] = FOLDER / "models.jsonl",
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is kept.")] = False,
) -> None:
    """All models on all data."""
    names = data.split(",") if data else data_names()
    jobs: list[Job] = [(name, "all", number_) for name in names for number_ in range(splits)]
    if little:
        small = [name for name in names if name not in (GROCERIES, RETAIL)]
        jobs += [(name, size, draw) for size, draws in LITTLE.items() for name in small for draw in range(draws)]
    output.parent.mkdir(exist_ok=True)
    with without_tracebacks(output):
        rows = all_rows(
            output,
            jobs,
            run,
            columns=("name", "size", "number", "figures"),
            key=lambda row: (row["name"], row["size"], row["number"]),
            fresh=fresh,
        )
        for table in tables(rows, names):
            print(f"\n{table.title}\n", *aligned(table), sep="\n")


if __name__ == "__main__":
    app()
