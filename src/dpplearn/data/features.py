"""Features: attributes of items as a numeric matrix, and the encoding of further items in the same way."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.item_tables import ItemTable, read_item_table
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import contents, count

FEWEST = 2  # items of a category that has a column of its own
MOST_LEVELS = 50  # columns of one categorical column
SHOWN = 3  # examples
OTHER, MISSING = "(other)", "(missing)"
TRUE_FALSE = {"true": 1.0, "false": 0.0}
MISSING_TEXTS = {"na", "n/a", "nan", "null", "none"}  # what stands for a missing value in files of text


@dataclass(frozen=True)
class NumericColumn:
    """Numbers, standardised as (value − mean)/scale. Missing values become the mean, with an indicator column."""

    name: str
    mean: float
    scale: float
    indicator: bool

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} {MISSING}") if self.indicator else (self.name,)

    def encode(self, values: Sequence[Any], source: str) -> Floats:
        """Return one row per value, (len(values), len(names))."""
        numbers = np.array([_as_number(value, self.name, source) for value in values])
        missing = np.isnan(numbers)
        standard = np.where(missing, 0, (numbers - self.mean) / self.scale)
        return np.column_stack([standard, missing] if self.indicator else [standard]).astype(float)


@dataclass(frozen=True)
class CategoricalColumn:
    """One indicator column per level except the most frequent one, which is the reference.

    Levels of a single item, levels beyond the fiftieth and new levels are merged into (other). Missing values
    are a level of their own.
    """

    name: str
    reference: str
    levels: tuple[str, ...]  # those with a column

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, values: Sequence[Any], source: str) -> Floats:
        """Return one row per value, (len(values), len(names)). Without (other), a new level equals the reference."""
        known = {*self.levels, self.reference}
        found = [level if (level := _as_level(value)) in known else OTHER for value in values]
        return np.array([[float(level == each) for each in self.levels] for level in found]).reshape(len(values), -1)


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Attributes of every item of a catalogue as a matrix, with their encoding.

    Created by `read_features`. `notes` reports missing values, rows of items that the catalogue does not have, and
    constant columns.

    Examples
    --------
    >>> table = {"item": ["cot", "crib", "bib"], "price": [90, 150, 9], "kind": ["bed", "bed", "meal"]}
    >>> features = read_features(table, ["bib", "cot", "crib"])
    >>> features
    Features(3 items, 2 columns: price, kind=(other))
    >>> features.encode({"item": ["bassinet"], "price": [83], "kind": ["bed"]}).round(6).tolist()
    [[0.0, 0.0]]
    """

    catalogue: Catalogue
    matrix: Floats  # (n_items, n_columns), in the order of the catalogue
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        read_only(self.matrix)

    def __repr__(self) -> str:
        n = count(len(self.names), "column")
        return f"Features({count(len(self.catalogue), 'item')}, {n}: {', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    def encode(self, table: Any, labels: Iterable[Label] | None = None, *, item: str | None = None) -> Floats:
        """Return the same columns for further items, with the means, scales and levels of these features.

        Parameters
        ----------
        table
            As `read_features` takes it, with the columns that the features were made of.
        labels
            Which items, in which order; by default all rows of the table.
        item
            The column of the labels.

        Returns
        -------
        array of float
            One row per item, one column per name.

        Examples
        --------
        >>> features = read_features({"item": ["cot", "bib"], "price": [90, 10]}, ["bib", "cot"])
        >>> features.encode({"item": ["crib"], "price": [130]}).tolist()
        [[2.0]]
        """
        read = _read(table, item)
        missing = [column.name for column in self.columns if column.name not in read.columns]
        if missing:
            raise InputError(
                f"{read.source} has the columns {contents(read.columns)}, but not {contents(missing)}, which the "
                "features were made from; add them, with empty values where nothing is known"
            )
        rows = read.rows_of(read.labels if labels is None else list(labels))
        return _encoded(self.columns, read, rows)


def read_features(table: Any, items: Baskets | Catalogue | Sequence[Label], *, item: str | None = None) -> Features:
    """Read features of items from a table with one row per item.

    Numbers are standardised: to their mean over the items, and in units of their standard deviation. Texts are
    categories. A column that is the same for all items is left out. Values that are missing are said in a warning.

    Parameters
    ----------
    table
        A pandas or polars DataFrame, an Arrow table, a dict of columns, or a path to a CSV or Parquet file. Rows of
        items that are not asked for are not looked at.
    items
        Baskets, whose items they are, or labels; every one must have a row.
    item
        The column of the labels; by default that called "item", or else the first.

    Returns
    -------
    Features
        In the order of the items.

    Examples
    --------
    >>> read_features({"item": ["cot", "bib"], "price": [90, 10]}, ["bib", "cot"]).matrix.tolist()
    [[-1.0], [1.0]]
    """
    catalogue = as_catalogue(items)
    read = _read(table, item)
    rows = read.rows_of(catalogue.labels)
    columns, notes = [], []
    others = [label for label in read.labels if label not in catalogue]
    if others:
        what = f"{count(len(others), 'item')} more (for instance {contents(others[:SHOWN])})"
        notes.append(f"{read.source} has rows for {what}, which are not used")
    for name, values in read.columns.items():
        made = _column(name, [values[row] for row in rows], read)
        notes += [] if made is not None else [f"column {name!r} is the same for all items, and is left out"]
        columns += [] if made is None else [made]
    if not columns:
        raise InputError(f"{read.source} has no column that tells items apart; expected numbers or categories")
    missing = _missing(read, rows)
    if missing:
        warnings.warn(missing, InputWarning, stacklevel=2)
        notes.append(missing)
    return Features(catalogue, _encoded(columns, read, rows), tuple(columns), tuple(notes))


