"""Raw orders as one query, whatever files they are in: one row per order line, with what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dpplearn.data.readers import csv_header, matching_files
from dpplearn.data.tables import (
    INEXACT_TYPES,
    INTEGER_TYPES,
    NESTED_TYPES,
    Columns,
    chosen_columns,
    explained,
    names_of_parquet,
    numbered,
    sql_files,
    sql_text,
    tidy_value,
)
from dpplearn.data.texts import line_ends, lines_of, with_one_line_end
from dpplearn.errors import InputError
from dpplearn.pipeline.json_lines import json_columns, json_query, with_one_end_per_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
KEPT_BYTES = "surrogateescape"  # what is not UTF-8 is one bad row, not a bad file
ONE_CATEGORY = "all"
FILE = "dpplearn_file"  # a column, that none of a table's own is called like

Inputs = str | PathLike[str] | Sequence[str | PathLike[str]]

NO_BASKET, NO_ITEM, NO_CATEGORY = "no basket", "no item", "no category"
BAD_WEIGHT, BAD_TIME = "the weight is not a number above 0", "the time is not a date or a time"


@dataclass(frozen=True)
class Group:
    """Files of one format with the same columns; `files` is where they are read, which may be a copy."""

    format: str
    names: tuple[str, ...]
    delimiter: str
    paths: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def table(self) -> str:
        """How duckdb reads them: the columns as they are, then the file, and the row where it knows that."""
        if self.format == "parquet":
            own = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in self.names)
            read = f"read_parquet({sql_files(self.files)}, union_by_name = true, filename = {sql_text(FILE)}, "
            return f"(SELECT {own}, {FILE}, file_row_number FROM {read}file_row_number = true))"
        if self.format == "json":
            return json_query(self.files, self.names)
        types = ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in numbered(self.names))
        how = f"auto_detect = false, header = true, delim = {sql_text(self.delimiter)}, quote = '\"'"
        return f"read_csv({sql_files(self.files)}, {how}, columns = {{{types}}}, store_rejects = true, filename = true)"

    def query(self, columns: Columns) -> str:
        """Its rows as `file`, `row` and c0, c1, ... in the order of the roles."""
        known = self.format == "parquet"
        chosen = chosen_columns(self.table, (*self.names, *[""] * (1 + known)), columns, self.paths[0])
        row = f"n{len(self.names) + 1}" if known else "NULL"
        return chosen.replace("SELECT ", f"SELECT n{len(self.names)} AS file, {row} AS row, ", 1)


def find_files(inputs: Inputs, output: Path) -> list[str]:
    """The files that are meant, each once: files, patterns, and all tables in a folder but what we wrote ourselves."""
    found: dict[str, str] = {}
    for each in [inputs] if isinstance(inputs, str | PathLike) else inputs:
        path = fspath(each)
        for file in _in_folder(path, output) if os.path.isdir(path) else matching_files(path):
            found.setdefault(os.path.realpath(file), file)
    if not found:
        raise InputError("no input is named; name files, folders, or patterns such as orders/*.parquet")
    for file in found.values():
        format_of(file)
    return list(found.values())


def _in_folder(folder: str, output: Path) -> list[str]:
    ours = os.path.realpath(output)
    found = []
    for where, below, files in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".") and os.path.realpath(Path(where, name)) != ours]
        found += [str(Path(where, name)) for name in files if _ending(name) in ENDINGS and not name.startswith(".")]
    if not found:
        raise InputError(f"no file in the folder {folder} ends in {', '.join(ENDINGS)} (or in .gz after that)")
    return [file for path in sorted(found) for file in matching_files(path)]


def _ending(path: str) -> str:
    return Path(path.removesuffix(".gz")).suffix.lower()


def format_of(path: str) -> str:
    """Told by the ending of its name."""
    ending = _ending(path)
    if ending not in ENDINGS or (ENDINGS[ending] == "parquet" and path.endswith(".gz")):
        raise InputError(
            f"{path}: expected a file that ends in {', '.join(ENDINGS)}; text files may end in .gz after it"
        )
    return ENDINGS[ending]


@contextmanager
def open_groups(
    connection: DuckDBPyConnection, paths: Sequence[str], columns: Columns, category: str | None
) -> Iterator[tuple[list[Group], Columns]]:
    """The files by format and columns. `category` "auto" is the column called so, where there is one."""
    with TemporaryDirectory(prefix="dpplearn-") as folder:
        heads = [_head(connection, path, columns) for path in paths]
        if category == "auto":
            has = any(name.strip() == "category" for _, names, _ in heads for name in names)
            category = "category" if has else None
        columns = Columns(columns.basket, columns.item, columns.weight, category, columns.time)
        alike: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
        for path, head in zip(paths, heads, strict=True):
            columns.places(head[1], path)
            alike.setdefault(head, []).append(path)
        groups = []
        for number, (head, some) in enumerate(alike.items()):
            files = _plain(head, some, Path(folder) / str(number))
            groups.append(Group(*head, tuple(some), tuple(files)))
        yield groups, columns


def _head(connection: DuckDBPyConnection, path: str, columns: Columns) -> tuple[str, tuple[str, ...], str]:
    """The format of a file, its columns, and what stands between them."""
    format = format_of(path)
    if format == "parquet":
        with explained(path):
            return format, names_of_parquet(connection, [path])[path], ""
    if format == "json":
        return format, json_columns(path, columns), ""
    names, delimiter = csv_header([path], columns, KEPT_BYTES)
    return format, tuple(names), delimiter


def _plain(head: tuple[str, tuple[str, ...], str], paths: Sequence[str], folder: Path) -> list[str]:
    """The files, or copies of those whose lines end in more than one way. Text is read to its end, so that one that is
    cut short is found out now."""
    format, _, delimiter = head
    found = list(paths)
    for number, path in enumerate(paths if format != "parquet" else ()):
        if len(line_ends(path)) > 1:
            folder.mkdir(exist_ok=True)
            found[number] = str(folder / f"{number}.txt")
            if format == "json":
                with_one_end_per_line(lines_of(path, KEPT_BYTES), found[number])
            else:
                _copied(path, delimiter, found[number])
    return found


def _copied(path: str, delimiter: str, target: str) -> None:
    with with_one_line_end([path], delimiter, KEPT_BYTES) as (copy,):
        os.replace(copy, target)


def rows_query(connection: DuckDBPyConnection, groups: Sequence[Group], columns: Columns) -> str:
    """All rows: file, basket, item, category, weight, time, and the reason why one is bad, or null."""
    kinds = [_kinds(connection, group, columns) for group in groups]
    integers = all(each["basket"] in INTEGER_TYPES for each in kinds)
    parts = [_rows_of(group, columns, each, integers) for group, each in zip(groups, kinds, strict=True)]
    return " UNION ALL ".join(parts)


def bad_rows_query(connection: DuckDBPyConnection, group: Group, columns: Columns) -> str:
    """The bad rows of some files as they came: file, row, reason, c0, c1, ..."""
    rows = _rows_of(group, columns, _kinds(connection, group, columns), integers=False, raw=True)
    came = ", ".join(f"CAST(c{number} AS VARCHAR)" for number in range(len(columns.all)))
    return f"SELECT file, row, reason, {came} FROM ({rows}) WHERE reason IS NOT NULL"


def items_are_integers(connection: DuckDBPyConnection, groups: Sequence[Group], columns: Columns) -> bool:
    """Whether items that are all written as integers are meant as such: text in a Parquet file is text."""
    kinds = [(group.format, _kinds(connection, group, columns)["item"]) for group in groups]
    return all(format != "parquet" or kind in INTEGER_TYPES for format, kind in kinds)


def _kinds(connection: DuckDBPyConnection, group: Group, columns: Columns) -> dict[str, str]:
    """The type of each column that matters."""
    with explained(group.paths[0]):
        found = connection.sql(f"SELECT * EXCLUDE (file, row) FROM ({group.query(columns)}) LIMIT 0")
        kinds = dict(zip(columns.by_role, map(str, found.types), strict=True))
    for role, kind in kinds.items():
        _check_kind(role, kind, columns.by_role[role], group.paths[0])
    return kinds


def _check_kind(role: str, kind: str, column: str, path: str) -> None:
    if kind.endswith("]") or kind.startswith(NESTED_TYPES):
        wanted = "one value per row: explode or unnest the column first"
    elif role == "item" and kind in INEXACT_TYPES:
        wanted = "names or integers: cast the column to text or to integers first"
    elif role == "time" and (kind in INTEGER_TYPES or kind in INEXACT_TYPES):
        wanted = "dates or times: convert the numbers first"
    else:
        return
    raise InputError(f"column {column!r} of {path} holds {kind}; expected {wanted}")


def _rows_of(group: Group, columns: Columns, kinds: dict[str, str], integers: bool, raw: bool = False) -> str:
    found = {role: _tidy(f"c{number}", kinds[role]) for number, role in enumerate(columns.by_role)}
    values = {
        "basket": "CAST(c0 AS BIGINT)" if integers else found["basket"],
        "item": found["item"],
        "category": found.get("category", sql_text(ONE_CATEGORY)),
        "weight": f"TRY_CAST({found['weight']} AS DOUBLE)" if "weight" in found else "CAST(NULL AS DOUBLE)",
        "time": f"TRY_CAST({found['time']} AS TIMESTAMPTZ)" if "time" in found else "CAST(NULL AS TIMESTAMPTZ)",
    }
    chosen = ", ".join(f"{value} AS {role}" for role, value in values.items())
    inner = f"SELECT {'*' if raw else 'file'}, {chosen} FROM ({group.query(columns)})"
    return f"SELECT *, {_reason(columns)} AS reason FROM ({inner})"


def _tidy(column: str, kind: str) -> str:
    """As text without blanks around it, and null where there is nothing else."""
    if kind in INEXACT_TYPES:  # 7.0 is what is left of a 7 in a table that had a gap
        whole = f"CASE WHEN {column} = trunc({column}) THEN CAST(CAST({column} AS HUGEINT) AS VARCHAR)"
        return f"{whole} WHEN isnan({column}) THEN NULL ELSE CAST({column} AS VARCHAR) END"
    tidy = tidy_value(column, kind, tidy=True)
    if kind != "VARCHAR":
        return f"CAST({tidy} AS VARCHAR)"
    # Most texts begin and end in something visible, which is far cheaper to see than to search for blanks.
    visible = " AND ".join(f"{column}[{end}] BETWEEN '!' AND '~'" for end in (1, -1))
    return f"CASE WHEN {visible} THEN {column} ELSE {tidy} END"


def _reason(columns: Columns) -> str:
    tests = [("basket IS NULL", NO_BASKET), ("item IS NULL", NO_ITEM)]
    if columns.category is not None:
        tests.append(("category IS NULL", NO_CATEGORY))
    if columns.weight is not None:
        tests.append(("NOT coalesce(weight > 0 AND isfinite(weight), false)", BAD_WEIGHT))
    if columns.time is not None:
        tests.append(("NOT coalesce(isfinite(time), false)", BAD_TIME))
    return "CASE " + " ".join(f"WHEN {test} THEN {sql_text(words)}" for test, words in tests) + " END"
