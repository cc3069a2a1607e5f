"""Write tables to CSV, Parquet or JSON lines files, by the suffix of the file name."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from dpplearn.data.transactions import parquet_names, sql_text
from dpplearn.errors import InputError
from dpplearn.utils.files import OutputKind, new_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARQUET = "FORMAT parquet, COMPRESSION zstd"
MAX_HEADER_BYTES = 1_000_000  # a longer first line is no header of ours
FORMATS = {".parquet": PARQUET, ".pq": PARQUET, ".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json"}


def check_format(target: Path) -> None:
    """Raise an error if the suffix of a file has no format."""
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"{target}: expected a file name that ends in {', '.join(FORMATS)}")


def result_table(name: str, columns_match: Callable[[tuple[str, ...]], bool]) -> OutputKind:
    """Return the output type of result tables, which are identified by the names of their columns, in order."""
    return OutputKind(name, lambda path: columns_match(_column_names(path)))


def _column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of a table in the format of its ending; none if it does not have that format."""
    import duckdb

    try:
        if FORMATS[path.suffix.lower()] == PARQUET:
            with duckdb.connect() as connection:
                return parquet_names(connection, str(path))
        with open(path, "rb") as file:
            text = file.readline(MAX_HEADER_BYTES).decode()
        return tuple(json.loads(text) if path.suffix.lower() == ".jsonl" else next(csv.reader([text])))
    except (duckdb.Error, ValueError, TypeError, StopIteration, csv.Error):  # not a table of this format
        return ()


def copy_table(connection: DuckDBPyConnection, table: str, target: Path) -> None:
    """Write a table of a connection, or a query in parentheses, to a file, atomically."""
    check_format(target)
    with new_file(target) as temporary:
        form = FORMATS[target.suffix.lower()]
        connection.execute(f"COPY {table} TO {sql_text(str(temporary))} ({form}, USE_TMP_FILE false)").fetchall()


def write_table(columns: Mapping[str, npt.NDArray[Any]], target: Path) -> None:
    """Write columns by name to a file. NaN is written as a missing value."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("written", dict(columns))
        copy_table(connection, "written", target)
