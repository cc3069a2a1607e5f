"""Run trials over processes. Finished trials are saved at once, and a later run skips them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from dpplearn import InputError, InputWarning, fit_dpp
from dpplearn.utils.parallel import Failure, run_with_retries
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.threads import one_blas_thread
from reproduction.data import Source
from reproduction.experiments import EXPERIMENTS, Row, Scale, Trial, plan

Results = dict[str, list[Row]]  # rows by experiment
Job = TypeVar("Job")
Result = TypeVar("Result")


def reproduce(
    source: Source,
    output: Path,
    scale: Scale,
    categories: Sequence[str],
    processes: int | None = None,
) -> Results:
    """Run the trials that `output` does not contain yet and return the rows of all planned trials, in their order.

    Each experiment has one file of JSON lines, with a row per trial.

    Raises
    ------
    InputError
        If `output` contains trials on other registries or with another seed.
    """
    output.mkdir(parents=True, exist_ok=True)
    rows = {
        Trial(experiment, row["category"], row["trial"]): row
        for experiment, found in read_results(output).items()
        for row in found
    }
    for row in rows.values():
        if (row["data"], row["seed"]) != (source.kind, source.seed):
            raise InputError(
                f"{output} contains results on {row['data']} registries with seed {row['seed']}; "
                f"choose another directory with -o for {source.kind} registries with seed {source.seed}"
            )
    trials = plan(source, categories, scale)
    todo = [trial for trial in trials if trial not in rows]
    with shown_progress() as progress:
        bar = progress.bar("trials", len(trials), len(trials) - len(todo))
        for trial, row in run_over_processes(todo, partial(run_trial, source), processes):
            rows[trial] = row
            add_row(output / f"{trial.experiment}.jsonl", row)
            bar.advance()
    return {experiment: [rows[each] for each in trials if each.experiment == experiment] for experiment in EXPERIMENTS}


def run_over_processes(
    jobs: Sequence[Job], run: Callable[[Job], Result], processes: int | None = None
) -> Iterator[tuple[Job, Result]]:
    """Yield every job with its result, as jobs end. The first failure is raised as an `InputError`."""
    for job, result in run_with_retries(jobs, run, processes):
        if isinstance(result, Failure):
            raise InputError(f"job {job!r} failed: {result.reason}; run the same command again to continue")
        yield job, result


def run_trial(source: Source, trial: Trial) -> Row:
    """Return the row of a trial, with the category, the seed and the kind of data."""
    warm_up()
    with one_blas_thread():
        found = EXPERIMENTS[trial.experiment](source, trial)
    key = {"category": trial.category, "trial": trial.number, "data": source.kind, "seed": source.seed}
    return key | found


@cache
def warm_up() -> None:
    """Load the compiled code of this process once, so that the first trial does not include it in its runtime."""
    warnings.simplefilter("ignore", InputWarning)
    for learner in ("em", "k-ascent"):
        fit_dpp([[0], [1], [0, 1]], learner, rng=0, max_iter=3, threads=1)


def read_results(folder: Path) -> Results:
    """Return the rows of every experiment."""
    return {experiment: read_rows(folder / f"{experiment}.jsonl") for experiment in EXPERIMENTS}


def read_rows(path: Path) -> list[Any]:
    """Return the rows of a file, or none if there is no file."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):  # an empty or interrupted line
            rows.append(json.loads(line))
    return rows


def add_row(path: Path, row: Any) -> None:
    """Add a row to a file of JSON lines."""
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row))  # a new line first: an interrupted line costs only itself
