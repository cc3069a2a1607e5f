"""Transactions: rows of (basket, item, category, weight, time) from files or data frames, as a duckdb table.

All data files and data frames are opened here. One rule decides which rows can be used, whatever the format:

- basket, item, category: text without blanks around it, not empty. Whole floats are integers (7.0 is 7).
- weight: a finite number, 0 or more, the same in all rows of a basket.
- time: a date or a time, UTC unless it has a zone, or a Unix timestamp. The time of a basket is its latest row.

Identifiers are integers if all of them are written as plain 64-bit integers ("7", but not "07" or "7.0").
"""

from __future__ import annotations

import csv
import glob
import os
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.files import (
    DELIMITERS,
    chunks_of,
    csv_fields,
    find_files,
    format_of,
    open_text,
    read_lines,
    with_one_line_end,
)
from dpplearn.data.times import MIN_UNIX_MILLISECONDS, MIN_UNIX_TIME
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count, listed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Usual names of columns, in lower case and without punctuation. The first that a table has is used.
USUAL_NAMES = {
    "basket": (
        *("basket", "basketid", "order", "orderid", "orderno", "ordernumber", "invoice", "invoiceid", "invoiceno"),
        *("transaction", "transactionid", "receipt", "receiptid", "cart", "cartid", "session", "sessionid", "registry"),
        *("registryid", "playlist", "playlistid", "user", "userid"),
    ),
    "item": (
        *("item", "itemid", "itemname", "sku", "product", "productid", "productname", "stockcode", "article"),
        *("articleid", "track", "trackid", "movieid"),
    ),
}
TEXTS = ("basket", "item", "category")
ROLES = (*TEXTS, "weight", "time")
INTEGER_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"}
WIDE_TYPES = {"UBIGINT", "HUGEINT"}  # may exceed 64 bits with a sign
FLOAT_TYPES = {"FLOAT", "DOUBLE"}
NESTED_TYPES = ("STRUCT", "MAP", "UNION")
BLANK = r"[\pZ\t-\r\x1c-\x1f\x{85}]"  # what str.strip removes
ONE_CATEGORY = "all"  # the category of all rows if there is no such column
MAX_EXAMPLES = 3  # bad rows shown per reason
MAX_EXAMPLE = 120  # characters of a bad row
MAX_MESSAGE = 500  # characters of a message of duckdb, which may quote a long line
MAX_COMPARED = 1000  # different bad rows whose line is looked for
MAX_LINE_BYTES = 16_000_000
NOT_IN_JSON = "\x01"  # as the delimiter of columns, it makes every line one column
REASONS = {
    "INVALID ENCODING": "not UTF-8",
    "MISSING COLUMNS": "too few columns",
    "TOO MANY COLUMNS": "too many columns",
    "UNQUOTED VALUE": "quotes that do not match",
    "LINE SIZE OVER MAXIMUM": "a line that is too long",
}


@dataclass(frozen=True)
class Columns:
    """The columns of a table by role.

    `basket` and `item` are found by their usual names if they are None. `category` "auto" is the column of this name,
    if there is one.
    """

    basket: str | None = None
    item: str | None = None
    weight: str | None = None
    category: str | None = None
    time: str | None = None

    @property
    def by_role(self) -> dict[str, str]:
        """The names of the columns that are used, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def resolve(self, names: Sequence[str]) -> Columns:
        """Return the columns with names from a table in place of None and "auto"."""
        found = {role: getattr(self, role) or _usual_name(role, names) for role in USUAL_NAMES}
        category = self.category
        if category == "auto":
            category = "category" if "category" in map(str.strip, names) else None
        return replace(self, **found, category=category)

    def are_in(self, names: Sequence[str]) -> bool:
        """Return whether a table has all columns, and those of baskets and items are known."""
        there = {name.strip() for name in names}
        return None not in (self.basket, self.item) and {name.strip() for name in self.by_role.values()} <= there

    def places(self, names: Sequence[str], source: str) -> list[int]:
        """Return the positions of the columns in a table. Blanks around names are ignored."""
        found = []
        for role, column in self.by_role.items():
            places = [place for place, name in enumerate(names) if name.strip() == column.strip()]
            if len(places) > 1:
                raise InputError(f"{source} has {len(places)} columns called {column!r}; rename all but one")
            if not places:
                raise InputError(f"{source} has no column {column!r} ({role}); it has {_quoted(names)}. {ADVICE}")
            found += places
        if len(found) < 2 or None in (self.basket, self.item):
            missing = listed([role for role in USUAL_NAMES if getattr(self, role) is None])
            raise InputError(f"{source} has the columns {_quoted(names)}; which is that of the {missing}? {ADVICE}")
        return found


ADVICE = (
    "Name columns with basket=, item=, weight=, time= (--columns basket=...); if each line is one basket, pass "
    "format='lines' (--format lines)"
)


class BadRow(NamedTuple):
    """An example of a row that cannot be used. `line` counts from 1; without lines, it is the row."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Reject:
    """Rows that cannot be used for one reason, and the first of them."""

    reason: str
    count: int
    examples: tuple[BadRow, ...]


