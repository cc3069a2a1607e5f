"""Rows that cannot be used: how many, of which files, and some of them by file and line."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpplearn.data.tables import Columns
from dpplearn.data.texts import AT_ONCE, lines_of, open_bytes, text_file
from dpplearn.pipeline.source import KEPT_BYTES, Group, bad_rows_query

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SHOWN = 3  # examples of each reason
LONGEST = 120  # characters of an example
REASONS = {
    "INVALID ENCODING": "not UTF-8",
    "MISSING COLUMNS": "too few columns",
    "TOO MANY COLUMNS": "too many columns",
    "UNQUOTED VALUE": "quotes that do not match",
    "LINE SIZE OVER MAXIMUM": "a line that is too long",
}

# A line may have several errors: it is one bad row, for the first of them. duckdb tells of one scan at a time.
REJECTED = """
    SELECT file_path, arg_min(error_type, column_idx) AS kind, line_byte_position, any_value(csv_line) AS text
    FROM reject_errors JOIN (SELECT DISTINCT scan_id, file_id, file_path FROM reject_scans) USING (scan_id, file_id)
    GROUP BY file_path, line_byte_position
"""


class BadRow(NamedTuple):
    """One of them; `line` counts from 1, as editors do, and in a Parquet file it is the row."""

    reason: str
    file: str
    line: int
    text: str


class Rejected(NamedTuple):
    """A line that is no row at all."""

    file: str
    reason: str
    byte: int
    text: str


def rejected_lines(connection: DuckDBPyConnection, groups: Sequence[Group]) -> list[Rejected]:
    """Of the scan just made."""
    if not any(group.format != "parquet" for group in groups):
        return []
    known = _originals(groups)
    found = connection.execute(f"{REJECTED} ORDER BY file_path, line_byte_position").fetchall()
    return [
        Rejected(known[os.path.abspath(file)], REASONS.get(kind, kind.lower()), byte, text)
        for file, kind, byte, text in found
    ]


def _originals(groups: Sequence[Group]) -> dict[str, str]:
    """The files as the user calls them, by what duckdb calls them."""
    pairs = [pair for group in groups for pair in zip(group.files, group.paths, strict=True)]
    return {os.path.abspath(file): path for file, path in pairs}


def original(file: str, groups: Sequence[Group]) -> str:
    return _originals(groups)[os.path.abspath(file)]


def examples(
    connection: DuckDBPyConnection, groups: Sequence[Group], columns: Columns, rejected: Sequence[Rejected]
) -> list[BadRow]:
    """The first of every reason."""
    found = [*_first_rejected(rejected, groups)]
    for group in groups:
        found += _first_unusable(connection, group, columns)
    found.sort(key=lambda row: (row.reason, row.file, row.line))
    reasons = dict.fromkeys(row.reason for row in found)
    return [row for reason in reasons for row in [each for each in found if each.reason == reason][:SHOWN]]


def _first_rejected(rejected: Sequence[Rejected], groups: Sequence[Group]) -> Iterator[BadRow]:
    files = {path: file for file, path in _originals(groups).items()}
    seen: dict[str, int] = {}
    for each in rejected:
        seen[each.reason] = seen.get(each.reason, 0) + 1
        if seen[each.reason] <= SHOWN:
            blank = len(each.text) - len(each.text.lstrip("\r\n"))  # lines before it that duckdb took along
            line = _line_at(files[each.file], each.byte) + blank
            yield BadRow(each.reason, each.file, line, _short(each.text.strip()))


def _line_at(path: str, byte: int) -> int:
    """The line that a byte is on."""
    line = 1
    with open_bytes(path) as file:
        while byte > 0 and (chunk := file.read(min(AT_ONCE, byte))):
            line += chunk.count(b"\n") or chunk.count(b"\r")
            byte -= len(chunk)
    return line


def _first_unusable(connection: DuckDBPyConnection, group: Group, columns: Columns) -> Iterator[BadRow]:
    query = bad_rows_query(connection, group, columns)
    numbering = f"SELECT *, row_number() OVER (PARTITION BY reason ORDER BY file, row) AS n FROM ({query})"
    rows = connection.execute(f"SELECT * EXCLUDE (n) FROM ({numbering}) WHERE n <= {SHOWN}").fetchall()
    of_file: dict[str, list[tuple[Any, ...]]] = {}
    for file, *rest in rows:
        of_file.setdefault(original(file, [group]), []).append(tuple(rest))
    for path, some in of_file.items():
        lines = _lines(group, path, columns, [row[2:] for row in some]) if group.format != "parquet" else {}
        for row, reason, *came in some:
            line = row + 1 if row is not None else lines.get(tuple(came), 0)
            yield BadRow(reason, path, line, _short(", ".join(value or "" for value in came)))


def _lines(group: Group, path: str, columns: Columns, wanted: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """On which line of a text each row stands first."""
    left = {tuple(value or None for value in row): row for row in wanted}
    found = {}
    for line, values in _records(group, path, columns):
        row = left.pop(tuple(value or None for value in values), None)
        if row is not None:
            found[row] = line
        if not left:
            break
    return found


def _records(group: Group, path: str, columns: Columns) -> Iterator[tuple[int, list[str | None]]]:
    """The values of every row as they came, with the line that it begins on."""
    places = columns.places(group.names, path)
    if group.format == "json":
        for number, line in enumerate(lines_of(path, KEPT_BYTES), start=1):
            if line.strip():
                yield number, [_json_values(line).get(group.names[place]) for place in places]
        return
    with text_file(path, newline="", errors=KEPT_BYTES) as file:
        reader = csv.reader(file, delimiter=group.delimiter)
        begins = 1
        for fields in reader:
            if len(fields) == len(group.names):
                yield begins, [fields[place] for place in places]
            begins = reader.line_num + 1


def _json_values(line: str) -> dict[str, str | None]:
    """As duckdb gives them: numbers as they are written, and nothing for a list or an object."""
    try:
        found = json.loads(line, parse_int=str, parse_float=str)
    except ValueError:
        return {}
    values = found if isinstance(found, dict) else {}
    plain = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return {name: value if isinstance(value, str) else None for name, value in plain.items()}


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."
