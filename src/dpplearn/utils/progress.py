"""Progress of long jobs on standard error: bars on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import TIMEOUT_MAX, Event, Thread
from typing import TYPE_CHECKING

from dpplearn.errors import InputError

if TYPE_CHECKING:
    import rich.progress

SECONDS, PAUSE = "DPPLEARN_PROGRESS_SECONDS", 30.0  # environment variable: seconds between lines; by default
RATE_PERIOD = 86400.0  # seconds over which the rate is measured: longer than one part of a job can take


class Bar:
    """Progress of one job: what is done of `total` (None if unknown), with a description and a further text."""

    def __init__(self, tasks: rich.progress.Progress | None, what: str, total: int | None, done: int) -> None:
        self._tasks = tasks
        if tasks is not None:
            self._id = tasks.add_task(what, total=total, completed=done, text="")

    def update(self, done: int, text: str = "", what: str | None = None) -> None:
        """Set how much is done, the text, and optionally a new description."""
        if self._tasks is not None:
            self._tasks.update(self._id, completed=done, description=what, text=text)

    def advance(self, by: int = 1, text: str = "") -> None:
        """Add to what is done."""
        if self._tasks is not None:
            self._tasks.update(self._id, advance=by, text=text)


class Progress:
    """The bars of a block; nothing is shown without `tasks`."""

    def __init__(self, tasks: rich.progress.Progress | None = None) -> None:
        self._tasks = tasks

    def bar(self, what: str, total: int | None = None, done: int = 0) -> Bar:
        """Return a new bar for a job that starts with `done` already completed."""
        return Bar(self._tasks, what, total, done)


SILENT = Progress()


@contextmanager
def shown_progress(show: bool = True, *, transient: bool = False) -> Iterator[Progress]:
    """Show bars on standard error, which stay there afterwards unless `transient`; lines if it is not a terminal."""
    if not show:
        yield SILENT
        return
    import rich.progress as shown
    from rich.console import Console

    console = Console(stderr=True)
    as_lines = not (console.is_terminal or console.is_jupyter)
    columns = (
        shown.SpinnerColumn(),
        shown.TextColumn("{task.description}", markup=False),
        shown.BarColumn(bar_width=20),
        shown.MofNCompleteColumn(),
        shown.TextColumn("{task.fields[text]}", markup=False),
        shown.TimeElapsedColumn(),
        shown.TimeRemainingColumn(),
    )
    tasks = shown.Progress(
        *columns, console=console, transient=transient, disable=as_lines, speed_estimate_period=RATE_PERIOD
    )
    with _lines(tasks) if as_lines else tasks:
        yield Progress(tasks)


@contextmanager
def _lines(tasks: rich.progress.Progress) -> Iterator[None]:
    """Print the newest bar as a line now and then, in a thread because a bar may not move for long."""
    pause = _pause()
    ended = Event()

    def print_lines() -> None:
        while not ended.wait(pause):
            if tasks.tasks:
                print(f"dpplearn: {_line(tasks.tasks[-1])}", file=sys.stderr, flush=True)

    thread = Thread(target=print_lines, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _line(task: rich.progress.Task) -> str:
    """Return the state of a bar as one line, with the time left at the rate so far."""
    times = f"{timedelta(seconds=int(task.elapsed or 0))} so far"
    if task.total is not None and task.time_remaining is not None:
        times += f", about {timedelta(seconds=int(task.time_remaining))} left"
    what = f"{task.description} {task.completed:,.0f}/{task.total:,.0f}" if task.total else task.description
    return ", ".join(part for part in (what, task.fields["text"], times) if part)


def _pause() -> float:
    """Return the seconds between two lines."""
    text = os.environ.get(SECONDS) or PAUSE
    with suppress(ValueError):
        if 0 < float(text) <= TIMEOUT_MAX:
            return float(text)
    raise InputError(f"{SECONDS} is {text!r} in the environment; expected a positive number of seconds")
