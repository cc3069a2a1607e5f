"""A file of finished jobs, from which a run that was cut off goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dpplearn.errors import InputError
from dpplearn.tools.files import replace_file

Row = dict[str, Any]


class Journal:
    """One row per line, the first line saying what run they are of.

    Parameters
    ----------
    path
        The file, which need not be there.
    setting
        What all rows have in common; those of another setting are refused.
    columns
        What a row has; those that have something else are left out, so that their jobs are run again.
    anew
        What a user does who has no need of the rows that are there.
    differs
        How a part of the setting differs, in words: called with its name, the value in the file and ours.
    """

    def __init__(
        self,
        path: Path,
        setting: Mapping[str, Any],
        columns: Collection[str],
        anew: str,
        differs: Callable[[str, Any, Any], str] = "{} {} and not {}".format,
    ) -> None:
        self.path, self.setting, self.columns, self.anew = path, dict(setting), set(columns), anew
        self._differs = differs

    def rows(self) -> list[Row]:
        """What an earlier run left; a line that a kill cut short is none."""
        if not self.path.exists():
            return []
        setting, *rows = list(self._lines()) or [self.setting]
        if not isinstance(setting, dict) or setting.keys() != self.setting.keys():
            raise InputError(f"{self.path} is not what an earlier run left; {self.anew}")
        self.check_same(setting, self.path)
        return [row for row in rows if isinstance(row, dict) and row.keys() == self.columns]

    def check_same(self, theirs: Mapping[str, Any], path: Path) -> None:
        """Refuse what is of another setting; `path` is where it is from."""
        different = self.differences(theirs)
        if different:
            raise InputError(f"{path} holds trials of another run ({'; '.join(different)}); {self.anew}")

    def differences(self, theirs: Mapping[str, Any]) -> list[str]:
        """What keeps another setting apart from ours, in words."""
        ours = self.setting
        return [self._differs(name, theirs[name], ours[name]) for name in ours if theirs[name] != ours[name]]

    def _lines(self) -> Iterator[Any]:
        for line in self.path.read_bytes().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return

    @contextmanager
    def appending(self, rows: Sequence[Row]) -> Iterator[Callable[[Row], None]]:
        """Within, call the function with every row that is finished. The file begins with those already there."""
        replace_file(self.path, "".join(map(_line, (self.setting, *rows))).encode())
        with open(self.path, "a", encoding="utf-8") as file:
            yield lambda row: self._append(file, row)

    def _append(self, file: IO[str], row: Row) -> None:
        """The row is on disk, or a full disk is told of."""
        try:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror or error}") from None


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row) + "\n"
