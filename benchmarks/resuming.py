"""Benchmarks that take hours: each result is kept as it ends, so that a second call goes on."""

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
    """The row of every job: from the file, or of a run now, which the file keeps. One process is this one.

    Rows of another `setting`, data or version are refused, and `fresh` forgets all rows. `key` is the job of a row.
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
    """What a user can put right, and Ctrl-C, are one line each."""
    try:
        yield
    except dl.InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: what is finished is kept in {path}; run the same command again to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None
