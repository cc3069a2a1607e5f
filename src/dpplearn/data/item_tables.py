"""Small tables from memory or a file, with one row per item, or per candidate of a slate, and any columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.transactions import read_rows
from dpplearn.data.validate import is_null
from dpplearn.errors import InputError
from dpplearn.utils.text import contents, count

ITEM = "item"  # the column of labels, unless there is none of that name: then the first
SHOWN = 3  # examples
MISSING_TEXTS = {"na", "n/a", "nan", "null", "none"}  # what stands for a missing value in files of text


@dataclass(frozen=True, eq=False)
class Table:
    """Columns with one value per row. None is a missing value. Texts have no blanks around them."""

    source: str  # its name in messages
    columns: dict[str, list[Any]]
    texts: bool  # whether all values are texts, as in a CSV file


def read_table(table: Any) -> Table:
    """Read a pandas or polars DataFrame, an Arrow table, a dict of columns, or a CSV or Parquet file."""
    if isinstance(table, Mapping):
        source, names, texts = "the table", list(map(str, table)), False
        if any(isinstance(each, str) or not isinstance(each, Iterable) for each in table.values()):
            raise InputError("a column of the table is not a list; expected a list of one value per row in each")
        columns = [list(each) for each in table.values()]
    else:
        source, names, rows, texts = read_rows(table)
        columns = [[row[place] for row in rows] for place in range(len(names))]
    found = {name.strip(): [_value(each) for each in column] for name, column in zip(names, columns, strict=True)}
    lengths = {len(column) for column in columns}
    if len(found) < len(names) or len(lengths) != 1 or 0 in lengths:
        raise InputError(f"{source} must have rows, and columns of one length with distinct names, got {names}")
    return Table(source, found, texts)


def _value(value: Any) -> Any:
    """Return a value without surrounding blanks, or None if it is missing."""
    if isinstance(value, str):
        return value.strip() or None
    return None if is_null(value) else value


@dataclass(frozen=True, eq=False)
class ItemTable(Table):
    """A table with one row per item. The column of the labels is not among the columns."""

    catalogue: Catalogue

    def rows_of(self, labels: Sequence[Label]) -> list[int]:
        """Return the row of each label. Every label must have one."""
        missing = [label for label in labels if label not in self.catalogue]
        if missing:
            raise InputError(
                f"{self.source} has no row for {count(len(missing), 'item')} of {len(labels)} (for instance "
                f"{contents(missing[:SHOWN])}), but for {contents(self.catalogue.labels[:SHOWN])}; add rows with empty "
                "values, or name the column of the items with item= (--item)"
            )
        return [self.catalogue.position(label) for label in labels]


def read_item_table(table: Any, item: str | None = None) -> ItemTable:
    """Read a table with one row per item. In files of text, NA and the like are missing values.

    The labels are in the column `item`; by default in that called "item", or else in the first.
    """
    read = read_table(table)
    source, columns = read.source, read.columns
    column = item.strip() if item is not None else ITEM if ITEM in columns else next(iter(columns))
    if column not in columns:
        raise InputError(f"item must be a column of {source}, one of {contents(columns)}, got {item!r}")
    try:
        catalogue = Catalogue.of(columns.pop(column))
    except InputError as error:
        raise InputError(f"column {column!r} of {source}: {error}") from None
    if read.texts:
        for name, values in columns.items():
            columns[name] = [None if str(value).lower() in MISSING_TEXTS else value for value in values]
    return ItemTable(source, columns, read.texts, catalogue)
