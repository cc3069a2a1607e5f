"""Long tables, in memory or in files, to integer pairs; duckdb does the work."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.catalogue import LONGEST_INTEGER, Label
from dpplearn.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

INTEGER_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
INEXACT_TYPES = {"FLOAT", "DOUBLE"}
LONGEST_MESSAGE = 500  # characters of duckdb's own, which may quote a line of any length
NESTED_TYPES = ("STRUCT", "MAP", "UNION")


@dataclass(frozen=True)
class Pairs:
    """Which basket (by number) holds which item (by position); weights are one a basket."""

    rows: Ints
    positions: Ints
    n_baskets: int
    weights: Floats | None
    labels: Sequence[Label]


@dataclass(frozen=True)
class Columns:
    """The columns that matter, by name."""

    basket: str
    item: str
    weight: str | None

    @property
    def all(self) -> list[str]:
        return [self.basket, self.item] + ([self.weight] if self.weight is not None else [])

    def check(self, found: Sequence[str], source: str, advice: str = "") -> None:
        missing = [column for column in self.all if column not in found]
        if missing:
            raise InputError(
                f"{source} has the columns {_quoted(found)}, but not {_quoted(missing)}; "
                f"name the right ones with basket=, item= and weight= (--basket, --item, --weight){advice}"
            )


def pairs_of_table(table: Any, *, basket: str, item: str, weight: str | None) -> Pairs:
    """The pairs of a pandas or polars DataFrame or an Arrow table."""
    import duckdb

    with duckdb.connect() as connection:
        try:
            connection.register("source", table)
        except (duckdb.Error, TypeError):
            kind = f"{type(table).__module__}.{type(table).__name__}"
            raise InputError(
                f"got a {kind}; expected a pandas or polars DataFrame or an Arrow table, with columns"
            ) from None
        with _explained("the table"):
            return _pairs(connection, "the table", Columns(basket, item, weight), texts=False)


def pairs_of_parquet(paths: Sequence[str], columns: Columns) -> Pairs:
    """The pairs of one or more Parquet files."""
    return _pairs_of_files(f"read_parquet({_files(paths)}, union_by_name = true)", paths, columns, texts=False)


def pairs_of_csv(paths: Sequence[str], columns: Columns, header: Sequence[str], delimiter: str) -> Pairs:
    """The pairs of one or more CSV files with the same header. Every value is text, as written."""
    for column in columns.all:
        if header.count(column) > 1:
            raise InputError(f"{paths[0]} has {header.count(column)} columns called {column!r}; rename all but one")
    # The others get a number for a name: a CSV may repeat names or leave them empty, which duckdb does not take.
    names = [name if name in columns.all else f"column {number}" for number, name in enumerate(header)]
    types = ", ".join(f"{_sql(name)}: 'VARCHAR'" for name in names)
    options = f"auto_detect = false, header = true, delim = {_sql(delimiter)}, quote = '\"', columns = {{{types}}}"
    return _pairs_of_files(f"read_csv({_files(paths)}, {options})", paths, columns, texts=True)


def _pairs_of_files(reader: str, paths: Sequence[str], columns: Columns, *, texts: bool) -> Pairs:
    import duckdb

    source = paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"
    with duckdb.connect() as connection, _explained(source):
        connection.execute(f"CREATE TEMP VIEW source AS SELECT * FROM {reader}").fetchall()
        return _pairs(connection, source, columns, texts=texts)


@contextmanager
def _explained(source: str) -> Iterator[None]:
    """What duckdb says of the data, as an error of ours."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:  # the last two: names that are not UTF-8
        if str(error) == "Query interrupted":  # duckdb's answer to Ctrl-C
            raise KeyboardInterrupt from None
        said = str(error).split("\nPossible")[0].split("\nLINE 1:")[0].strip()
        if len(said) > LONGEST_MESSAGE:
            said = said[:LONGEST_MESSAGE] + " ..."
        raise InputError(f"{source} cannot be read; is it whole, and of the format its name says? {said}") from None


