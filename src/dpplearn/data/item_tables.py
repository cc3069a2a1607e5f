"""Tables with one row per item and any columns, from memory or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpplearn.data.catalogue import Catalogue, Label, as_label
from dpplearn.data.transactions import Rows, read_rows
from dpplearn.data.validate import is_null
from dpplearn.errors import InputError
from dpplearn.utils.text import contents, count

ITEM = "item"  # the column of labels, unless there is none of that name: then the first
SHOWN = 3  # examples


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Columns with one value per label. None is a missing value."""

    source: str  # what to call it in messages
    labels: tuple[Label, ...]
    columns: dict[str, list[Any]]
    texts: bool  # whether all values are texts, as in a CSV file

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

    def beyond(self, catalogue: Catalogue) -> tuple[Label, ...]:
        """Return the labels that a catalogue does not have."""
        return tuple(label for label in self.labels if label not in catalogue)


def read_item_table(table: Any, item: str | None = None) -> ItemTable:
    """Read a pandas or polars DataFrame, an Arrow table, a dict of columns, or a CSV or Parquet file.

    The labels are in the column `item`; by default in that called "item", or else in the first.
    """
    source, names, rows, texts = read_columns(table)
    if not rows:
        raise InputError(f"{source} has no rows; expected one per item")
    names = [name.strip() for name in names]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{source} has {names.count(repeated)} columns called {repeated!r}; rename all but one")
    place = _item_column(names, item, source)
    columns = {name: [without_blanks(row[at]) for row in rows] for at, name in enumerate(names)}
    labels = columns.pop(names[place])
    return ItemTable(source, _checked_labels(labels, names[place], source), columns, texts)


def read_columns(table: Any) -> Rows:
    """Read a table in memory, a dict of columns or a file."""
    return Rows("the table", *_from_dict(table), texts=False) if isinstance(table, Mapping) else read_rows(table)


def _item_column(names: list[str], item: str | None, source: str) -> int:
    if item is None:
        return names.index(ITEM) if ITEM in names else 0
    if item.strip() not in names:
        raise InputError(
            f"{source} has the columns {', '.join(map(repr, names))}, but not {item!r}; name that of the items with "
            "item= (--item)"
        )
    return names.index(item.strip())


def _checked_labels(values: list[Any], column: str, source: str) -> tuple[Label, ...]:
    if None in values:
        raise InputError(f"column {column!r} of {source} is null in row {values.index(None) + 1}; expected an item")
    labels = tuple(as_label(value) for value in values)
    seen: set[str] = set()
    for label in labels:
        if str(label) in seen:
            raise InputError(f"{source} has several rows for item {label!r}; expected one row per item")
        seen.add(str(label))
    return labels


def without_blanks(value: Any) -> Any:
    """Return a value without surrounding blanks, or None if it is missing."""
    if isinstance(value, str):
        return value.strip() or None
    return None if is_null(value) else value


def _from_dict(table: Mapping[Any, Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    alone = next(
        (name for name, values in table.items() if isinstance(values, str) or not isinstance(values, Iterable)), None
    )
    if alone is not None:
        raise InputError(f"column {alone!r} is {table[alone]!r}; expected a list with one value per item")
    columns = {str(name): list(values) for name, values in table.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns have lengths {lengths}; expected one value per item in each")
    return list(columns), list(zip(*columns.values(), strict=True))
