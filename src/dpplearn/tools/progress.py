"""How far long jobs are: they tell a `Progress`, which shows bars on standard error, or a line now and then where that
is no terminal, or nothing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Event, Thread
from typing import TYPE_CHECKING

from dpplearn.errors import InputError
from dpplearn.tools.words import duration

if TYPE_CHECKING:
    import rich.progress


FIRST, LAST = 10.0, 60.0  # seconds to the first line, and between two of them at most
SECONDS = "DPPLEARN_PROGRESS_SECONDS"  # in the environment, between lines instead


class Bar:
    """How far one job is: so much done of a total, which is None where nobody knows it, and more to say of it."""

    def __init__(self, progress: Progress, what: str, total: int | None, done: int) -> None:
        self.what, self.total, self.done, self.text = what, total, done, ""
        self._progress, self._began, self._first = progress, time.monotonic(), done
        progress.changed(self)

    def update(self, done: int, text: str = "", what: str | None = None) -> None:
        """So much is done; `text` is what else there is to say, and `what` a new description."""
        self.done, self.text, self.what = done, text, self.what if what is None else what
        self._progress.changed(self)

    def advance(self, by: int = 1, text: str = "") -> None:
        """So much more is done."""
        self.update(self.done + by, text)

    @property
    def count(self) -> str:
        """So much of the total; nothing where nobody knows that."""
        return f"{self.done:,}/{self.total:,}" if self.total is not None else ""

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take at the speed so far."""
        done = self.done - self._first
        return self.seconds * (self.total - self.done) / done if self.total is not None and done > 0 else None


class Progress:
    """What every long job tells how far it is. This one shows nothing; another has its own `changed`."""

    def bar(self, what: str, total: int | None = None, done: int = 0) -> Bar:
        """Of a job that begins, or goes on where so much is done."""
        return Bar(self, what, total, done)

    def changed(self, bar: Bar) -> None:
        """Called when a bar is there, and whenever it has moved."""

    def grouped(
        self, totals: Mapping[str, int], done: Mapping[str, int] | None = None, everything: str = "all"
    ) -> Callable[[str], None]:
        """A bar per group and one for all; call the function with the group of everything that ends."""
        done = done or {}
        bars = {name: self.bar(name, total, done.get(name, 0)) for name, total in totals.items()}
        whole = self.bar(everything, sum(totals.values()), sum(done.values()))

        def advance(group: str) -> None:
            bars[group].advance()
            whole.advance()

        return advance


SILENT = Progress()


class _Shown(Progress):
    """Each bar a task of rich, which draws them in a thread of its own."""

    def __init__(self, tasks: rich.progress.Progress) -> None:
        self._tasks = tasks
        self._number: dict[Bar, rich.progress.TaskID] = {}

    def changed(self, bar: Bar) -> None:
        if bar not in self._number:
            self._number[bar] = self._tasks.add_task(
                bar.what, total=bar.total, completed=bar.done, count=bar.count, text=bar.text
            )
        else:
            self._tasks.update(
                self._number[bar], description=bar.what, completed=bar.done, count=bar.count, text=bar.text
            )


class _Told(Progress):
    """The bar that moved last, as a line now and then, by a thread of its own: a bar may not move for long."""

    def __init__(self) -> None:
        self._last: Bar | None = None
        self._ended = Event()
        self._wait, self._most = _waiting()

    def changed(self, bar: Bar) -> None:
        self._last = bar

    @contextmanager
    def going_on(self) -> Iterator[None]:
        thread = Thread(target=self._tell, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _tell(self) -> None:
        wait = self._wait
        while not self._ended.wait(wait):
            if self._last is not None:
                print(f"dpplearn: {line_of(self._last)}", file=sys.stderr, flush=True)
            wait = min(2 * wait, self._most)


def _waiting() -> tuple[float, float]:
    """Seconds to the first line, and between two of them at most."""
    wanted = os.environ.get(SECONDS)
    try:
        seconds = float(wanted) if wanted else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not 0 < seconds <= TIMEOUT_MAX:
        raise InputError(f"{SECONDS} is {wanted!r} in the environment; expected a number of seconds")
    return (FIRST, LAST) if seconds is None else (seconds, seconds)


def line_of(bar: Bar) -> str:
    """How far it is, in one line."""
    so_far = f"{duration(bar.seconds)} so far"
    if bar.left is not None:
        so_far += f", about {duration(bar.left)} left"
    return ", ".join(part for part in (f"{bar.what} {bar.count}".rstrip(), bar.text, so_far) if part)


@contextmanager
def shown_progress(show: bool = True, *, transient: bool = False) -> Iterator[Progress]:
    """Within, bars that begin are on standard error, and stay there afterwards unless `transient`; or lines are, where
    that is no terminal."""
    if not show:
        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Tasks

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        told = _Told()
        with told.going_on():
            yield told
        return
    with Tasks(*columns, console=console, transient=transient) as tasks:
        yield _Shown(tasks)
