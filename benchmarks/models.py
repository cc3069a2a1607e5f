"""Compare models with each other and with baselines: `python -m benchmarks.models [DATA]...`. A second call continues.

Data: the registries, groceries and Belgian retail (its 200 most frequent items), three splits each, and 2N and 20N
baskets of every registry. Without the original data, generated registries replace them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

import dpplearn as dl
from benchmarks.learners.problems import SHARED, source
from benchmarks.resuming import Row, all_rows
from dpplearn.evaluation.baselines import EASE, INDEPENDENT, ITEM_TO_ITEM, POPULARITY
from dpplearn.utils.text import TextTable, as_text, number
from reproduction.data import CATEGORIES

TRAIN_SHARE, FIRST_SEED = 0.7, 31
MOST_FREQUENT = 200
GROCERIES, RETAIL = "groceries", "retail"
SIZES = {"all": None, "2N": 2, "20N": 20}
DRAWS = {"all": 3, "2N": 10, "20N": 3}
LITTLE = ("2N", "20N")
MIXTURE, SYMMETRIC, NONSYMMETRIC, SEGMENTS = "mixture", "symmetric DPP", "nonsymmetric DPP", "segments alone"
TASKS = ("given_one", "given_half", "all_but_one")
RANKING = ("percentile_rank", "recall@10")

Job = tuple[str, str, int]  # data, size, number of the split
Learn = Callable[[dl.Baskets, int], dl.FitResult]

MODELS: dict[str, Learn] = {
    MIXTURE: lambda train, seed: dl.fit(train, rng=seed),
    NONSYMMETRIC: lambda train, seed: dl.fit(train, segments=1, rng=seed),
    SEGMENTS: lambda train, seed: dl.fit(train, attraction=False, rank=0, rng=seed),
    SYMMETRIC: lambda train, seed: dl.fit_dpp(train, rng=seed),
}
OF_LITTLE = (MIXTURE,)


@lru_cache(maxsize=2)
def baskets_of(name: str) -> dl.Baskets:
    folder = SHARED / "data" / "baskets"
    if name == GROCERIES:
        return dl.read_baskets(folder / "groceries.csv", format="lines")
    if name == RETAIL:
        return dl.read_baskets(folder / "retail.dat").most_frequent(MOST_FREQUENT)
    return source().load(name)


def data_names() -> list[str]:
    original = source().kind == "original"
    return [*CATEGORIES, *((GROCERIES, RETAIL) if original else ())]


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
    return {each: {**results(found, each), "seconds": seconds.get(each)} for each in found.names}


def results(found: dl.Evaluation, model: str) -> Row:
    """Return the measures of one model. Baselines that only rank have no likelihood, calibration and sizes."""
    row: Row = {
        f"{measure}, {task}": found.estimate(model, measure, task=task).value for measure in RANKING for task in TASKS
    }
    if "log_likelihood" in found.measures(model):
        row["log_likelihood"] = found.estimate(model).value
    if model in found.reliability:
        row |= {f"calibration, {task}": found.reliability[model][task].error for task in TASKS}
        row["sizes"] = found.size_distance[model]
    return row


def mean(rows: Sequence[Row], model: str, measure: str) -> float:
    return float(np.mean([row[model][measure] for row in rows]))


def gain(rows: Sequence[Row], model: str = MIXTURE) -> float:
    return mean(rows, model, "log_likelihood") - mean(rows, INDEPENDENT, "log_likelihood")


def tables(rows: dict[Job, Row], names: Sequence[str]) -> list[TextTable]:
    of: dict[tuple[str, str], list[Row]] = {}
    for (name, size, _), row in rows.items():
        of.setdefault((name, size), []).append(row)
    models = [SYMMETRIC, NONSYMMETRIC, SEGMENTS, MIXTURE]
    rankers = [MIXTURE, EASE, ITEM_TO_ITEM, POPULARITY]
    little = [name for name in names if (name, "2N") in of]
    return [
        TextTable(
            "Gain over independent items, in nats per held-out basket",
            "",
            ("data", *(f"{each}>" for each in models)),
            [(name, *(number(gain(of[name, "all"], each), 3) for each in models)) for name in names],
        ),
        *(
            TextTable(
                f"Mean percentile rank / recall@10, {task.replace('_', ' ')}",
                "",
                ("data", *(f"{each}>" for each in rankers)),
                [(name, *(ranking(of[name, "all"], each, task) for each in rankers)) for name in names],
            )
            for task in TASKS
        ),
        TextTable(
            "Calibration error of the mixture, times 10,000",
            "",
            ("data", *(f"{task.replace('_', ' ')}>" for task in TASKS), "symmetric, given one>"),
            [(name, *calibration(of[name, "all"])) for name in names],
        ),
        TextTable(
            "Total variation distance of the size distribution; seconds per fit of the mixture",
            "",
            ("data", "mixture>", "symmetric>", "seconds>"),
            [(name, *sizes(of[name, "all"])) for name in names],
        ),
        TextTable(
            "Little data: gain; percentile rank of the mixture and of item-to-item",
            "",
            ("data", "2N>", "rank>", "item-to-item>", "20N>", "rank>", "item-to-item>"),
            [(name, *(each for size in LITTLE for each in of_little(of[name, size]))) for name in little],
        ),
    ]


def ranking(rows: Sequence[Row], model: str, task: str) -> str:
    rank, recall = (mean(rows, model, f"{measure}, {task}") for measure in RANKING)
    return f"{rank:.1f}/{100 * recall:.1f}"


def calibration(rows: Sequence[Row]) -> list[str]:
    errors = [mean(rows, MIXTURE, f"calibration, {task}") for task in TASKS]
    errors.append(mean(rows, SYMMETRIC, "calibration, given_one"))
    return [number(1e4 * error, 0) for error in errors]


def sizes(rows: Sequence[Row]) -> list[str]:
    distances = [number(mean(rows, model, "sizes"), 3) for model in (MIXTURE, SYMMETRIC)]
    return [*distances, number(mean(rows, MIXTURE, "seconds"), 2)]


def of_little(rows: Sequence[Row]) -> tuple[str, ...]:
    ranks = (f"{mean(rows, each, 'percentile_rank, all_but_one'):.1f}" for each in (MIXTURE, ITEM_TO_ITEM))
    return (number(gain(rows), 3), *ranks)


def main(names: Sequence[str]) -> None:
    """Run all models on the data of these names, and on 2N and 20N baskets of the registries among them."""
    small = [name for name in names if name not in (GROCERIES, RETAIL)]
    jobs: list[Job] = [
        (name, size, draw)
        for size, draws in DRAWS.items()
        for name in (small if size in LITTLE else names)
        for draw in range(draws)
    ]
    print(as_text(tables(all_rows("models", jobs, run), names)))


if __name__ == "__main__":
    main(sys.argv[1:] or data_names())
