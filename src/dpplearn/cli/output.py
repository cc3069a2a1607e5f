"""What the command line writes: JSON and tables on standard output; progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpplearn.tools.manifest import strict
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.tables import Facts, TextTable

if TYPE_CHECKING:
    from rich.console import RenderableType

Report = dict[str, Any]
Shown = TextTable | Facts | str  # an empty sentence is left out
# Columns between two of a table, and what that takes of space around its cells: above, right, below, left.
SPACES = {3: (0, 1, 0, 1), 2: (0, 1, 0, 0), 1: (0, 0, 0, 0)}


def write_json(report: Report, *, lines: bool = False) -> None:
    """Indented on a terminal, else on one line. ASCII, to arrive whole whatever the encoding of standard output."""
    indent = 2 if sys.stdout.isatty() and not lines else None
    sys.stdout.write(json.dumps(strict(report), indent=indent, allow_nan=False) + "\n")


def write(report: Report, tables: Callable[[Report], Iterable[Shown]], as_json: bool) -> None:
    """A command's answer: the same report as JSON, or as tables."""
    if as_json:
        write_json(report)
    else:
        show(tables(report))


def show(parts: Iterable[Shown]) -> None:
    """Tables and sentences, one after another."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would leave without a word
            raise BrokenPipeError

    console = Output(highlight=False, markup=False, emoji=False)
    for part in parts:
        if part:
            console.print(*_drawn(part, console.width), sep="\n", crop=False)


def _drawn(part: Shown, width: int) -> Iterator[RenderableType]:
    """Names and numbers stay on one line, which is too long rather than without a part of a number; sentences are
    broken between words."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if isinstance(part, str):
        yield Text(part)
        return
    facts = isinstance(part, Facts)
    lines = box.SIMPLE if facts else box.SIMPLE_HEAD
    padding = next(iter(SPACES.values()))
    if isinstance(part, TextTable):
        part, padding = _spaced(part, width - 2)
    table = Table(box=lines, show_header=not facts, pad_edge=False, padding=padding)
    yield Text(part.title)
    if isinstance(part, Facts):
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
    else:
        if part.meaning:
            yield Text(part.meaning)
        for heading, numbers, room in zip(part.headings, part.numeric, part.widths, strict=True):
            table.add_column(Text(heading), justify="right" if numbers else "left", no_wrap=True, min_width=room)
    for row in part.rows:
        table.add_row(*map(Text, row))
    yield table


def _spaced(part: TextTable, width: int) -> tuple[TextTable, tuple[int, int, int, int]]:
    """The table that fits, and the space around its cells: less of it where that saves names or numbers from a cut."""
    whole = [between for between in SPACES if part.width(between) <= width]
    fits = [between for between in SPACES if part.fitted(width, between).width(between) <= width]
    between = next(iter(whole + fits), min(SPACES))
    return part.fitted(width, between), SPACES[between]


def wants_progress(quiet: bool) -> bool:
    return not quiet


@contextmanager
def busy(what: str, show: bool) -> Iterator[None]:
    """A spinner for work whose length is unknown."""
    with shown_progress(show, transient=True) as shown:
        shown.bar(what)
        yield


@contextmanager
def counted(what: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar with a rate; within, call the function with how many more are done."""
    with shown_progress(show, transient=True) as shown:
        bar, began = shown.bar(what, total), time.monotonic()

        def advance(done: int) -> None:
            elapsed = time.monotonic() - began
            bar.advance(done, f"{(bar.done + done) / elapsed:,.0f}/s" if elapsed > 0 else "")

        yield advance
