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
import gzip
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.files import (
    CHUNK_CHARACTERS,
    DELIMITERS,
    csv_fields,
    find_files,
    format_of,
    open_text,
    read_lines,
    with_one_line_end,
)
from dpplearn.data.times import MIN_UNIX_MILLISECONDS, MIN_UNIX_TIME
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import contents, count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Usual names of columns, in lower case and without punctuation. The first that a table has is used.
USUAL_NAMES = {
    "basket": "basket basketid order orderid orderno ordernumber invoice invoiceid invoiceno transaction transactionid "
    "receipt receiptid cart cartid session sessionid registry registryid playlist playlistid user userid".split(),
    "item": "item itemid itemname sku product productid productname stockcode article articleid track trackid "
    "movieid".split(),
}
ROLES = ("basket", "item", "category", "weight", "time")
INTEGER_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
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
MAX_NAMES = 50  # columns listed in a message
NOT_IN_JSON = "\x01"
# Options of read_csv. duckdb never guesses anything: its guesses change quotes, comments and delimiters of valid files.
TEXT = (
    f"auto_detect = false, comment = '', filename = true, hive_partitioning = false, max_line_size = {MAX_LINE_BYTES}"
)


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
        """The name of the column of each role, for the roles that have one."""
        return {role: name.strip() for role in ROLES if (name := getattr(self, role)) is not None}

    def resolve(self, names: Iterable[str]) -> Columns:
        """Return the columns with names from a table in place of None and "auto"."""
        there = [name.strip() for name in names]
        plain = {"".join(filter(str.isalnum, name.lower())): name for name in reversed(there)}
        plain |= {name: name for name in there}  # a name as it stands comes first
        found = {
            role: getattr(self, role) or next((plain[usual] for usual in usual_names if usual in plain), None)
            for role, usual_names in USUAL_NAMES.items()
        }
        category = self.category
        if category == "auto":
            category = "category" if "category" in there else None
        return replace(self, **found, category=category)

    def are_in(self, names: Iterable[str]) -> bool:
        """Return whether a table has all columns, and those of baskets and items are known."""
        return {*USUAL_NAMES} <= {*self.by_role} and {*self.by_role.values()} <= {name.strip() for name in names}

    def places(self, names: Sequence[str], source: str) -> list[int]:
        """Return the positions of the columns in a table. Blanks around names are ignored."""
        there, found = [name.strip() for name in names], []
        for role, column in {**dict.fromkeys(USUAL_NAMES), **self.by_role}.items():
            n = there.count(column) if column is not None else 0
            if n != 1:
                called = f"called {column!r}" if column is not None else "of a usual name"
                raise InputError(
                    f"{source} has {n} columns {called} for the {role}, expected one; it has "
                    f"{contents(map(_short, names[:MAX_NAMES]))}. {ADVICE}"
                )
            found.append(there.index(str(column)))
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
    delimiter: str
    paths: Mapping[str, str]  # by the absolute path of the file, or its copy, to read; "" is a table in memory
    places: Sequence[int] = ()  # of the columns to read

    @property
    def source(self) -> str:
        """The name of the group in messages: that of its first file."""
        return next(iter(self.paths.values()))

    def scan(self) -> str:
        """Return a query for the columns as c0, c1, ..., with file, row, and the text of the row as a list."""
        text = f"[{', '.join(f'CAST(c{number} AS VARCHAR)' for number in range(len(self.places)))}]"
        values = [f"n{place}" for place in self.places]
        names = ", ".join(f"n{place}" for place in range(len(self.names)))
        extra = "filename AS file, NULL AS row"
        if self.format == "frame":
            table = f"(SELECT *, row_number() OVER () FROM registered) AS t({names}, row)"
            extra = "'' AS file, row"
        elif self.format == "parquet":
            options = "union_by_name = true, hive_partitioning = false"
            table = f"read_parquet({sql_files(self.paths)}, {options}) AS t({names})"
            extra = "filename AS file, file_row_number + 1 AS row"
        elif self.format == "json":
            valid = "CASE WHEN json_valid(line) THEN line END AS json"
            table = f"(SELECT *, {valid} FROM {_read_lines(self.paths, 'store_rejects = true')} WHERE trim(line) <> '')"
            values = [_json_value(self.names[place]) for place in self.places]
            text = "[trim(line)]"
        else:
            columns = ", ".join(f"'n{place}': 'VARCHAR'" for place in range(len(self.names)))
            dialect = f"header = true, delim = {sql_text(self.delimiter)}, quote = '\"', escape = '\"', nullstr = ''"
            options = f"columns = {{{columns}}}, {TEXT}, store_rejects = true"
            table = f"read_csv({sql_files(self.paths)}, {dialect}, {options})"
        chosen = ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))
        return f"SELECT {chosen}, {extra}, {text} AS text FROM {table}"

    def examples(self, file: str, rows: Sequence[Any]) -> Iterator[BadRow]:
        """Yield rows of a file as examples. Rows of text have no number: they are looked for in the file."""
        found: Iterable[Any] = [(each["row"], tuple((value or "").strip() for value in each["text"])) for each in rows]
        if rows[0]["row"] is None:
            wanted = {text for _, text in found}
            found = (each for each in self._records(file) if each[1] in wanted)
        for line, text in found:
            yield BadRow(self.paths[file], line, _short(", ".join(text)))

    def _records(self, file: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the values of each row of a text file as texts, with the line on which it begins."""
        with open_text(file, newline="" if self.delimiter else None, errors="replace") as lines:
            if self.format == "json":
                yield from ((number, (line.strip(),)) for number, line in enumerate(lines, start=1))
                return
            rows, begins = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True), 1
            for fields in rows:
                if len(fields) == len(self.names):
                    yield begins, tuple(fields[place].strip() for place in self.places)
                begins = rows.line_num + 1


def _read_lines(files: Iterable[str], errors: str) -> str:
    """Return SQL for the lines of JSON files. The delimiter is not in JSON, so every line is one column."""
    dialect = f"header = false, delim = {sql_text(NOT_IN_JSON)}, quote = '', escape = ''"
    return f"read_csv({sql_files(files)}, {dialect}, columns = {{'line': 'VARCHAR'}}, {TEXT}, {errors})"


def _json_value(name: str) -> str:
    """Return SQL for a value of the object `json`; null if it is an object or an array."""
    pointer = sql_text("/" + name.replace("~", "~0").replace("/", "~1"))
    single = f"json_type(json, {pointer}) NOT IN ('ARRAY', 'OBJECT')"
    return f"CASE WHEN {single} THEN json_extract_string(json, {pointer}) END"


class Transactions:
    """Rows of (basket, item, category, weight, time) in the duckdb table `transactions`.

    Made by `Transactions.open`. `rejects` lists the rows that cannot be used.

    Examples
    --------
    >>> import pandas
    >>> orders = pandas.DataFrame({"order_id": [7, 7, 3], "sku": ["crib", "bib", "bib"]})
    >>> transactions = Transactions.open(orders, Columns("order_id", "sku"))
    >>> transactions.n_rows, list(transactions.to_baskets())
    (3, [('bib',), ('bib', 'crib')])
    """

    def __init__(self, connection: DuckDBPyConnection, source: str, columns: Columns, name: str) -> None:
        self.connection, self.source, self.columns, self.name = connection, source, columns, name
        self.rejects: list[Reject] = []
        self.integer_items = False  # whether items are integers and not names
        self.n_rows = 0  # rows that can be used

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

        connection = connection or duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'; SET pandas_analyze_sample = 0; SET enable_progress_bar = false")
        with TemporaryDirectory(prefix="dpplearn-") as folder:
            groups = _groups(connection, source, columns, format, Path(folder))
            label = source_name([path for group in groups for path in group.paths.values()])
            found = columns.resolve([name for group in groups for name in group.names])
            guessed = {*found.by_role.items()} - {*columns.by_role.items()} - {(role, role) for role in ROLES}
            if guessed:
                which = ", ".join(f"{role}={column}" for role, column in sorted(guessed))
                message = f"guessed the columns of {label}: {which}; name others with basket=, item= (--columns)"
                warnings.warn(message, InputWarning, stacklevel=3)
            groups = [replace(group, places=found.places(group.names, group.source)) for group in groups]
            opened = cls(connection, label, found, name)
            try:
                with explained(label):
                    opened._load(groups)
            except InputError:
                opened._refuse_damaged(groups)
                raise
        if on_bad_rows == "raise" or not opened.n_rows:
            opened.refuse_bad_rows()
        return opened

    @property
    def n_rejected(self) -> int:
        """The number of rows that cannot be used."""
        return sum(each.count for each in self.rejects)

    def refuse_bad_rows(self) -> None:
        """Raise an error if some rows cannot be used, or if there are none."""
        for first in self.rejects[:1]:
            place = "".join(f", first in line {row.line} of {row.file} ({row.text!r})" for row in first.examples[:1])
            raise InputError(
                f"{self.n_rejected:,} of {count(self.n_rows + self.n_rejected, 'row')} cannot be used: {first.reason}"
                f"{place}; fix the rows, or leave them out with on_bad_rows='skip'"
            )
        if not self.n_rows:
            raise InputError(f"{self.source} has no rows; expected one row per item of a basket")

    def _load(self, groups: Sequence[_Group]) -> None:
        """Create the table of all rows, and a view of those that can be used."""
        run, rows = self.connection.execute, f"{self.name}_rows"
        # Parquet files are read several times: that takes a fifth of the time of a copy of their texts.
        self._kind = "VIEW" if all(group.format == "parquet" for group in groups) else "TABLE"
        scans = [group.scan() for group in groups]
        types = [list(map(str, self.connection.sql(f"{scan} LIMIT 0").types)) for scan in scans]
        run(f"CREATE {self._kind} {rows} AS {' UNION ALL '.join(map(self._usable, scans, types))}").fetchall()
        is_text = self.connection.sql(f"SELECT basket FROM {rows}").types[0] == "VARCHAR"
        good = "reason IS NULL"
        checks = all_plain("basket", good) if is_text else "false", all_plain("item", good)
        query = f"SELECT count(*) FILTER ({good}), {', '.join(checks)} FROM {rows}"
        self.n_rows, plain_baskets, plain_items = run(query).fetchall()[0]
        self.rejects = _rejected_lines(self.connection, groups) + self._unusable(groups)
        # Text in Parquet files and data frames is text: only files without types leave open what digits mean.
        untyped = all(
            group.format in ("csv", "json") or kind in INTEGER_TYPES | WIDE_TYPES
            for group, (_, kind, *_) in zip(groups, types, strict=True)
        )
        self.integer_items = untyped and plain_items
        basket = "CAST(basket AS BIGINT)" if plain_baskets else "basket"
        run(
            f"CREATE VIEW {self.name} AS SELECT {basket} AS basket, item, category, weight, time "
            f"FROM {rows} WHERE reason IS NULL"
        )

    def _refuse_damaged(self, groups: Sequence[_Group]) -> None:
        """Raise the error of the first Parquet file that cannot be read, which duckdb does not always name."""
        for group in [each for each in groups if each.format == "parquet"]:
            for file, path in group.paths.items():
                with explained(path):
                    scan = replace(group, paths={file: path}).scan()
                    self.connection.execute(f"SELECT max(text) FROM ({scan})").fetchall()

    def drop(self) -> None:
        """Remove the tables."""
        self.connection.execute(f"DROP VIEW {self.name}; DROP {self._kind} {self.name}_rows")

    def _usable(self, scan: str, types: Sequence[str]) -> str:
        """Return a query for the values by role, and for rows that cannot be used the reason and the place."""
        values = {"category": sql_text(ONE_CATEGORY), "weight": "NULL::DOUBLE", "time": "NULL::TIMESTAMPTZ"}
        reasons = []
        for number, (role, column) in enumerate(self.columns.by_role.items()):
            values[role] = _VALUES[role](f"c{number}", types[number])
            reason = sql_text(f"no usable value in column {column!r}")
            reasons.append(f"WHEN NOT coalesce({_TESTS.get(role, role + ' IS NOT NULL')}, false) THEN {reason}")
        chosen = ", ".join(f"{values[role]} AS {role}" for role in ROLES)
        place = "CASE WHEN reason IS NOT NULL THEN {'file': file, 'row': row, 'text': text} END AS place"
        return f"""
            SELECT {", ".join(ROLES)}, CASE {" ".join(reasons)} END AS reason, {place}
            FROM (SELECT file, row, text, {chosen} FROM ({scan}))
        """

    def _unusable(self, groups: Sequence[_Group]) -> list[Reject]:
        """Return the rows without a usable value, per reason."""
        found = self.connection.execute(f"""
            SELECT reason, count(*), min(place, {MAX_COMPARED}) FROM {self.name}_rows WHERE reason IS NOT NULL
            GROUP BY reason ORDER BY reason
        """)
        group_of = {file: group for group in groups for file in group.paths}
        rejects = []
        for reason, n, rows in found.fetchall():
            examples: list[BadRow] = []
            for file, some in groupby(rows, key=itemgetter("file")):
                examples += islice(group_of[file].examples(file, list(some)), MAX_EXAMPLES - len(examples))
            rejects.append(Reject(reason, n, tuple(examples)))
        return rejects

    def to_baskets(self) -> Baskets:
        """Return the baskets in the order of their identifiers. Items are in the order of their labels.

        Returns
        -------
        Baskets
        """
        run, used = self.connection.execute, self.columns.by_role
        with explained(self.source):
            n_baskets = self._number_baskets()
            query = "SELECT basket, weight, highest FROM baskets WHERE weight <> highest ORDER BY number LIMIT 1"
            for basket, low, high in run(query).fetchall():
                raise InputError(
                    f"basket {basket!r} of {self.source} has weights from {low:g} to {high:g} in column "
                    f"{used['weight']!r}; the weight must be the same in all rows of a basket"
                )
            label = "CAST(item AS BIGINT)" if self.integer_items else "item"
            labels = run(f"SELECT DISTINCT {label} AS label FROM {self.name} ORDER BY label").fetchall()
            catalogue = Catalogue.of(label for (label,) in labels)
            self._register_labels(catalogue)
            pairs = f"{self.name} JOIN baskets USING (basket) JOIN labels USING (item)"
            return self._of_numbers(pairs, 0, n_baskets, catalogue)

    def _of_numbers(self, pairs: str, first: int, n: int, catalogue: Catalogue) -> Baskets:
        """Return n baskets from a number on; `pairs` is SQL for a table of numbers and positions of items."""
        inside = f"number BETWEEN {first} AND {first + n - 1}"
        query = f"SELECT number - {first} AS number, position FROM {pairs} WHERE {inside} ORDER BY ALL"
        found = self.connection.execute(query).fetchnumpy()
        query = (
            f"SELECT basket, weight, make_timestamp(epoch_us(time)) AS time FROM baskets WHERE {inside} ORDER BY number"
        )
        columns, used = self.connection.execute(query).fetchnumpy(), self.columns.by_role
        return Baskets.from_pairs(
            np.asarray(found["number"]),
            np.asarray(found["position"]),
            n,
            catalogue,
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
        return int(self.connection.execute("SELECT count(*) FROM baskets").fetchall()[0][0])

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
        labels = np.array(list(map(str, catalogue.labels)), dtype=object)
        self.connection.register("labels", {"item": labels, "position": np.arange(len(labels))})

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
            yield self._of_numbers(f"{self.name}_held", first, min(batch_size, n_baskets - first), catalogue)


def read_rows(source: Any) -> tuple[str, list[str], list[tuple[Any, ...]], bool]:
    """Read one file or a table in memory.

    Return what to call it, the names of its columns, its rows, and whether all values are texts, as in a CSV file.
    """
    import duckdb

    with duckdb.connect() as connection, TemporaryDirectory(prefix="dpplearn-") as folder:
        connection.execute("SET pandas_analyze_sample = 0; SET enable_progress_bar = false")
        (group, *others) = _groups(connection, source, Columns(), "auto", Path(folder))
        if others or len(group.paths) > 1:
            raise InputError(f"{source} matches several files; expected one table")
        n_columns = len(group.names)
        with explained(group.source):
            found = connection.execute(replace(group, places=range(n_columns)).scan()).fetchall()
            rejects = _rejected_lines(connection, [group])
        if rejects:
            line, text = rejects[0].examples[0][1:]
            raise InputError(f"line {line} of {group.source} has {rejects[0].reason}: {text!r}")
        rows = [row[:n_columns] for row in found]
        return group.source, list(group.names), rows, group.format in ("csv", "json")


def _text(column: str, kind: str) -> str:
    """Return SQL for a value as text without blanks around it; null if nothing is left, or if it is not one value."""
    if kind.endswith("]") or kind.startswith(NESTED_TYPES):
        return "NULL"
    if kind in FLOAT_TYPES:  # integers with gaps are floats in many tables
        return f"CASE WHEN {column} = trunc({column}) THEN CAST(TRY_CAST({column} AS HUGEINT) AS VARCHAR) END"
    text = column if kind == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    # Most texts begin and end with a visible character. That test is far cheaper than a search for blanks.
    visible = " AND ".join(f"{text}[{end}] BETWEEN '!' AND '~'" for end in (1, -1))
    stripped = f"nullif(regexp_replace({text}, '^{BLANK}+|{BLANK}+$', '', 'g'), '')"
    return f"CASE WHEN {visible} THEN {text} ELSE {stripped} END"


def _identifier(column: str, kind: str) -> str:
    """Return SQL for the identifier of a basket: an integer where the column has integers."""
    return f"CAST({column} AS BIGINT)" if kind in INTEGER_TYPES else _text(column, kind)


def _number(column: str, kind: str) -> str:
    return f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"


def _time(column: str, kind: str) -> str:
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"CAST({column} AS TIMESTAMPTZ)"
    number = _number(column, kind)
    seconds = f"CASE WHEN {number} >= {MIN_UNIX_MILLISECONDS} THEN {number} / 1e3 ELSE {number} END"
    unix = f"CASE WHEN {number} >= {MIN_UNIX_TIME} THEN to_timestamp({seconds}) END"
    return f"coalesce(TRY_CAST(CAST({column} AS VARCHAR) AS TIMESTAMPTZ), {unix})"


_VALUES = {"basket": _identifier, "item": _text, "category": _text, "weight": _number, "time": _time}
_TESTS = {"weight": "weight >= 0 AND isfinite(weight)", "time": "isfinite(time)"}  # of other values: not null


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
    alike: dict[tuple[str, tuple[str, ...], str], dict[str, str]] = {}
    for number, (path, each) in enumerate(zip(paths, formats, strict=True)):
        file = path if each == "parquet" else with_one_line_end(path, folder / f"{number}.txt")
        with explained(path):
            names, delimiter = _names(connection, file, path, each, columns)
        alike.setdefault((each, names, delimiter), {})[os.path.abspath(file)] = path
    return [_Group(*head, some) for head, some in alike.items()]


def _frame(connection: DuckDBPyConnection, table: Any) -> _Group:
    import duckdb

    try:
        connection.register("registered", table)
        seen = connection.sql("SELECT * FROM registered").columns
    except (duckdb.Error, TypeError, RuntimeError):
        kind = type(table).__name__
        raise InputError(f"got a {kind}; expected a path, a pandas or polars DataFrame or an Arrow table") from None
    # duckdb renames columns whose names repeat or differ only in case.
    own = getattr(table, "column_names", getattr(table, "columns", seen))
    return _Group("frame", tuple(map(str, own if len(own) == len(seen) else seen)), "", {"": "the table"})


def _names(
    connection: DuckDBPyConnection, file: str, path: str, format: str, columns: Columns
) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns of a file, and for CSV the delimiter."""
    if format == "parquet":
        return parquet_names(connection, path), ""
    if format == "json":  # an object need not have all keys
        lines = f"{_read_lines([file], 'ignore_errors = true')} WHERE json_valid(line)"
        keys = f"SELECT unnest(json_keys(line)) AS key FROM {lines}"
        found = connection.execute(f"SELECT DISTINCT key FROM ({keys}) ORDER BY key").fetchall()
        if not found:
            raise InputError(f"{path} has no JSON object; expected one per line")
        return tuple(key for (key,) in found), ""
    with open_text(path, errors="replace") as text:
        header = text.readline().rstrip("\n")
    if not header.strip() or "\ufffd" in header:
        raise InputError(f"{path} does not begin with a line of column names in UTF-8")
    readings = [(tuple(csv_fields(path, 1, header, delimiter)), delimiter) for delimiter in DELIMITERS]
    return max(readings, key=lambda reading: (columns.resolve(reading[0]).are_in(reading[0]), len(reading[0])))


def parquet_names(connection: DuckDBPyConnection, path: str) -> tuple[str, ...]:
    """Return the names of the top-level columns of a Parquet file."""
    query = f"SELECT name, num_children FROM parquet_schema({sql_files([path])})"
    names, within = [], 0  # the schema lists the root first, and after every node all that is within it
    for name, n_children in connection.execute(query).fetchall()[1:]:
        if not within:
            names.append(name)
        within = max(within - 1, 0) + (n_children or 0)
    return tuple(names)


# Rows that are not rows at all.


def _rejected_lines(connection: DuckDBPyConnection, groups: Sequence[_Group]) -> list[Reject]:
    """Return the lines that duckdb could not split into columns, per reason, and drop its tables of them."""
    if not any(group.format in ("csv", "json") for group in groups):
        return []
    # A line may have several errors. It is one bad row, for the first of them.
    found = connection.execute(f"""
        SELECT kind, count(*), min({{'closed': closed, 'file': file, 'byte': byte, 'text': text}}, {MAX_EXAMPLES})
        FROM (SELECT file_path AS file, line_byte_position AS byte, any_value(csv_line) AS text,
                     arg_min(error_type, coalesce(column_idx, 0)) AS kind,
                     NOT (kind = 'UNQUOTED VALUE' AND regexp_matches(text, '\\S[\r\n]+\\S')) AS closed
              FROM reject_errors JOIN (SELECT DISTINCT scan_id, file_id, file_path FROM reject_scans)
              USING (scan_id, file_id) GROUP BY scan_id, file_id, file_path, line_byte_position)
        GROUP BY kind ORDER BY 3
    """).fetchall()
    connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    known = {file: path for group in groups for file, path in group.paths.items()}
    rejects = []
    for kind, n, lines in found:
        examples = []
        for each in lines:
            begins = len(each["text"]) - len(each["text"].lstrip("\r\n"))  # duckdb counts blank lines to the next row
            line = _line_at(each["file"], each["byte"] - 1 + begins)
            examples.append(BadRow(known[os.path.abspath(each["file"])], line, _short(each["text"].strip())))
        if not lines[0]["closed"]:  # the quote swallows the rest of the file
            raise InputError(f"a quote is not closed from line {examples[0].line} of {examples[0].file} on")
        rejects.append(Reject(kind.lower(), n, tuple(examples)))
    return rejects


def _line_at(path: str, byte: int) -> int:
    """Return the number of the line that a byte position is on."""
    line = 1
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        while byte > 0 and (chunk := file.read(min(byte, CHUNK_CHARACTERS))):
            line += chunk.count(b"\n") or chunk.count(b"\r")
            byte -= len(chunk)
    return line


def _short(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE else text[:MAX_EXAMPLE] + " ..."


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
        message = str(error).split("\nPossible")[0].split("\nLINE 1:")[0].strip()[:MAX_MESSAGE]
        raise InputError(f"{source} cannot be read; is it complete and of the format of its name? {message}") from None


def source_name(paths: Sequence[str]) -> str:
    """Return what messages call one or several files."""
    return paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"


def sql_files(paths: Iterable[str]) -> str:
    """Return files as an SQL literal. duckdb would match their names as patterns and expand a leading ~."""
    return "[" + ", ".join(sql_text(glob.escape(os.path.abspath(path))) for path in paths) + "]"


def sql_text(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
