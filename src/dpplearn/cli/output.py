"""What the command line writes: JSON and tables on standard output; progress on standard error."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpplearn.tools.progress import shown_progress

if TYPE_CHECKING:
    from rich.console import RenderableType

Report = dict[str, Any]


def strict(value: Any) -> Any:
    """The value as strict JSON has it: minus infinity is the string "-inf", and NaN is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): strict(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [strict(each) for each in value]
    return value


def write_json(report: Report, *, lines: bool = False) -> None:
    """Indented on a terminal, else on one line. ASCII, to arrive whole whatever the encoding of standard output."""
    indent = 2 if sys.stdout.isatty() and not lines else None
    sys.stdout.write(json.dumps(strict(report), indent=indent, allow_nan=False) + "\n")


def write(report: Report, tables: Callable[[Report], Iterator[RenderableType]], as_json: bool) -> None:
    """The one place where a command's answer goes out: the same report as JSON, or as tables."""
    if as_json:
        write_json(report)
        return
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would leave without a word
            raise BrokenPipeError

    console = Output(highlight=False, markup=False, emoji=False)
    for table in tables(report):
        console.print(table)


def wants_progress(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty()


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
