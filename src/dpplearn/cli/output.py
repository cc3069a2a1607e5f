"""Output of commands: JSON or tables on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpplearn.utils.files import json_safe
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import Facts, TextTable, rich_table

if TYPE_CHECKING:
    from rich.console import RenderableType

Report = dict[str, Any]
Shown = TextTable | Facts | str  # an empty sentence is left out


def write_json(report: Report, *, lines: bool = False) -> None:
    """Print JSON, indented on a terminal, otherwise on one line. ASCII, which every encoding can express."""
    indent = 2 if sys.stdout.isatty() and not lines else None
    sys.stdout.write(json.dumps(json_safe(report), indent=indent, allow_nan=False) + "\n")


def write(report: Report, tables: Callable[[Report], Iterable[Shown]], as_json: bool) -> None:
    """Print a report as JSON or as tables."""
    if as_json:
        write_json(report)
    else:
        show(tables(report))


def show(parts: Iterable[Shown]) -> None:
    """Print tables and sentences, one after another."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would exit silently
            raise BrokenPipeError

    console = Output(highlight=False, markup=False, emoji=False)
    for part in parts:
        if part:
            console.print(*_drawn(part), sep="\n", crop=False)


def _drawn(part: Shown) -> Iterator[RenderableType]:
    from rich import box
    from rich.text import Text

    if isinstance(part, str):
        yield Text(part)
        return
    yield Text(part.title)
    if isinstance(part, TextTable) and part.meaning:
        yield Text(part.meaning)
    yield rich_table(part, box=box.SIMPLE if isinstance(part, Facts) else box.SIMPLE_HEAD)


def wants_progress(quiet: bool) -> bool:
    return not quiet


@contextmanager
def busy(what: str, show: bool) -> Iterator[None]:
    """Show a spinner for work of unknown length."""
    with shown_progress(show, transient=True) as shown:
        shown.bar(what)
        yield


@contextmanager
def counted(what: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with a rate. Call the yielded function with the number of newly finished units."""
    with shown_progress(show, transient=True) as shown:
        bar, began = shown.bar(what, total), time.monotonic()

        def advance(done: int) -> None:
            elapsed = time.monotonic() - began
            bar.advance(done, f"{(bar.done + done) / elapsed:,.0f}/s" if elapsed > 0 else "")

        yield advance