@dataclass(frozen=True)
class _Group:
    """Files of one format with the same columns, or one table in memory (format "frame")."""

    format: str
    names: tuple[str, ...]
    delimiter: str = ""
    paths: tuple[str, ...] = ("the table",)
    files: tuple[str, ...] = ()  # what duckdb reads: the paths, or copies of them

    def original(self, file: str) -> str:
        """Return the path that the user knows for a file that duckdb reports."""
        known = {os.path.abspath(each): path for each, path in zip(self.files, self.paths, strict=False)}
        return known.get(os.path.abspath(file), self.paths[0]) if file else self.paths[0]

    def raw(self, n_columns: int) -> str:
        """Return SQL for the raw values of a row of `scan`."""
        values = ["trim(line)"] if self.format == "json" else [f"CAST(c{n} AS VARCHAR)" for n in range(n_columns)]
        return f"[{', '.join(values)}]"

    def scan(self, places: Sequence[int], number: int) -> str:
        """Return a query for some columns as c0, c1, ..., with file, row and, for JSON, the line."""
        values = [f"n{place}" for place in places]
        named = ", ".join(f"n{place}" for place in range(len(self.names)))
        file, row, line = "filename", "NULL", ""
        rejects = f"store_rejects = true, rejects_table = 'rejects_{number}', rejects_scan = 'scans_{number}'"
        text = f"auto_detect = false, filename = true, hive_partitioning = false, max_line_size = {MAX_LINE_BYTES}"
        if self.format == "frame":
            table = f"(SELECT *, row_number() OVER () - 1 FROM registered) AS t({named}, row)"
            file, row = "NULL", "row"
        elif self.format == "parquet":
            table = f"read_parquet({sql_files(self.files)}, union_by_name = true, hive_partitioning = false)"
            table, row = f"{table} AS t({named})", "file_row_number"
        elif self.format == "json":
            pointers = [sql_text("/" + self.names[p].replace("~", "~0").replace("/", "~1")) for p in places]
            some = ", ".join(f"{what}(line, [{', '.join(pointers)}])" for what in ("json_extract_string", "json_type"))
            lines = f"header = false, delim = {sql_text(NOT_IN_JSON)}, quote = '', escape = ''"
            lines = f"read_csv({sql_files(self.files)}, {lines}, columns = {{'line': 'VARCHAR'}}, {text}, {rejects})"
            table = f"""(SELECT filename, line, CASE WHEN json_valid(line) THEN row({some}) END AS found
                FROM {lines} WHERE trim(line) <> '')"""
            values = [
                f"CASE WHEN found[2][{n}] NOT IN ('ARRAY', 'OBJECT') THEN found[1][{n}] END"
                for n in range(1, len(places) + 1)
            ]
            line = ", line"
        else:
            types = ", ".join(f"'n{place}': 'VARCHAR'" for place in range(len(self.names)))
            how = f"header = true, delim = {sql_text(self.delimiter)}, quote = '\"', escape = '\"', comment = ''"
            table = f"read_csv({sql_files(self.files)}, {how}, nullstr = '', columns = {{{types}}}, {text}, {rejects})"
        chosen = ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))
        return f"SELECT {chosen}, {file} AS file, {row} AS row{line} FROM {table}"

    def records(self, path: str, places: Sequence[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the raw values of each row of a text file, with the line on which it begins."""
        with open_text(path, newline="" if self.delimiter else None, errors="replace") as file:
            if self.format == "json":
                yield from ((number, (line.strip(),)) for number, line in enumerate(file, start=1))
                return
            rows, begins = csv.reader(file, delimiter=self.delimiter, skipinitialspace=True), 1
            for fields in rows:
                if len(fields) == len(self.names):
                    yield begins, tuple(fields[place] for place in places)
                begins = rows.line_num + 1


class Transactions:
    """Rows of (basket, item, category, weight, time) in the duckdb table `transactions`.

    Made by `Transactions.open`. `rejects` lists the rows that cannot be used.

    Examples
    --------
    >>> import pandas
    >>> orders = pandas.DataFrame({"order_id": [7, 7, 3], "sku": ["crib", "bib", "bib"]})
    >>> with Transactions.open(orders, Columns("order_id", "sku")) as transactions:
    ...     transactions.n_rows, list(transactions.to_baskets())
    (3, [('bib',), ('bib', 'crib')])
    """

    def __init__(self, connection: DuckDBPyConnection, source: str, columns: Columns, name: str, owned: bool) -> None:
        self.connection, self.source, self.columns, self.name = connection, source, columns, name
        self.owned = owned
        self.rejects: list[Reject] = []
        self.integer_items = False  # whether items are integers and not names
        self.n_rows = 0  # rows that can be used
        self._is_view = False

    @classmethod
    def open(
        cls,
        source: Any,
        columns: Columns = Columns(),  # noqa: B008
        *,
        format: str = "auto",
        on_bad_rows: str = "raise",
        connection: DuckDBPyConnection | None = None,
        name: str = "transactions",
    ) -> Transactions:
        """Read files or a data frame into a table.

        Parameters
        ----------
        source : path, pattern, folder, list of these, DataFrame or Arrow table
        columns : Columns
            The columns by role.
        format : {"auto", "csv", "parquet", "json", "lines"}
            By default, the format of the ending of each file.
        on_bad_rows : {"raise", "skip"}
            Whether rows that cannot be used are an error.
        connection : duckdb connection, optional
            Where the table is created. By default in memory.
        name : str
            Name of the table.

        Returns
        -------
        Transactions
        """
        if on_bad_rows not in ("raise", "skip"):
            raise InputError(f"on_bad_rows is {on_bad_rows!r}; expected 'raise' or 'skip'")
        import duckdb

        owned, connection = connection is None, connection or duckdb.connect()
        try:
            connection.execute("SET TimeZone = 'UTC'; SET pandas_analyze_sample = 0; SET enable_progress_bar = false")
            with TemporaryDirectory(prefix="dpplearn-") as folder:
                groups = _groups(connection, source, columns, format, Path(folder))
                label = source_name([path for group in groups for path in group.paths])
                found = columns.resolve([name for group in groups for name in group.names])
                _warn_of_guesses(columns, found, label)
                opened = cls(connection, label, found, name, owned)
                with explained(label):
                    opened._load(groups)
            if on_bad_rows == "raise" or not opened.n_rows:
                opened.refuse_bad_rows()
            return opened
        except BaseException:
            if owned:
                connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self.owned:
            self.connection.close()

    @property
    def n_rejected(self) -> int:
        """The number of rows that cannot be used."""
        return sum(each.count for each in self.rejects)

    def refuse_bad_rows(self) -> None:
        """Raise an error if some rows cannot be used, or if there are none."""
        if not self.rejects and self.n_rows:
            return
        if not self.rejects:
            raise InputError(f"{self.source} has no rows; expected one row per item of a basket")
        first = self.rejects[0]
        file, line, text = first.examples[0] if first.examples else BadRow(self.source, 0, "")
        what = f"{self.n_rejected:,} of {count(self.n_rows + self.n_rejected, 'row')}"
        raise InputError(
            f"{what} cannot be used: {first.reason}, first in line {line} of {file} ({text!r}); fix the rows, or leave "
            "them out with on_bad_rows='skip'"
        )

    def _load(self, groups: Sequence[_Group]) -> None:
        """Create the table of all rows, and a view of those that can be used."""
        run, rows = self.connection.execute, f"{self.name}_rows"
        # Parquet files are read several times: that takes a fifth of the time of a copy of their texts.
        self._is_view = all(group.format == "parquet" for group in groups)
        places = [self.columns.places(group.names, group.paths[0]) for group in groups]
        scans = [group.scan(each, number) for number, (group, each) in enumerate(zip(groups, places, strict=True))]
        types = [self._types(scan, group) for scan, group in zip(scans, groups, strict=True)]
        integers = all(each["basket"] in INTEGER_TYPES - WIDE_TYPES for each in types)
        basket = "BIGINT" if integers else "VARCHAR"
        kinds = f"(basket {basket}, item VARCHAR, category VARCHAR, weight DOUBLE, time TIMESTAMPTZ, reason VARCHAR)"
        usable = [self._usable(scan, each, integers) for scan, each in zip(scans, types, strict=True)]
        chosen = [f"SELECT {', '.join(ROLES)}, reason FROM ({each})" for each in usable]
        if self._is_view:
            run(f"CREATE VIEW {rows} AS {' UNION ALL '.join(chosen)}")
        else:
            run(f"CREATE TABLE {rows} {kinds}")
        rejected: list[Reject] = []
        for number, group in enumerate(() if self._is_view else groups):
            with explained(source_name(group.paths)):
                run(f"INSERT INTO {rows} {chosen[number]}").fetchall()
                rejected += _rejected_lines(self.connection, group, number)
        usable_row = "reason IS NULL"
        checks = "false" if integers else all_plain("basket", usable_row), all_plain("item", usable_row)
        with explained(self.source):
            query = f"SELECT count(*) FILTER ({usable_row}), count(reason), {', '.join(checks)} FROM {rows}"
            self.n_rows, n_bad, plain_baskets, plain_items = self.connection.execute(query).fetchall()[0]
            for number, group in enumerate(groups if n_bad else ()):  # read again, for the place of the bad rows
                rejected += self._unusable(usable[number], group, places[number])
                deque(_rejected_lines(self.connection, group, number), maxlen=0)
        self.rejects = _summary(rejected)
        # Text in Parquet files and data frames is text: only files without types leave open what digits mean.
        untyped = all(
            group.format in ("csv", "json") or each["item"] in INTEGER_TYPES
            for group, each in zip(groups, types, strict=True)
        )
        self.integer_items = untyped and plain_items
        basket = "CAST(basket AS BIGINT)" if plain_baskets else "basket"
        run(
            f"CREATE VIEW {self.name} AS SELECT {basket} AS basket, item, category, weight, time "
            f"FROM {rows} WHERE reason IS NULL"
        )

    def drop(self) -> None:
        """Remove the tables."""
        kind = "VIEW" if self._is_view else "TABLE"
        self.connection.execute(f"DROP VIEW {self.name}; DROP {kind} {self.name}_rows")

    def _one(self, query: str) -> Any:
        return self.connection.execute(query).fetchall()[0][0]

    def _types(self, scan: str, group: _Group) -> dict[str, str]:
        """Return the type of each column by role."""
        with explained(group.paths[0]):
            types = list(map(str, self.connection.sql(f"{scan} LIMIT 0").types))
        found = dict(zip(self.columns.by_role, types, strict=False))
        for role, kind in found.items():
            column = self.columns.by_role[role]
            if kind.endswith("]") or kind.startswith(NESTED_TYPES):
                wanted = "one value per row; explode or unnest the column first"
            elif role == "item" and kind in FLOAT_TYPES:
                wanted = "names or integers; cast the column to text or to integers first"
            else:
                continue
            raise InputError(f"column {column!r} of {group.paths[0]} holds {kind}; expected {wanted}")
        return found

    def _usable(self, scan: str, types: dict[str, str], integers: bool) -> str:
        """Return a query for the values by role, with the reason why a row cannot be used, or null."""
        values = {
            "category": sql_text(ONE_CATEGORY),
            "weight": "CAST(NULL AS DOUBLE)",
            "time": "CAST(NULL AS TIMESTAMPTZ)",
        }
        for number, (role, kind) in enumerate(types.items()):
            values[role] = _VALUES.get(role, _text)(f"c{number}", kind)
        if integers:
            values["basket"] = "CAST(c0 AS BIGINT)"
        names = self.columns.by_role
        tests = [(f"{role} IS NULL", f"no value in column {names[role]!r}") for role in names if role in TEXTS]
        if "weight" in names:
            tests.append(
                ("NOT coalesce(weight >= 0 AND isfinite(weight), false)", f"no weight in column {names['weight']!r}")
            )
        if "time" in names:
            tests.append(("NOT coalesce(isfinite(time), false)", f"no date or time in column {names['time']!r}"))
        reason = " ".join(f"WHEN {test} THEN {sql_text(words)}" for test, words in tests)
        chosen = ", ".join(f"{values[role]} AS {role}" for role in ROLES)
        return f"SELECT *, CASE {reason} END AS reason FROM (SELECT *, {chosen} FROM ({scan}))"

    def _unusable(self, usable: str, group: _Group, places: Sequence[int]) -> list[Reject]:
        """Return the rows of a group without a usable value, per reason and file."""
        row = f"{{'row': row, 'raw': {group.raw(len(places))}}}"
        found = self.connection.execute(f"""
            SELECT reason, file, count(*), min({row}, {MAX_COMPARED}) FROM ({usable}) WHERE reason IS NOT NULL
            GROUP BY reason, file ORDER BY reason, file
        """)
        rejects = []
        for reason, file, n, rows in found.fetchall():
            known = [(each["row"], tuple(value or "" for value in each["raw"])) for each in rows]
            lines = ((number + 1, values) for number, values in known)
            if known[0][0] is None:  # text: the line is found by reading it again
                wanted = {values for _, values in known}
                lines = (each for each in group.records(file, places) if each[1] in wanted)
            path, some = group.original(file), islice(lines, MAX_EXAMPLES)
            examples = tuple(BadRow(path, line, _short(", ".join(values))) for line, values in some)
            rejects.append(Reject(reason, n, examples))
        return rejects

    def to_baskets(self) -> Baskets:
        """Return the baskets in the order of their identifiers. Items are in the order of their labels.

        Returns
        -------
        Baskets
        """
        with explained(self.source):
            self._number_baskets()
            self._check_weights()
            item = "CAST(item AS BIGINT)" if self.integer_items else "item"
            self.connection.execute(f"""
                CREATE OR REPLACE TEMP TABLE items AS SELECT item, {item} AS label,
                row_number() OVER (ORDER BY label) - 1 AS position FROM (SELECT DISTINCT item FROM {self.name})
            """)
            pairs = self.connection.execute(f"""
                SELECT number, position FROM {self.name} JOIN baskets USING (basket) JOIN items USING (item)
                ORDER BY 1, 2
            """).fetchnumpy()
            labels = self.connection.execute("SELECT label FROM items ORDER BY position").fetchall()
            columns = self.connection.execute("""
                SELECT basket, weight, make_timestamp(epoch_us(time)) AS time FROM baskets ORDER BY number
            """).fetchnumpy()
        used = self.columns.by_role
        return Baskets.from_pairs(
            np.asarray(pairs["number"]),
            np.asarray(pairs["position"]),
            len(columns["basket"]),
            Catalogue.of(label for (label,) in labels),
            np.asarray(columns["weight"]) if "weight" in used else None,
            np.asarray(columns["basket"]),
            np.asarray(columns["time"]).astype("datetime64[us]") if "time" in used else None,
        )

    def _number_baskets(self) -> int:
        """Create the table `baskets`, in the order of the identifiers. Return the number of baskets."""
        self.connection.execute(f"""
            CREATE OR REPLACE TEMP TABLE baskets AS SELECT basket, row_number() OVER (ORDER BY basket) - 1 AS number,
            min(weight) AS weight, max(weight) AS highest, max(time) AS time FROM {self.name} GROUP BY basket
        """)
        return int(self._one("SELECT count(*) FROM baskets"))

    def _check_weights(self) -> None:
        query = "SELECT basket, weight, highest FROM baskets WHERE weight <> highest ORDER BY number LIMIT 1"
        for basket, low, high in self.connection.execute(query).fetchall():
            raise InputError(
                f"basket {basket!r} of {self.source} has weights from {low:g} to {high:g} in column "
                f"{self.columns.weight!r}; the weight must be the same in all rows of a basket"
            )

    def unknown_items(self, catalogue: Catalogue) -> list[tuple[str, int]]:
        """Return the items that are not in a catalogue with the number of their rows, the most frequent first.

        Parameters
        ----------
        catalogue : Catalogue

        Returns
        -------
        list of (str, int)
        """
        self._register_labels(catalogue)
        query = f"SELECT item, count(*) FROM {self.name} ANTI JOIN labels USING (item) GROUP BY item ORDER BY 2 DESC, 1"
        return self.connection.execute(query).fetchall()

    def _register_labels(self, catalogue: Catalogue) -> None:
        labels = list(map(str, catalogue.labels))
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE labels AS SELECT unnest(?) AS item, unnest(?) AS position",
            [labels, list(range(len(labels)))],
        )

    def iter_baskets(self, catalogue: Catalogue, batch_size: int) -> Iterator[Baskets]:
        """Yield the baskets in the order of their identifiers, some at a time. Weights are not read.

        Parameters
        ----------
        catalogue : Catalogue
            Items that it does not have are left out. A basket without any other is empty.
        batch_size : int
            Baskets per batch.

        Yields
        ------
        Baskets
        """
        n_baskets = self._number_baskets()
        self._register_labels(catalogue)
        self.connection.execute(f"""
            CREATE OR REPLACE TABLE {self.name}_held AS SELECT DISTINCT number, position
            FROM {self.name} JOIN baskets USING (basket) JOIN labels USING (item) ORDER BY ALL
        """)
        for first in range(0, n_baskets, batch_size):
            n = min(batch_size, n_baskets - first)
            inside = f"number BETWEEN {first} AND {first + n - 1}"
            query = f"SELECT number, position FROM {self.name}_held WHERE {inside} ORDER BY ALL"
            pairs = self.connection.execute(query).fetchnumpy()
            ids = self.connection.execute(f"SELECT basket FROM baskets WHERE {inside} ORDER BY number").fetchnumpy()
            rows, positions = np.asarray(pairs["number"]) - first, np.asarray(pairs["position"])
            yield Baskets.from_pairs(rows, positions, n, catalogue, ids=np.asarray(ids["basket"]))


class Rows(NamedTuple):
    """All columns of a small table."""

    source: str
    names: list[str]
    rows: list[tuple[Any, ...]]
    texts: bool  # whether all values are texts, as in a CSV file


def read_rows(source: Any) -> Rows:
    """Read all columns of one file or of a table in memory."""
    import duckdb

    with duckdb.connect() as connection, TemporaryDirectory(prefix="dpplearn-") as folder:
        connection.execute("SET pandas_analyze_sample = 0; SET enable_progress_bar = false")
        (group, *others) = _groups(connection, source, Columns(), "auto", Path(folder))
        if others or len(group.paths) > 1:
            raise InputError(f"{source} matches several files; expected one table")
        name = group.paths[0]
        columns = range(len(group.names))
        with explained(name):
            found = connection.execute(group.scan(columns, 0)).fetchall()
            rejected = _summary(_rejected_lines(connection, group, 0))
        for bad in rejected:
            raise InputError(f"line {bad.examples[0].line} of {name} has {bad.reason}: {bad.examples[0].text!r}")
        rows = [row[: len(columns)] for row in found]
        return Rows(name, list(group.names), rows, group.format in ("csv", "json"))


def _text(column: str, kind: str) -> str:
    """Return SQL for a value as text without blanks around it; null if nothing is left."""
    if kind in FLOAT_TYPES:  # integers with gaps are floats in many tables
        whole = f"CASE WHEN {column} = trunc({column}) THEN CAST(CAST({column} AS HUGEINT) AS VARCHAR)"
        return f"{whole} WHEN isnan({column}) THEN NULL ELSE CAST({column} AS VARCHAR) END"
    if kind != "VARCHAR" and not kind.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)"
    text = column if kind == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    # Most texts begin and end with a visible character. That test is far cheaper than a search for blanks.
    visible = " AND ".join(f"{text}[{end}] BETWEEN '!' AND '~'" for end in (1, -1))
    stripped = f"nullif(regexp_replace({text}, '^{BLANK}+|{BLANK}+$', '', 'g'), '')"
    return f"CASE WHEN {visible} THEN {text} ELSE {stripped} END"


def _number(column: str, kind: str) -> str:
    known = kind in FLOAT_TYPES or kind in INTEGER_TYPES or kind.startswith("DECIMAL")
    return f"TRY_CAST({column if known else f'CAST({column} AS VARCHAR)'} AS DOUBLE)"


def _time(column: str, kind: str) -> str:
    number = _number(column, kind)
    seconds = f"CASE WHEN {number} >= {MIN_UNIX_MILLISECONDS} THEN {number} / 1e3 ELSE {number} END"
    unix = f"CASE WHEN {number} >= {MIN_UNIX_TIME} THEN to_timestamp({seconds}) END"
    if kind in FLOAT_TYPES or kind in INTEGER_TYPES or kind.startswith("DECIMAL"):
        return unix
    moment = f"TRY_CAST({column} AS TIMESTAMPTZ)"
    return moment if kind != "VARCHAR" else f"coalesce({moment}, {unix})"


_VALUES = {"weight": _number, "time": _time}


def all_plain(column: str, rows: str = "true") -> str:
    """Return SQL for whether all values of a column, in some rows, are plain integers of 64 bits."""
    text = f"CAST({column} AS VARCHAR)"
    plain = f"coalesce(CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) = {text}, false)"
    return f"coalesce(bool_and({plain}) FILTER ({rows}), false)"


# Which files there are, and their columns.


def _groups(connection: DuckDBPyConnection, source: Any, columns: Columns, format: str, folder: Path) -> list[_Group]:
    """Return the source as groups of files that are read together. Copies of text files are made in `folder`."""
    if not isinstance(source, str | os.PathLike | list | tuple):
        return [_frame(connection, source)]
    paths = find_files(source)
    formats = [format_of(path, format) for path in paths]
    if "lines" in formats:
        if set(formats) != {"lines"}:
            raise InputError(f"{paths[formats.index('lines')]} has one basket per line; read tables separately")
        lists = read_lines(paths)
        sizes = list(map(len, lists))
        items = np.array([item for each in lists for item in each], dtype=object)
        return [_frame(connection, {"basket": np.repeat(np.arange(len(lists)), sizes), "item": items})]
    alike: dict[tuple[str, tuple[str, ...], str], list[tuple[str, str]]] = {}
    for number, (path, each) in enumerate(zip(paths, formats, strict=True)):
        names, delimiter = _names(connection, path, each, columns)
        file = path if each == "parquet" else with_one_line_end(path, delimiter, folder / f"{number}.txt")
        if each == "json":
            names = _json_names(connection, file, path)
        alike.setdefault((each, names, delimiter), []).append((path, file))
    return [_Group(*head, *map(tuple, zip(*some, strict=True))) for head, some in alike.items()]


def _frame(connection: DuckDBPyConnection, table: Any) -> _Group:
    import duckdb

    try:
        connection.register("registered", table)
        seen = connection.sql("SELECT * FROM registered").columns
    except (duckdb.Error, TypeError, RuntimeError):
        kind = f"{type(table).__module__}.{type(table).__name__}"
        raise InputError(f"got a {kind}; expected a path, a pandas or polars DataFrame or an Arrow table") from None
    # duckdb renames columns whose names repeat or differ only in case.
    own = getattr(table, "column_names", getattr(table, "columns", seen))
    return _Group("frame", tuple(map(str, own)) if len(own) == len(seen) else tuple(seen))


def _names(connection: DuckDBPyConnection, path: str, format: str, columns: Columns) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns of a file, and for CSV the delimiter."""
    if format == "parquet":
        with explained(path):
            return parquet_names(connection, path), ""
    if format == "json":
        return (), ""
    with open_text(path, errors="surrogateescape") as file:
        header = file.readline().rstrip("\n")
    if any("\ud800" <= letter <= "\udfff" for letter in header):
        raise InputError(f"{path} is not UTF-8 text; convert it first")
    if not header.strip():
        raise InputError(f"{path} is empty, or its first line is; expected a header with the names of the columns")
    readings = [(tuple(csv_fields(path, 1, header, delimiter)), delimiter) for delimiter in DELIMITERS]
    complete = [each for each in readings if columns.resolve(each[0]).are_in(each[0])]
    return complete[0] if complete else max(readings, key=lambda reading: len(reading[0]))


def parquet_names(connection: DuckDBPyConnection, path: str) -> tuple[str, ...]:
    """Return the names of the top-level columns of a Parquet file."""
    query = f"SELECT name, num_children FROM parquet_schema({sql_files([path])})"
    names, within = [], 0  # the schema lists the root first, and after every node all that is within it
    for name, n_children in connection.execute(query).fetchall()[1:]:
        if not within:
            names.append(name)
        within = max(within - 1, 0) + (n_children or 0)
    return tuple(names)


def _json_names(connection: DuckDBPyConnection, file: str, path: str) -> tuple[str, ...]:
    """Return the keys of all objects of a JSON lines file: an object need not have all of them."""
    lines = f"header = false, delim = {sql_text(NOT_IN_JSON)}, quote = '', escape = '', auto_detect = false"
    lines = f"read_csv({sql_files([file])}, {lines}, columns = {{'line': 'VARCHAR'}}, ignore_errors = true)"
    keys = f"SELECT unnest(json_keys(line)) AS key FROM {lines} WHERE json_valid(line)"
    with explained(path):
        found = connection.execute(f"SELECT DISTINCT key FROM ({keys}) ORDER BY key").fetchall()
    if not found:
        raise InputError(f"{path} has no JSON object; expected one per line")
    return tuple(key for (key,) in found)


def _usual_name(role: str, names: Sequence[str]) -> str | None:
    plain = {"".join(filter(str.isalnum, name.lower())): name.strip() for name in reversed(names)}
    exact = next((name.strip() for name in names if name.strip() == role), None)
    return exact or next((plain[usual] for usual in USUAL_NAMES[role] if usual in plain), None)


def _warn_of_guesses(given: Columns, found: Columns, source: str) -> None:
    guessed = {role: getattr(found, role) for role in USUAL_NAMES if getattr(given, role) is None}
    guessed = {role: name for role, name in guessed.items() if name not in (None, role)}
    if guessed:
        what = listed([f"{role} is column {name!r}" for role, name in guessed.items()])
        options = f"{listed([f'{role}=' for role in guessed])} (--columns)"
        warnings.warn(
            f"guessed from the names in {source}: {what}; name another with {options}", InputWarning, stacklevel=4
        )


# Rows that are not rows at all.


def _rejected_lines(connection: DuckDBPyConnection, group: _Group, number: int) -> Iterator[Reject]:
    """Yield the lines that duckdb could not split into columns, in order, and drop its tables of them."""
    if group.format not in ("csv", "json"):
        return
    # A line may have several errors. It is one bad row, for the first of them.
    found = connection.execute(f"""
        SELECT file_path, line_byte_position, arg_min(error_type, coalesce(column_idx, 0)), any_value(csv_line)
        FROM rejects_{number} JOIN (SELECT DISTINCT scan_id, file_id, file_path FROM scans_{number})
        USING (scan_id, file_id) GROUP BY ALL ORDER BY ALL
    """).fetchall()
    connection.execute(f"DROP TABLE rejects_{number}; DROP TABLE scans_{number}")
    shown: dict[str, int] = {}
    for file, byte, kind, text in found:
        path, reason = group.original(file), REASONS.get(kind, kind.lower())
        shown[reason] = shown.get(reason, 0) + 1
        unclosed = kind == "UNQUOTED VALUE" and "\n" in text.strip()
        if not unclosed and shown[reason] > MAX_EXAMPLES:
            yield Reject(reason, 1, ())
            continue
        blank = len(text) - len(text.lstrip("\r\n"))  # blank lines that duckdb counts to the row after them
        line = _line_at(file, byte) + blank
        if unclosed:  # a quote that is not closed swallows the rest of the file
            raise InputError(f"a quote is not closed from line {line} of {path} on: {_short(text)!r}")
        yield Reject(reason, 1, (BadRow(path, line, _short(text.strip())),))


def _line_at(path: str, byte: int) -> int:
    """Return the number of the line that holds a byte."""
    line = 1
    for chunk in chunks_of(path):
        before = chunk[: max(byte, 0)]
        line += before.count(b"\n") or before.count(b"\r")
        byte -= len(chunk)
        if byte <= 0:
            break
    return line


def _summary(rejects: Sequence[Reject] | Iterator[Reject]) -> list[Reject]:
    """Add up rejects per reason, in the order of the first example, and keep the first examples."""
    found: dict[str, Reject] = {}
    for each in rejects:
        before = found.get(each.reason, Reject(each.reason, 0, ()))
        examples = (*before.examples, *each.examples)[:MAX_EXAMPLES]
        found[each.reason] = Reject(each.reason, before.count + each.count, examples)
    return list(found.values())


def _short(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE else text[:MAX_EXAMPLE] + " ..."


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(_short(name)) for name in names[:50])


# SQL.


@contextmanager
def within_limits(what: str) -> Iterator[None]:
    """Raise errors of duckdb about memory and disks as an `InputError`, and its answer to Ctrl-C as such."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError(f"{what} needs more memory or disk ({error})") from None
    except (duckdb.Error, RuntimeError) as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        if isinstance(error, duckdb.IOException | duckdb.TransactionException) and "write" in str(error):
            raise InputError(f"{what}: the disk cannot be written: {error}") from None
        raise


@contextmanager
def explained(source: str) -> Iterator[None]:
    """Raise errors of duckdb about data as an `InputError`."""
    import duckdb

    try:
        with within_limits(source):
            yield
    except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:  # the last two: names that are not UTF-8
        message = str(error).split("\nPossible")[0].split("\nLINE 1:")[0].strip()
        if len(message) > MAX_MESSAGE:
            message = message[:MAX_MESSAGE] + " ..."
        raise InputError(f"{source} cannot be read; is it complete and of the format of its name? {message}") from None


def source_name(paths: Sequence[str]) -> str:
    """Return what messages call one or several files."""
    return paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"


def sql_files(paths: Sequence[str]) -> str:
    """Return files as an SQL literal. duckdb would match their names as patterns and expand a leading ~."""
    return "[" + ", ".join(sql_text(glob.escape(os.path.abspath(path))) for path in paths) + "]"


def sql_text(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
