"""How far long jobs are: they tell a `Progress`, which shows bars on standard error or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress


class Bar:
    """How far one job is: so much done of a total, which is None where nobody knows it, and more to say of it."""

    def __init__(self, progress: Progress, what: str, total: int | None, done: int) -> None:
        self.what, self.total, self.done, self.text = what, total, done, ""
        self._progress = progress
        progress.changed(self)

    def update(self, done: int, text: str = "", what: str | None = None) -> None:
        """So much is done; `text` is what else there is to say, and `what` a new description."""
        self.done, self.text, self.what = done, text, self.what if what is None else what
        self._progress.changed(self)

    def advance(self, by: int = 1, text: str = "") -> None:
        """So much more is done."""
        self.update(self.done + by, text)


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
        count = f"{bar.done:,}/{bar.total:,}" if bar.total is not None else ""
        if bar not in self._number:
            self._number[bar] = self._tasks.add_task(
                bar.what, total=bar.total, completed=bar.done, count=count, text=bar.text
            )
        else:
            self._tasks.update(self._number[bar], description=bar.what, completed=bar.done, count=count, text=bar.text)


@contextmanager
def shown_progress(show: bool = True, *, transient: bool = False) -> Iterator[Progress]:
    """Within, bars that begin are on standard error, and stay there afterwards unless `transient`."""
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
    with Tasks(*columns, console=Console(stderr=True), transient=transient) as tasks:
        yield _Shown(tasks)
