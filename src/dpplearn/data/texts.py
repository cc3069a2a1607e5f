"""Text files: UTF-8, gzipped or not, with line ends of any kind."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from dpplearn.errors import InputError

AT_ONCE = 1 << 20  # bytes


def lines_of(path: str, errors: str = "strict") -> Iterator[str]:
    """The lines, without their ends; `errors` is what to do about bytes that are not UTF-8."""
    with text_file(path, newline=None, errors=errors) as file:
        for line in file:
            yield line.rstrip("\n")


@contextmanager
def with_one_line_end(paths: Sequence[str], delimiter: str, errors: str = "strict") -> Iterator[list[str]]:
    """CSV files in which all lines end alike, as duckdb wants them: the very files, or copies of those that mix ends.

    What stands between quotes stays as it is.
    """
    with TemporaryDirectory(prefix="dpplearn-") as folder:
        found = list(paths)
        for number, path in enumerate(paths):
            if len(line_ends(path)) > 1:
                found[number] = str(Path(folder) / f"{number}.csv")
                _copy(path, delimiter, found[number], errors)
        yield found


def line_ends(path: str) -> set[str]:
    """The kinds of line end that occur, between quotes or not."""
    found = set()
    with _explained(path), open_bytes(path) as file:
        while chunk := file.read(AT_ONCE):
            if chunk.endswith(b"\r"):
                chunk += file.read(1)
            both = chunk.count(b"\r\n")
            counts = {"\r\n": both, "\r": chunk.count(b"\r") - both, "\n": chunk.count(b"\n") - both}
            found |= {end for end, count in counts.items() if count}
    return found


def _copy(path: str, delimiter: str, target: str, errors: str) -> None:
    with (
        text_file(path, newline="", errors=errors) as file,
        open(target, "w", encoding="utf-8", errors=errors, newline="") as out,
    ):
        rows = csv.reader(file, delimiter=delimiter, strict=True, skipinitialspace=True)
        try:
            csv.writer(out, delimiter=delimiter).writerows(rows)  # in CRLF: either of them in a field is then quoted
        except csv.Error as error:
            raise InputError(f"line {rows.line_num} of {path} is not a line of CSV: {error}") from None


@contextmanager
def text_file(path: str, newline: str | None, errors: str = "strict") -> Iterator[IO[str]]:
    """Open for reading; what goes wrong is an error of ours."""
    with _explained(path):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8-sig", errors=errors, newline=newline) as file:
            yield file


def open_bytes(path: str) -> IO[bytes] | gzip.GzipFile:
    """Unzipped where it is gzipped."""
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong with a file, as an error of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); convert it first") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
