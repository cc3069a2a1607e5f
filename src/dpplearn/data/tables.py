"""Long tables, in memory or in files, to integer pairs; duckdb does the work."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import LONGEST_INTEGER, Catalogue
from dpplearn.data.conversion import Pairs
from dpplearn.data.times import Times, times_of_column
from dpplearn.errors import InputError
from dpplearn.utils.text import listed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

INTEGER_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
INEXACT_TYPES = {"FLOAT", "DOUBLE"}
LONGEST_MESSAGE = 500  # characters of duckdb's own, which may quote a line of any length
NESTED_TYPES = ("STRUCT", "MAP", "UNION")
BLANK = r"[\pZ\t-\r\x1c-\x1f\x{85}]"  # what str.strip takes off


@dataclass(frozen=True)
class Columns:
    """The columns that matter, by name."""

    basket: str
    item: str
    weight: str | None
    category: str | None = None
    time: str | None = None

    @property
    def by_role(self) -> dict[str, str]:
        """The columns that there are to be, by what they tell."""
        roles = ("basket", "item", "weight", "category", "time")
        return {role: column for role in roles if (column := getattr(self, role)) is not None}

    @property
    def all(self) -> list[str]:
        return list(self.by_role.values())

    def are_in(self, names: Sequence[str]) -> bool:
        return all(_called(column, names) for column in self.all)

    def missing(self, names: Sequence[str], source: str, advice: str = "") -> InputError:
        """What to say where not all of them are in."""
        missing = [column for column in self.all if not _called(column, names)]
        roles = list(dict.fromkeys(["basket", "item", "weight", *self.by_role]))
        return InputError(
            f"{source} has the columns {_quoted(names)}, but not {_quoted(missing)}; name the right ones with "
            f"{listed([f'{role}=' for role in roles])} ({', '.join(f'--{role}' for role in roles)}){advice}"
        )

    def places(self, names: Sequence[str], source: str) -> list[int]:
        """Where they are among all columns of a table, each once."""
        if not self.are_in(names):
            raise self.missing(names, source)
        found = [_called(column, names) for column in self.all]
        for column, places in zip(self.all, found, strict=True):
            if len(places) > 1:
                spelled = _quoted([names[place] for place in places])
                raise InputError(
                    f"{source} has {len(places)} columns called {column!r} ({spelled}); rename all but one"
                )
        return [places[0] for places in found]


def _called(column: str, names: Sequence[str]) -> list[int]:
    """Which of the columns are called so, blanks around a name not counted."""
    return [place for place, name in enumerate(names) if name.strip() == column.strip()]


def pairs_of_table(table: Any, columns: Columns) -> Pairs:
    """The pairs of a pandas or polars DataFrame or an Arrow table."""
    import duckdb

    with duckdb.connect() as connection:
        try:
            connection.register("registered", table)
        except (duckdb.Error, TypeError):
            kind = f"{type(table).__module__}.{type(table).__name__}"
            raise InputError(
                f"got a {kind}; expected a pandas or polars DataFrame or an Arrow table, with columns"
            ) from None
        with explained("the table"):
            query = chosen_columns("registered", names_of_table(connection, table), columns, "the table")
            return pairs_of_query(connection, query, "the table", columns, tidy=False, texts=False)


def names_of_table(connection: DuckDBPyConnection, table: Any) -> list[str]:
    """As the table has them: duckdb gives columns of one name, and those that differ in case alone, other names."""
    seen = connection.sql("SELECT * FROM registered").columns
    own = getattr(table, "column_names", getattr(table, "columns", seen))  # of Arrow; of pandas and polars
    return [str(name) for name in own] if len(own) == len(seen) else seen


def pairs_of_parquet(paths: Sequence[str], columns: Columns) -> Pairs:
    """The pairs of one or more Parquet files."""
    import duckdb

    source = _source(paths)
    with duckdb.connect() as connection, explained(source):
        alike: dict[tuple[str, ...], list[str]] = {}
        for path, names in names_of_parquet(connection, paths).items():
            alike.setdefault(names, []).append(path)
        queries = [
            chosen_columns(f"read_parquet({sql_files(some)}, union_by_name = true)", names, columns, _source(some))
            for names, some in alike.items()
        ]
        return pairs_of_query(connection, " UNION ALL ".join(queries), source, columns, tidy=True, texts=False)


def names_of_parquet(connection: DuckDBPyConnection, paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns of each file. Its schema has the root first, and after every node all that is within it."""
    found = {}
    for path in paths:
        schema = connection.execute(
            f"SELECT name, num_children FROM parquet_schema({sql_text(_file(path))})"
        ).fetchall()
        names, within = [], 0
        for name, n_children in schema[1:]:
            if not within:
                names.append(name)
            within = max(within - 1, 0) + (n_children or 0)
        found[path] = tuple(names)
    return found


def pairs_of_csv(
    files: Sequence[str], paths: Sequence[str], columns: Columns, header: Sequence[str], delimiter: str
) -> Pairs:
    """The pairs of one or more CSV files with the same header, known as `paths`. Every value is text, as written."""
    import duckdb

    types = ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in numbered(header))
    options = f"auto_detect = false, header = true, delim = {sql_text(delimiter)}, quote = '\"', columns = {{{types}}}"
    source = _source(paths)
    with duckdb.connect() as connection, explained(source):
        query = chosen_columns(f"read_csv({sql_files(files)}, {options})", header, columns, source)
        return pairs_of_query(connection, query, source, columns, tidy=True, texts=True)


