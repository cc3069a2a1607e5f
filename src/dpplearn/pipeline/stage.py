"""Where a preparation keeps what it has done so far: a database beside its output, one transaction per step.

A process that is killed leaves the steps that were finished and nothing of the one that was not, and the next goes on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpplearn.errors import InputError
from dpplearn.pipeline.manifest import WORK
from dpplearn.utils.memory import in_bytes
from dpplearn.utils.progress import Bar, Progress

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DATABASE = "stage.duckdb"
OURS = 250e6  # bytes of this process beside what duckdb counts
SHARE = 0.85  # of the memory that duckdb is told of: it goes some percent above
LEAST = 100e6


@dataclass
class Stage:
    """An open database, and which steps it has done."""

    connection: DuckDBPyConnection
    source: str  # what errors are about
    memory: float
    done: set[str]
    bar: Bar

    def step(self, name: str, work: Callable[[], None]) -> None:
        """Do it, unless it is done: all of it or nothing."""
        if name in self.done:
            return
        self.bar.update(len(self.done), name)
        with self.within_means():
            self.connection.begin()
            try:
                work()
                self.connection.execute("INSERT INTO steps VALUES (?)", [name])
                self.connection.commit()
            except BaseException:
                with suppress(Exception):  # what went wrong may have ended the transaction
                    self.connection.rollback()
                raise
        self.done.add(name)

    def within_means(self) -> AbstractContextManager[None]:
        """What duckdb says of memory and disks, as errors of ours."""
        return within_means(f"preparing {self.source}", self.memory)

    def run(self, query: str) -> None:
        self.connection.execute(query).fetchall()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def one(self, query: str) -> Any:
        return self.rows(query)[0][0]


@contextmanager
def within_means(what: str, memory: float) -> Iterator[None]:
    """What duckdb says of memory and disks, as errors of ours; its answer to Ctrl-C is Ctrl-C."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError(f"{what} needs more than {in_bytes(memory)} of memory or disk ({error})") from None
    except (RuntimeError, duckdb.Error) as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        if isinstance(error, duckdb.IOException) and "write" in str(error):
            raise InputError(f"{what}: the disk cannot be written: {error}") from None
        raise


@contextmanager
def open_stage(
    output: Path, setting: Mapping[str, Any], source: str, memory: float, threads: int | None, progress: Progress
) -> Iterator[Stage]:
    """The stage of an earlier run with this very setting, or a new one. An error removes it, a kill does not.

    Where the folder was not there before, it is not there after an error either.
    """
    work, new = output / WORK, not output.exists()
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror or error}") from None
    connection = _opened(work, json.dumps(setting, sort_keys=True))
    try:
        _set_up(connection, work, memory, threads)
        done = {name for (name,) in connection.execute("SELECT name FROM steps").fetchall()}
        yield Stage(connection, source, memory, done, progress.bar("preparing"))
    except InputError:
        connection.close()
        shutil.rmtree(output if new else work, ignore_errors=True)
        raise
    finally:
        connection.close()


def remove_stage(output: Path) -> None:
    """What a finished run has no more use for, unless another run is at work in it."""
    work = output / WORK
    if work.exists():
        _connected(work / DATABASE).close()
        shutil.rmtree(work, ignore_errors=True)


def _opened(work: Path, setting: str) -> DuckDBPyConnection:
    """The database, emptied if it is of another setting or cannot be used."""
    import duckdb

    path = work / DATABASE
    try:
        connection = _connected(path)
        if _setting_of(connection) == setting:
            return connection
        connection.close()
    except duckdb.Error:  # of another version of duckdb, or not one at all
        pass
    for each in work.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    connection = _connected(path)
    connection.begin()
    connection.execute("CREATE TABLE steps (name VARCHAR)")
    connection.execute("CREATE TABLE setting AS SELECT ? AS text", [setting])
    connection.commit()
    return connection


def _connected(path: Path) -> DuckDBPyConnection:
    import duckdb

    try:
        return duckdb.connect(str(path))
    except duckdb.IOException as error:
        if "lock" not in str(error).lower():
            raise
        raise InputError(
            f"another run is preparing in {path.parent.parent}; wait until it has ended, or name another folder"
        ) from None


def _setting_of(connection: DuckDBPyConnection) -> str | None:
    found = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'setting'").fetchall()
    return connection.execute("SELECT text FROM setting").fetchall()[0][0] if found[0][0] else None


def _set_up(connection: DuckDBPyConnection, work: Path, memory: float, threads: int | None) -> None:
    limit = max(SHARE * (memory - OURS), LEAST)
    connection.execute(f"SET memory_limit = '{int(limit)}B'")
    connection.execute("SET temp_directory = ?", [str(work / "spilled")])
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")  # it goes to standard output, which is for answers
    connection.execute("SET TimeZone = 'UTC'")
    if threads is not None:
        connection.execute(f"SET threads = {threads}")
