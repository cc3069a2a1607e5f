"""Long benchmarks: each finished row is kept in a file, so that a second call continues."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

import dpplearn as dl
from benchmarks.learners.problems import source
from dpplearn.tools.jobs import run_in_turn, run_over_processes
from dpplearn.tools.journal import Journal, Row
from dpplearn.tools.progress import shown_progress

Job = TypeVar("Job", bound=tuple[Any, ...])

INTERRUPTED = 128 + signal.SIGINT  # what shells give a program that Ctrl-C ended
ANEW = "begin anew with --fresh, or in another place with --output"


def all_rows(
    path: Path,
    jobs: Sequence[Job],
    run: Callable[[Job], Row],
    *,
    columns: Collection[str],
    key: Callable[[Row], Job],
    fresh: bool = False,
    processes: int = 1,
    **setting: Any,
) -> list[Row]:
    """Return the row of every job. Rows found in the file are reused; new rows are run and appended to it.

    A file with another `setting`, data or version raises an error. `fresh` deletes it. `key` gives the job of a row.
    """
    if fresh:
        path.unlink(missing_ok=True)
    journal = Journal(path, {"data": source().kind, "dpplearn": dl.__version__, **setting}, columns, ANEW)
    rows = journal.rows()
    have = set(map(key, rows))
    todo = [job for job in jobs if job not in have]
    runs = run_in_turn(todo, run) if processes == 1 else run_over_processes(todo, run, processes)
    with journal.appending(rows) as append, shown_progress() as progress:
        bar = progress.bar("runs", len(jobs), len(jobs) - len(todo))
        for job, row in runs:
            append(row)
            rows.append(row)
            bar.advance(text=", ".join(map(str, job)))
    return [row for row in rows if key(row) in set(jobs)]


@contextmanager
def without_tracebacks(path: Path) -> Iterator[None]:
    """Report input errors and Ctrl-C in one line."""
    try:
        yield
    except dl.InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: what is finished is kept in {path}; run the same command again to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None