def as_features(features: Any, items: Baskets | Catalogue | Sequence[Label]) -> Features:
    """Return features in the order of these items, reading them if they are a table."""
    if not isinstance(features, Features):
        return read_features(features, items)
    catalogue = as_catalogue(items)
    try:
        here = features.catalogue.positions(catalogue.labels)
    except InputError as error:
        raise InputError(f"the features lack some items: {error}; read them for all (read_features)") from None
    return Features(catalogue, features.matrix[here], features.columns, features.notes)


def as_catalogue(items: Baskets | Catalogue | Sequence[Label]) -> Catalogue:
    """Return the catalogue of baskets or of labels."""
    if isinstance(items, Catalogue):
        return items
    return items.catalogue if hasattr(items, "catalogue") else Catalogue.of(items)


def _missing(read: ItemTable, rows: list[int]) -> str:
    """Return a remark on missing values: how many, in which columns and for which items."""
    each = {name: [row for row in rows if values[row] is None] for name, values in read.columns.items()}
    found = [
        f"{count(len(empty), 'value')} of {name!r} (for instance of {contents(read.labels[row] for row in empty[:1])})"
        for name, empty in each.items()
        if empty
    ]
    filled = "a missing number becomes the mean, with a column that marks it; a missing category is one of its own"
    return f"{read.source} lacks {contents(found)}: {filled}" if found else ""


def _encoded(columns: Sequence[Column], read: ItemTable, rows: list[int]) -> Floats:
    parts = [
        column.encode([read.columns[column.name][row] for row in rows], read.source)
        if column.names
        else np.zeros((len(rows), 0))
        for column in columns
    ]
    return np.hstack(parts)


def _read(table: Any, item: str | None) -> ItemTable:
    """Read a table. In files of text, NA and the like are missing values."""
    read = read_item_table(table, item)
    if not read.texts:
        return read
    columns = {
        name: [None if str(value).lower() in MISSING_TEXTS else value for value in values]
        for name, values in read.columns.items()
    }
    return replace(read, columns=columns)


def _column(name: str, values: list[Any], read: ItemTable) -> Column | None:
    """Return the encoding of a column, or None if it is constant."""
    present = [value for value in values if value is not None]
    if present and _numeric(present, read.texts):
        return _numeric_column(name, values, read.source)
    return _categorical_column(name, [_as_level(value) for value in values])


def _numeric(present: list[Any], texts: bool) -> bool:
    """Return whether all values are numbers or, in a text file, look like numbers."""
    return all(map(_reads_as_number, present)) if texts else not any(isinstance(value, str) for value in present)


def _reads_as_number(text: str) -> bool:
    try:
        float(TRUE_FALSE.get(text.lower(), text))
    except ValueError:
        return False
    return True


def _numeric_column(name: str, values: list[Any], source: str) -> NumericColumn | None:
    numbers = np.array([_as_number(value, name, source) for value in values])
    known = numbers[~np.isnan(numbers)]
    unit = float(np.abs(known).max()) or 1.0  # squares may be too large for numbers, or too small
    mean, spread = unit * float((known / unit).mean()), float((known / unit).std())
    constant = spread <= 1e-12
    if constant and len(known) == len(numbers):
        return None
    return NumericColumn(name, mean, unit if constant else unit * spread, len(known) < len(numbers))


def _as_number(value: Any, name: str, source: str) -> float:
    """Return the number, or NaN if it is missing."""
    if value is None:
        return math.nan
    try:
        number = float(TRUE_FALSE.get(str(value).lower(), value))
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        kind = type(value).__name__
        raise InputError(
            f"column {name!r} of {source} holds {value!r} ({kind}); expected finite numbers, or texts as categories"
        )
    return number


def _categorical_column(name: str, levels: list[str]) -> CategoricalColumn | None:
    counts = Counter(levels)
    order = sorted(counts, key=lambda level: (-counts[level], level))
    if len(order) < 2:
        return None
    reference, *others = order
    own = [level for level in others if level != OTHER and (counts[level] >= FEWEST or level == MISSING)][:MOST_LEVELS]
    rest = len(own) < len(others) and reference != OTHER
    return CategoricalColumn(name, reference, (*own, *((OTHER,) if rest else ())))


def _as_level(value: Any) -> str:
    return MISSING if value is None else str(value)
