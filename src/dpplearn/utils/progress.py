"""Progress of long jobs on standard error: bars on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Event, Thread
from typing import TYPE_CHECKING

from dpplearn.errors import InputError
from dpplearn.utils.text import duration

if TYPE_CHECKING:
    import rich.progress

FIRST_LINE, MAX_PAUSE = 10.0, 60.0  # seconds to the first line, and at most between two lines
SECONDS = "DPPLEARN_PROGRESS_SECONDS"  # environment variable: seconds between lines instead


class Bar:
    """Progress of one job: `done` of `total` (None if unknown), with a description and a further text."""

    def __init__(self, progress: Progress, what: str, total: int | None, done: int) -> None:
        self.what, self.total, self.done, self.text = what, total, done, ""
        self._progress, self._began, self._first = progress, time.monotonic(), done
        progress.changed(self)

    def update(self, done: int, text: str = "", what: str | None = None) -> None:
        """Set how much is done, the text, and optionally a new description."""
        self.done, self.text, self.what = done, text, self.what if what is None else what
        self._progress.changed(self)

    def advance(self, by: int = 1, text: str = "") -> None:
        """Add to what is done."""
        self.update(self.done + by, text)

    @property
    def count(self) -> str:
        """Done and total, or nothing if the total is unknown."""
        return f"{self.done:,}/{self.total:,}" if self.total is not None else ""

    def line(self) -> str:
        """Return the state of the bar as one line, with the time left at the rate so far."""
        elapsed, newly_done = time.monotonic() - self._began, self.done - self._first
        times = f"{duration(elapsed)} so far"
        if self.total is not None and newly_done > 0:
            times += f", about {duration(elapsed * (self.total - self.done) / newly_done)} left"
        return ", ".join(part for part in (f"{self.what} {self.count}".rstrip(), self.text, times) if part)


class Progress:
    """Base class for displays of bars. This one shows nothing."""

    def bar(self, what: str, total: int | None = None, done: int = 0) -> Bar:
        """Return a new bar for a job that starts with `done` already completed."""
        return Bar(self, what, total, done)

    def changed(self, bar: Bar) -> None:
        """Handle a bar that was created or updated."""

    def grouped(self, totals: Mapping[str, int], everything: str = "all") -> Callable[[str], None]:
        """Show a bar per group and one for the sum. Call the returned function with the group of each finished job."""
        bars = {name: self.bar(name, total) for name, total in totals.items()}
        whole = self.bar(everything, sum(totals.values()))

        def advance(group: str) -> None:
            bars[group].advance()
            whole.advance()

        return advance


SILENT = Progress()


class _TerminalProgress(Progress):
    """Bars drawn by rich."""

    def __init__(self, tasks: rich.progress.Progress) -> None:
        self._tasks = tasks
        self._ids: dict[Bar, rich.progress.TaskID] = {}

    def changed(self, bar: Bar) -> None:
        if bar not in self._ids:
            self._ids[bar] = self._tasks.add_task(bar.what, total=bar.total, count="", text="")
        self._tasks.update(self._ids[bar], description=bar.what, completed=bar.done, count=bar.count, text=bar.text)


class _LineProgress(Progress):
    """The bar that changed last, printed as a line now and then by a thread, because a bar may not move for long."""

    def __init__(self) -> None:
        self._last: Bar | None = None
        self._ended = Event()
        self._pause, self._max_pause = _pauses()

    def changed(self, bar: Bar) -> None:
        self._last = bar

    @contextmanager
    def running(self) -> Iterator[Progress]:
        thread = Thread(target=self._print_lines, name="progress", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _print_lines(self) -> None:
        pause = self._pause
        while not self._ended.wait(pause):
            if self._last is not None:
                print(f"dpplearn: {self._last.line()}", file=sys.stderr, flush=True)
            pause = min(2 * pause, self._max_pause)


def _pauses() -> tuple[float, float]:
    """Return the seconds before the first line and the longest pause between lines."""
    text = os.environ.get(SECONDS)
    if not text:
        return FIRST_LINE, MAX_PAUSE
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= TIMEOUT_MAX:
        raise InputError(f"{SECONDS} is {text!r} in the environment; expected a positive number of seconds")
    return seconds, seconds


@contextmanager
def shown_progress(show: bool = True, *, transient: bool = False) -> Iterator[Progress]:
    """Show bars on standard error, which stay there afterwards unless `transient`; lines if it is not a terminal."""
    if not show:
        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Tasks

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        with _LineProgress().running() as progress:
            yield progress
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Tasks(*columns, console=console, transient=transient) as tasks:
        yield _TerminalProgress(tasks)