def _source(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"


def numbered(names: Sequence[str]) -> list[str]:
    """Names that are all different: a table may repeat its own, leave them empty, or tell them apart by case."""
    return [f"n{number}" for number in range(len(names))]


def chosen_columns(table: str, names: Sequence[str], columns: Columns, source: str) -> str:
    """A query for the columns that matter, as c0, c1 and c2."""
    all_columns = ", ".join(numbered(names))
    chosen = ", ".join(f"n{place} AS c{number}" for number, place in enumerate(columns.places(names, source)))
    return f"SELECT {chosen} FROM {table} AS source({all_columns})"


@contextmanager
def explained(source: str) -> Iterator[None]:
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


def pairs_of_query(
    connection: DuckDBPyConnection, query: str, source: str, columns: Columns, *, tidy: bool, texts: bool
) -> Pairs:
    """Number the baskets and the items in the order of their identifiers, and fetch the pairs as integers."""
    found = connection.sql(query)
    kinds = [str(kind) for kind in found.types]
    types = dict(zip(columns.all, kinds, strict=True))
    chosen = ", ".join(f"{tidy_value(f'c{number}', kind, tidy)} AS c{number}" for number, kind in enumerate(kinds))
    connection.execute(f"CREATE TEMP TABLE pairs AS SELECT {chosen} FROM ({query})").fetchall()
    if not one_number(connection, "SELECT count(*) FROM pairs"):
        raise InputError(f"{source} has no rows; expected one row per (basket, item) pair")
    for number, column in enumerate(columns.all):
        _check_nulls(connection, source, column, f"c{number}", types[column])
    if types[columns.item] in INEXACT_TYPES:
        raise InputError(
            f"column {columns.item!r} of {source} holds {types[columns.item]}; "
            "an item is a name or an integer: cast the column to text or to integers first"
        )
    if types[columns.item].endswith("]") or types[columns.item].startswith(NESTED_TYPES):
        raise InputError(
            f"column {columns.item!r} of {source} holds {types[columns.item]}, several values per row; "
            "expected one row per (basket, item) pair: explode or unnest the column first, or use from_lists"
        )
    numbered_baskets = _all_integers(connection, "c0")
    _number(connection, "baskets", "c0", integers=numbered_baskets)
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
        n_baskets=one_number(connection, "SELECT count(*) FROM baskets"),
        catalogue=Catalogue.of(map(int, names) if integers else names),
        weights=_weights(connection, source, columns.weight) if columns.weight is not None else None,
        ids=_ids(connection, integers=numbered_baskets),
        times=_times(connection, source, columns, kinds),
    )


def _times(connection: DuckDBPyConnection, source: str, columns: Columns, kinds: Sequence[str]) -> Times | None:
    if columns.time is None:
        return None
    place = list(columns.by_role).index("time")
    return times_of_column(connection, source, columns.time, f"c{place}", kinds[place])


def _ids(connection: DuckDBPyConnection, *, integers: bool) -> npt.NDArray[Any]:
    """What the baskets are called: integers where all are and 64 bits hold them, texts otherwise."""
    fit = integers and one_number(connection, "SELECT count(*) = count(TRY_CAST(id AS BIGINT)) FROM baskets")
    query = f"SELECT CAST(id AS {'BIGINT' if fit else 'VARCHAR'}) AS id FROM baskets ORDER BY number"
    return np.asarray(connection.execute(query).fetchnumpy()["id"])


def _check_nulls(connection: DuckDBPyConnection, source: str, column: str, name: str, kind: str) -> None:
    missing = f"{name} IS NULL" + (f" OR isnan({name})" if kind in INEXACT_TYPES else "")
    count = one_number(connection, f"SELECT count(*) FROM pairs WHERE {missing}")
    if count:
        first = one_number(connection, f"SELECT min(rowid) FROM pairs WHERE {missing}") + 1
        raise InputError(
            f"column {column!r} of {source} is null in {count} {'row' if count == 1 else 'rows'}, "
            f"first in row {first}; fill the gaps or leave those rows out"
        )


def _all_integers(connection: DuckDBPyConnection, column: str) -> bool:
    """Whether every value is written as a plain integer, as `is_plain_integer` tells."""
    plain = f"regexp_full_match(CAST({column} AS VARCHAR), '0|-?[1-9][0-9]{{0,{LONGEST_INTEGER - 1}}}')"
    return bool(one_number(connection, f"SELECT bool_and({plain}) FROM pairs"))


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


def one_number(connection: DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])


def sql_files(paths: Sequence[str]) -> str:
    """The very files, as an SQL literal: duckdb would match their names as patterns and expand a leading ~.

    Nor does it take columns from the names of folders.
    """
    return sql_text([_file(path) for path in paths]) + ", hive_partitioning = false"


def _file(path: str) -> str:
    return glob.escape(os.path.abspath(path))


def sql_text(value: str | list[str]) -> str:
    """A text, or a list of texts, as an SQL literal."""
    if isinstance(value, list):
        return "[" + ", ".join(sql_text(each) for each in value) + "]"
    return "'" + value.replace("'", "''") + "'"


def tidy_value(column: str, kind: str, tidy: bool) -> str:
    """An enumeration as text, since its own order is not that of the names; `tidy` text without blanks around it, and
    none at all where there is nothing else."""
    listed = kind.startswith("ENUM")
    text = f"CAST({column} AS VARCHAR)" if listed else column
    if not tidy or not (listed or kind == "VARCHAR"):
        return text
    return f"nullif(regexp_replace({text}, '^{BLANK}+|{BLANK}+$', '', 'g'), '')"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
