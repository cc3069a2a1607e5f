"""A duckdb database on disk with a memory limit, for tables larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpplearn.data.transactions import within_limits
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.memory import in_bytes, memory_limit

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
MIN_MEMORY = 500e6
MAX_MEMORY = 1e15  # if the system reports no limit; duckdb refuses 2**64 and more
DEFAULT_MEMORY = 4e9  # if the system reports no limit
OWN_MEMORY = 250e6  # bytes of this process that duckdb does not count
DUCKDB_SHARE = 0.85  # duckdb exceeds its limit by some percent


def as_memory(memory: str | float | None) -> float:
    """Return a memory limit in bytes: by default half of the memory of this process, and never more than all of it.

    >>> as_memory("0.5GiB"), as_memory("0.5 gb"), as_memory(6e8)
    (536870912.0, 500000000.0, 600000000.0)
    """
    if memory is None:
        return (memory_limit() or 2 * DEFAULT_MEMORY) / 2
    found = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e\+?[0-9]+)?) *((?:[kmgt]i?)?)b?", str(memory).strip().lower())
    size = float(found[1]) * UNITS[found[2]] if found else 0.0
    if size < MIN_MEMORY:
        raise InputError(f"memory must be at least {in_bytes(MIN_MEMORY)}, such as 4GB or 4GiB; got {memory!r}")
    return min(size, memory_limit() or MAX_MEMORY)


@contextmanager
def open_database(folder: Path, what: str, memory: float, threads: int | None) -> Iterator[DuckDBPyConnection]:
    """Open a new database in a folder. `what` names the job in errors about memory and disk space."""
    import duckdb

    with within_limits(f"{what} with {in_bytes(memory)} of memory"), duckdb.connect(str(folder / "work.duckdb")) as db:
        limit = max(DUCKDB_SHARE * (memory - OWN_MEMORY), MIN_MEMORY / 5)
        db.execute(f"SET memory_limit = '{int(limit)}B'; SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        db.execute("SET temp_directory = ?", [str(folder / "spilled")])
        db.execute("SET enable_progress_bar = false")  # it is printed on standard output
        if threads is not None:
            db.execute(f"SET threads = {whole_number('threads', threads, 1)}")
        yield db
