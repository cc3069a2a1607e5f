"""Output of commands: JSON or text on standard output, progress on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import typer

from dpplearn.utils.files import json_safe
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import Facts, Part, as_text


class Report(NamedTuple):
    """A result that only a command has."""

    values: dict[str, Any]
    parts: Sequence[Part]

    def tables(self) -> Sequence[Part]:
        """Return the text."""
        return self.parts

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values


@dataclass(frozen=True)
class Display:
    """Options of every command.

    Parameters
    ----------
    as_json
        Print JSON instead of tables.
    quiet
        Show no progress.
    threads
        Number of threads; by default all cores.
    """

    as_json: Annotated[bool, typer.Option("--json")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q")] = False
    threads: int | None = None

    @property
    def progress(self) -> bool:
        """Whether to show progress."""
        return not self.quiet

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show a spinner for work of unknown length."""
        with shown_progress(self.progress, transient=True) as shown:
            shown.bar(what)
            yield

    def write(self, result: Any, *asked: Any, **where: Any) -> None:
        """Print a result, with `tables(*asked)` as text or with `to_dict(*asked)` as JSON.

        `where` are the files, the seed and the caution of the call. JSON has all of them, text all but the files read.
        """
        if self.as_json:
            values = json_safe({**where, **result.to_dict(*asked)})
            print(json.dumps(values, indent=2 if sys.stdout.isatty() else None, allow_nan=False))
            return
        shown = [(name, str(where[name])) for name in ("seed", "output") if where.get(name) is not None]
        parts: list[Part] = [*result.tables(*asked), *([Facts("", shown)] if shown else []), where.get("caution", "")]
        print(as_text(parts, shutil.get_terminal_size().columns))
