"""dpplearn recommend-all: what to add to every basket of a table, as a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dpplearn.cli.options import AsJson, BasketColumn, Force, ItemColumn, Quiet, Unknown, check_target
from dpplearn.cli.output import Report, Shown, wants_progress, write
from dpplearn.models.answers import RECOMMENDATION_TABLE
from dpplearn.pipeline.recommend_all import recommend_all as recommend_baskets
from dpplearn.pipeline.source import find_files
from dpplearn.utils.text import Facts, contents, count, number, shown
from dpplearn.utils.threads import MOST_THREADS

Models = Annotated[Path, typer.Argument(metavar="STORE", help="A model store, a folder of models, or a model file.")]
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="BASKETS...",
        help="Files, folders or patterns: CSV, Parquet or JSON lines, one row per item of a basket; text may be .gz.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The table to write, .csv, .parquet or .jsonl: basket, rank, item, score, probability, category.",
    ),
]
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="What it may use, as 4GB; by default half of what there is.")
]
Threads = Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="How many threads; by default all cores.")]


def recommend_all(
    store: Models,
    baskets: Inputs,
    output: Output,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to recommend for each basket.")] = 10,
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    unknown: Unknown = "error",
    memory: Memory = None,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items for every basket of a table."""
    sources = [store, *map(Path, find_files(baskets, output))]
    check_target("--output", output, sources, RECOMMENDATION_TABLE, force=force)
    began = time.perf_counter()
    found = recommend_baskets(
        store,
        baskets,
        output,
        k=k,
        basket=basket,
        item=item,
        unknown=unknown,
        memory=memory,
        threads=threads,
        force=force,
        progress=wants_progress(quiet),
    )
    seconds = time.perf_counter() - began
    told = {**asdict(found), "output": str(found.output)}
    write({"store": str(store), "baskets": baskets, "k": k, **told, "seconds": seconds}, recommended_tables, as_json)


def recommended_tables(report: Report) -> Iterator[Shown]:
    rows = [
        ("store", shown(report["store"])),
        (
            "baskets",
            f"{count(report['n_baskets'])}, of {count(report['n_items'], 'item')}, in {number(report['seconds'], 1)} s",
        ),
        ("recommendations", f"{count(report['n_recommendations'])}, at most {count(report['k'])} per basket"),
        ("written to", shown(report["output"])),
    ]
    yield Facts("Recommended", rows)
    if report["n_unknown"]:
        yield _example(f"{count(report['n_unknown'], 'row')} left out: no model has the item", report["unknown"])
    if report["n_bad_rows"]:
        yield f"{count(report['n_bad_rows'], 'row')} left out: nothing in a column that is needed, or no row at all."
    if report["n_impossible"]:
        what = f"{count(report['n_impossible'], 'basket')} without recommendations: too unlikely for a number"
        yield _example(what, report["impossible"])


def _example(what: str, some: list[object]) -> str:
    return f"{what}, for instance {contents(some)}."
