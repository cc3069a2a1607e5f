"""Run trials over processes. Finished trials are saved at once, and a later run skips them."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb

from dpplearn import InputError, InputWarning, fit_dpp
from dpplearn.tools.jobs import run_over_processes
from dpplearn.tools.threads import one_blas_thread
from reproduction.data import CATEGORIES, Source
from reproduction.experiments import EXPERIMENTS, Row, Scale, Trial, plan

SQL_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR", list: "VARCHAR[]"}
PROGRESS_SECONDS = 10  # between two lines about the progress

Results = dict[str, list[Row]]  # rows by experiment


def reproduce(
    source: Source,
    output: Path,
    scale: Scale,
    categories: Sequence[str] = CATEGORIES,
    processes: int | None = None,
) -> Results:
    """Run all trials that `output` does not contain yet and return the rows of all experiments.

    Each experiment has one Parquet file with a row per trial. The file is rewritten after every trial.

    Raises
    ------
    InputError
        If `output` contains trials on other registries or with another seed.
    """
    output.mkdir(parents=True, exist_ok=True)
    results = read_results(output)
    for row in (row for rows in results.values() for row in rows):
        if (row["data"], row["seed"]) != (source.kind, source.seed):
            raise InputError(
                f"{output} contains results on {row['data']} registries with seed {row['seed']}; "
                f"choose another directory with -o for {source.kind} registries with seed {source.seed}"
            )
    trials = plan(source, categories, scale)
    finished = {(experiment, row["name"]) for experiment, rows in results.items() for row in rows}
    todo = [trial for trial in trials if (trial.experiment, trial.name) not in finished]
    print(f"{len(trials)} trials, of which {len(trials) - len(todo)} are finished", file=sys.stderr)
    began = last_line = time.monotonic()
    runs = run_over_processes(todo, partial(run_trial, source), processes, warm_up)
    for done, (trial, row) in enumerate(runs, start=1):
        results[trial.experiment].append(row)
        write_rows(output / f"{trial.experiment}.parquet", results[trial.experiment])
        if time.monotonic() - last_line >= PROGRESS_SECONDS or done == len(todo):
            last_line = time.monotonic()
            print(f"{done} of {len(todo)} trials after {last_line - began:.0f} s", file=sys.stderr)
    return {experiment: sorted(rows, key=_order) for experiment, rows in results.items()}


def run_trial(source: Source, trial: Trial) -> Row:
    """Return the row of a trial, with its name, the category, the seed and the kind of data."""
    with one_blas_thread():
        found = EXPERIMENTS[trial.experiment](source, trial)
    key = {"name": trial.name, "category": trial.category, "trial": trial.number}
    return {**key, "data": source.kind, "seed": source.seed, **found}


def warm_up() -> None:
    """Load the compiled code of a worker, so that the first trial does not include it in its runtime."""
    warnings.simplefilter("ignore", InputWarning)
    for learner in ("em", "k-ascent"):
        fit_dpp([[0], [1], [0, 1]], learner, rng=0, max_iter=3, threads=1)


def read_results(folder: Path) -> Results:
    """Return the rows of every experiment; an experiment without a file has none."""
    results: Results = {}
    for experiment in EXPERIMENTS:
        path = folder / f"{experiment}.parquet"
        results[experiment] = read_rows(path) if path.exists() else []
    return results


def read_rows(path: Path) -> list[Row]:
    with duckdb.connect() as connection:
        cursor = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows, which have the same columns, to a Parquet file; an interruption leaves the old file."""
    temporary = path.with_suffix(".tmp")
    columns = ", ".join(f'"{name}" {SQL_TYPES[type(value)]}' for name, value in rows[0].items())
    placeholders = ", ".join("?" * len(rows[0]))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE results ({columns})")
        connection.executemany(f"INSERT INTO results VALUES ({placeholders})", [list(row.values()) for row in rows])
        connection.table("results").write_parquet(str(temporary))
    os.replace(temporary, path)


def _order(row: Row) -> tuple[object, ...]:
    """Sort by category, in the order of the paper, then by size and trial."""
    category = row["category"]
    place = CATEGORIES.index(category) if category in CATEGORIES else len(CATEGORIES)
    return place, category, row.get("n_items", 0), row.get("n_train", 0), row.get("set_size", 0), row["trial"]
