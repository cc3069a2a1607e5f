"""Small tables from memory or a file, with one row per item, or per candidate of a slate, and any columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpplearn.data.catalogue import Label, as_label
from dpplearn.data.transactions import read_rows
from dpplearn.data.validate import is_null
from dpplearn.errors import InputError
from dpplearn.utils.text import contents, count

ITEM = "item"  # the column of labels, unless there is none of that name: then the first
SHOWN = 3  # examples


@dataclass(frozen=True, eq=False)
class Table:
    """Columns with one value per row. None is a missing value. Texts have no blanks around them."""

    source: str  # what to call it in messages
    columns: dict[str, list[Any]]
    texts: bool  # whether all values are texts, as in a CSV file


def read_table(table: Any) -> Table:
    """Read a pandas or polars DataFrame, an Arrow table, a dict of columns, or a CSV or Parquet file."""
    if isinstance(table, Mapping):
        source, names, columns, texts = "the table", list(map(str, table)), list(map(_as_list, table.values())), False
        if len(set(map(len, columns))) > 1:
            lengths = dict(zip(names, map(len, columns), strict=True))
            raise InputError(f"the columns have lengths {lengths}; expected one value per row in each")
    else:
        source, names, rows, texts = read_rows(table)
        columns = [[row[place] for row in rows] for place in range(len(names))]
    names = [name.strip() for name in names]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{source} has {names.count(repeated)} columns called {repeated!r}; rename all but one")
    if not columns or not columns[0]:
        raise InputError(f"{source} has no rows; expected at least one")
    return Table(source, {name: list(map(_value, each)) for name, each in zip(names, columns, strict=True)}, texts)


def _as_list(values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"a column of the table is {values!r}; expected a list with one value per row")
    return list(values)


def _value(value: Any) -> Any:
    """Return a value without surrounding blanks, or None if it is missing."""
    if isinstance(value, str):
        return value.strip() or None
    return None if is_null(value) else value


@dataclass(frozen=True, eq=False)
class ItemTable(Table):
    """A table with one row per item. The column of the labels is not among the columns."""

    labels: tuple[Label, ...]

    def rows_of(self, labels: Sequence[Label]) -> list[int]:
        """Return the row of each label. Every label must have one."""
        place = {str(label): row for row, label in enumerate(self.labels)}
        missing = [label for label in labels if str(label) not in place]
        if missing:
            raise InputError(
                f"{self.source} has no row for {count(len(missing), 'item')} of {len(labels)} (for instance "
                f"{contents(missing[:SHOWN])}), and rows such as {contents(self.labels[:SHOWN])}; add rows for them, "
                "with empty values where nothing is known, or name the column of the items with item= (--item)"
            )
        return [place[str(label)] for label in labels]


def read_item_table(table: Any, item: str | None = None) -> ItemTable:
    """Read a table with one row per item.

    The labels are in the column `item`; by default in that called "item", or else in the first.
    """
    read = read_table(table)
    source, columns = read.source, dict(read.columns)
    column = item.strip() if item is not None else ITEM if ITEM in columns else next(iter(columns))
    if column not in columns:
        names = ", ".join(map(repr, columns))
        raise InputError(
            f"{source} has the columns {names}, but not {item!r}; name that of the items with item= (--item)"
        )
    values = columns.pop(column)
    if None in values:
        raise InputError(f"column {column!r} of {source} is null in row {values.index(None) + 1}; expected an item")
    labels = tuple(map(as_label, values))
    label, times = Counter(map(str, labels)).most_common(1)[0]
    if times > 1:
        raise InputError(f"{source} has {times} rows for item {label!r}; expected one row per item")
    return ItemTable(source, columns, read.texts, labels)
