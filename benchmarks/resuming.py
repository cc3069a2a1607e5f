"""Long benchmarks: each finished row is kept in a file, so that a second call continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import dpplearn as dl
from benchmarks.learners.problems import source
from dpplearn.utils.progress import shown_progress
from reproduction.run import add_row, read_rows, run_over_processes

FOLDER = Path(__file__).parent / "results"

Job = TypeVar("Job", bound=tuple[Any, ...])
Row = dict[str, Any]


def all_rows(
    name: str, jobs: Sequence[Job], run: Callable[[Job], Row], *, in_processes: bool = False
) -> dict[Job, Row]:
    """Return the row of every job. Rows of earlier calls with the same data and version are read from a file.

    To repeat all jobs, delete benchmarks/results/<name>-<data>-<version>.jsonl.
    """
    path = FOLDER / f"{name}-{source().kind}-{dl.__version__}.jsonl"
    path.parent.mkdir(exist_ok=True)
    rows: dict[Any, Row] = {tuple(job): row for job, row in read_rows(path)}
    todo = [job for job in jobs if job not in rows]
    runs = run_over_processes(todo, run) if in_processes else ((job, run(job)) for job in todo)
    with shown_progress() as progress:
        bar = progress.bar("runs", len(jobs), len(jobs) - len(todo))
        for job, row in runs:
            rows[job] = row
            add_row(path, [job, row])
            bar.advance(text=", ".join(map(str, job)))
    return {job: rows[job] for job in jobs}