def _pairs(connection: DuckDBPyConnection, source: str, columns: Columns, *, texts: bool) -> Pairs:
    """Number the baskets and the items in the order of their identifiers, and fetch the pairs as integers."""
    found = connection.sql("SELECT * FROM source")
    columns.check(found.columns, source)
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    chosen = ", ".join(f"{_text(column, types[column])} AS c{number}" for number, column in enumerate(columns.all))
    connection.execute(f"CREATE TEMP TABLE pairs AS SELECT {chosen} FROM source").fetchall()
    if not _one(connection, "SELECT count(*) FROM pairs"):
        raise InputError(f"{source} has no rows; expected one row a (basket, item) pair")
    for number, column in enumerate(columns.all):
        _check_nulls(connection, source, column, f"c{number}", types[column])
    if types[columns.item] in INEXACT_TYPES:
        raise InputError(
            f"column {columns.item!r} of {source} holds {types[columns.item]}; "
            "an item is a name or an integer: cast the column to text or to integers first"
        )
    if types[columns.item].endswith("]") or types[columns.item].startswith(NESTED_TYPES):
        raise InputError(
            f"column {columns.item!r} of {source} holds {types[columns.item]}, several values a row; "
            "expected one row a (basket, item) pair: explode or unnest the column first, or use from_lists"
        )
    _number(connection, "baskets", "c0", integers=_all_integers(connection, "c0"))
    integers = types[columns.item] in INTEGER_TYPES or (texts and _all_integers(connection, "c1"))
    _number(connection, "items", "c1", integers=integers)
    pairs = connection.execute(
        "SELECT b.number AS row, i.number AS position FROM pairs "
        "JOIN baskets b ON c0 = b.id JOIN items i ON c1 = i.id ORDER BY 1, 2"
    ).fetchnumpy()
    names = [name for (name,) in connection.execute("SELECT CAST(id AS VARCHAR) FROM items ORDER BY number").fetchall()]
    return Pairs(
        rows=np.asarray(pairs["row"]),
        positions=np.asarray(pairs["position"]),
        n_baskets=_one(connection, "SELECT count(*) FROM baskets"),
        weights=_weights(connection, source, columns.weight) if columns.weight is not None else None,
        labels=[int(name) for name in names] if integers else names,
    )


def _check_nulls(connection: DuckDBPyConnection, source: str, column: str, name: str, kind: str) -> None:
    missing = f"{name} IS NULL" + (f" OR isnan({name})" if kind in INEXACT_TYPES else "")
    count = _one(connection, f"SELECT count(*) FROM pairs WHERE {missing}")
    if count:
        first = _one(connection, f"SELECT min(rowid) FROM pairs WHERE {missing}") + 1
        raise InputError(
            f"column {column!r} of {source} is null in {count} {'row' if count == 1 else 'rows'}, "
            f"first in row {first}; fill the gaps or leave those rows out"
        )


def _all_integers(connection: DuckDBPyConnection, column: str) -> bool:
    """Whether every value is written as a plain integer, as `is_plain_integer` has it."""
    plain = f"regexp_full_match(CAST({column} AS VARCHAR), '0|-?[1-9][0-9]{{0,{LONGEST_INTEGER - 1}}}')"
    return bool(_one(connection, f"SELECT bool_and({plain}) FROM pairs"))


def _number(connection: DuckDBPyConnection, table: str, column: str, *, integers: bool) -> None:
    """Numbers 0, 1, ... in ascending order; texts that are all integers in the order of the integers."""
    order = "CAST(id AS HUGEINT)" if integers else "id"
    connection.execute(
        f"CREATE TEMP TABLE {table} AS SELECT id, row_number() OVER (ORDER BY {order}) - 1 AS number "
        f"FROM (SELECT DISTINCT {column} AS id FROM pairs)"
    ).fetchall()


def _weights(connection: DuckDBPyConnection, source: str, column: str) -> Floats:
    wrong = connection.execute("SELECT c0, c2 FROM pairs WHERE TRY_CAST(c2 AS DOUBLE) IS NULL LIMIT 1").fetchall()
    if wrong:
        basket, value = wrong[0]
        raise InputError(f"column {column!r} of {source} holds {value!r} for basket {basket!r}; expected a number")
    mixed = connection.execute(
        "SELECT c0, min(CAST(c2 AS DOUBLE)), max(CAST(c2 AS DOUBLE)) FROM pairs GROUP BY c0 "
        "HAVING min(CAST(c2 AS DOUBLE)) <> max(CAST(c2 AS DOUBLE)) ORDER BY c0 LIMIT 1"
    ).fetchall()
    if mixed:
        basket, low, high = mixed[0]
        raise InputError(
            f"basket {basket!r} of {source} has weights from {low:g} to {high:g} in column {column!r}; "
            "a weight belongs to the basket: it must be the same in all its rows"
        )
    weights = connection.execute(
        "SELECT any_value(CAST(c2 AS DOUBLE)) AS weight FROM pairs JOIN baskets ON c0 = id "
        "GROUP BY number ORDER BY number"
    ).fetchnumpy()
    return np.asarray(weights["weight"])


def _one(connection: DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])


def _files(paths: Sequence[str]) -> str:
    """The very files, as an SQL literal: duckdb would match their names as patterns and expand a leading ~.

    Nor does it take columns from the names of folders.
    """
    return _sql([glob.escape(os.path.abspath(path)) for path in paths]) + ", hive_partitioning = false"


def _sql(value: str | list[str]) -> str:
    """A text, or a list of texts, as an SQL literal."""
    if isinstance(value, list):
        return "[" + ", ".join(_sql(each) for each in value) + "]"
    return "'" + value.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(column: str, kind: str) -> str:
    """The column, an enumeration as text, since its own order is not that of the names."""
    return _identifier(column) + ("::VARCHAR" if kind.startswith("ENUM") else "")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
