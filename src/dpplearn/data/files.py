"""Data files: which files a path means, their formats, and the text of those that are text."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TextIO, cast

from dpplearn.errors import InputError

ENDINGS = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "json": (".jsonl", ".ndjson", ".json"),
    "lines": (".txt", ".dat"),
}
TABLES = [ending for format, endings in ENDINGS.items() if format != "lines" for ending in endings]
ENDED = ", ".join(TABLES)
FORMATS = ("auto", *ENDINGS)
DELIMITERS = (",", "\t", ";", "|")
CHUNK_CHARACTERS = 1 << 20

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def find_files(source: Paths, output: Path | None = None) -> list[str]:
    """Return the files that paths, patterns and folders name, each once.

    A folder stands for all tables in it, except hidden files and those in `output`.
    """
    found: dict[str, str] = {}
    for each in [source] if isinstance(source, str | PathLike) else source:
        path = fspath(each)
        if os.path.isdir(path):
            files = _tables_in(path, output)
        else:
            files = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
        if not files:
            raise InputError(f"no file is called {path} or matches it as a pattern; in a folder, tables end in {ENDED}")
        for file in files:
            if not os.path.isfile(file) or not os.path.getsize(file):  # a pipe cannot be read twice
                raise InputError(f"{file} is empty or not a regular file")
            found.setdefault(os.path.realpath(file), file)
    if not found:
        raise InputError("no input is named; name files, folders, or patterns such as orders/*.parquet")
    return list(found.values())


def _tables_in(folder: str, output: Path | None) -> list[str]:
    files = glob.glob(os.path.join(glob.escape(folder), "**", "*"), recursive=True)
    tables = [file for file in sorted(files) if _ending(file) in TABLES and not os.path.isdir(file)]
    return [file for file in tables if output is None or not Path(file).resolve().is_relative_to(output.resolve())]


def _ending(path: str) -> str:
    return Path(path.removesuffix(".gz")).suffix.lower()


def format_of(path: str, format: str = "auto") -> str:
    """Return the format of a file: the one given, or the one of its ending."""
    by_ending = {ending: each for each, endings in ENDINGS.items() for ending in endings}
    found = by_ending.get(_ending(path)) if format == "auto" else format
    if found is None or format not in FORMATS:
        raise InputError(
            f"format {format!r} does not say how to read {path}; pass format= (--format) csv, parquet or json for a "
            "table, lines for one basket per line"
        )
    return found


@contextmanager
def open_text(path: str, *, newline: str | None = None, errors: str = "strict") -> Iterator[TextIO]:
    """Open UTF-8 text, gzipped if the name ends in .gz. What goes wrong is raised as an `InputError`."""
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline=newline, errors=errors) as file:
            yield cast(TextIO, file)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); convert it first") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def lines_of(path: str) -> Iterator[str]:
    """Yield the lines of a text without their ends."""
    with open_text(path) as file:
        yield from (line.rstrip("\n") for line in file)


def with_one_line_end(path: str, target: Path) -> str:
    """Return the file, or a copy in which all lines end in LF if they end in several ways, which duckdb misreads.

    The file is read to its end in any case, because duckdb returns wrong rows for some damaged compressed files.
    """
    # Bytes that are not UTF-8 pass through, so that they make one bad row and not a bad file.
    with open_text(path, errors="surrogateescape") as file:
        while file.read(CHUNK_CHARACTERS):
            pass
        if not isinstance(file.newlines, tuple):
            return path
        file.seek(0)
        with open(target, "w", encoding="utf-8", errors="surrogateescape", newline="") as copy:
            shutil.copyfileobj(file, copy)
    return str(target)


def csv_fields(path: str, number: int, line: str, delimiter: str, *, strict: bool = False) -> list[str]:
    """Return the fields of one line of CSV."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=strict, skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"line {number} of {path} is not valid CSV ({error}): {line[:80]!r}") from None


def read_lines(paths: Sequence[str]) -> list[list[str]]:
    """Return the items of each line: between commas, or between blanks if no line of the files has a comma."""
    commas = any("," in line for path in paths for line in lines_of(path))
    found = []
    for path in paths:
        for number, line in enumerate(lines_of(path), start=1):
            quoted = commas and '"' in line
            fields = csv_fields(path, number, line, ",", strict=True) if quoted else line.split("," if commas else None)
            items = [field.strip() for field in fields] if line.strip() else []
            if "" in items:
                raise InputError(f"line {number} of {path} has an empty item before, between or after commas: {line!r}")
            found.append(items)
    if not any(found):
        raise InputError(f"{paths[0]} names no item: all its lines are empty")
    return found


def read_items(path: str | PathLike[str]) -> list[str]:
    """Return the items of a file with one item per line. Blanks around items and empty lines are ignored."""
    items = [line.strip() for file in find_files(path) for line in lines_of(file) if line.strip()]
    if not items:
        raise InputError(f"{path} names no item; expected one per line")
    return items
