"""Tables to files, by their ending CSV, Parquet or JSON lines; duckdb does the work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from dpplearn.data.tables import sql_text
from dpplearn.errors import InputError
from dpplearn.tools.files import new_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARQUET = "FORMAT parquet, COMPRESSION zstd"
FORMATS = {".parquet": PARQUET, ".pq": PARQUET, ".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json"}


def check_format(target: Path) -> None:
    """That the ending tells a format."""
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"{target}: expected a file that ends in {', '.join(FORMATS)}")


def copy_table(connection: DuckDBPyConnection, table: str, target: Path) -> None:
    """A table to a file, which is there whole or not at all."""
    check_format(target)
    with new_file(target) as temporary:
        form = FORMATS[target.suffix.lower()]
        connection.execute(f"COPY {table} TO {sql_text(str(temporary))} ({form}, USE_TMP_FILE false)").fetchall()


def write_table(columns: Mapping[str, npt.NDArray[Any]], target: Path) -> None:
    """Columns by name to a file; numbers that are NaN are missing there."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("written", dict(columns))
        copy_table(connection, "written", target)
