"""Features: attributes of items as a numeric matrix, and the encoding of further items in the same way."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.item_tables import ItemTable, read_item_table
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import contents, count

FEWEST = 2  # items of a category that has a column of its own
MIN_SPREAD = 1e-12  # of numbers relative to the largest; below, they are all the same
MOST_LEVELS = 50  # columns of one categorical column
SHOWN = 3  # examples
OTHER, MISSING = "(other)", "(missing)"


class Column(NamedTuple):
    """A column of the table, and its encoding as columns of the matrix."""

    name: str
    names: tuple[str, ...]  # of the columns of the matrix
    encode: Callable[[list[Any], str], Floats]  # from values and the source to (len(values), len(names))


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Attributes of every item of a catalogue as a matrix, with their encoding.

    Created by `read_features`.

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
        read = read_item_table(table, item)
        missing = [column.name for column in self.columns if column.name not in read.columns]
        if missing:
            raise InputError(f"{read.source} lacks {contents(missing)}, which the features were made from")
        rows = read.rows_of(read.catalogue.labels if labels is None else list(labels))
        return _encoded(self.columns, read, rows)


def read_features(table: Any, items: Baskets | Catalogue | Sequence[Label], *, item: str | None = None) -> Features:
    """Read features of items from a table with one row per item.

    Numbers are standardised: to their mean over the items, and in units of their standard deviation. Texts are
    categories. A column that is the same for all items is left out. A warning names such columns, and columns that lack
    values.

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
    catalogue, read = as_catalogue(items), read_item_table(table, item)
    rows = read.rows_of(catalogue.labels)
    columns, remarks = [], []
    for name, every in read.columns.items():
        values = [every[row] for row in rows]
        column = _column(name, values, read)
        if column is not None:
            columns.append(column)
        else:
            remarks.append(f"{name!r} is left out because it is the same for all items")
        if None in values:
            remarks.append(f"{name!r} lacks {count(values.count(None), 'value')}")
    if not columns:
        raise InputError(f"{read.source} has no column that tells items apart; expected numbers or categories")
    if remarks:
        missing = "a missing number becomes the mean, with a column that marks it; a missing category is one of its own"
        warnings.warn(f"columns of {read.source}: {', '.join(remarks)} ({missing})", InputWarning, stacklevel=2)
    return Features(catalogue, _encoded(columns, read, rows), tuple(columns))


def as_features(features: Any, items: Baskets | Catalogue | Sequence[Label]) -> Features:
    """Return features in the order of these items, reading them if they are a table."""
    if not isinstance(features, Features):
        return read_features(features, items)
    catalogue = as_catalogue(items)
    here = features.catalogue.positions(catalogue.labels)
    return Features(catalogue, features.matrix[here], features.columns)


def as_catalogue(items: Baskets | Catalogue | Sequence[Label]) -> Catalogue:
    """Return the catalogue of baskets or of labels."""
    if isinstance(items, Catalogue):
        return items
    return items.catalogue if hasattr(items, "catalogue") else Catalogue.of(items)


def _encoded(columns: Sequence[Column], read: ItemTable, rows: list[int]) -> Floats:
    parts = [column.encode([read.columns[column.name][row] for row in rows], read.source) for column in columns]
    return np.hstack(parts)


def _column(name: str, values: list[Any], read: ItemTable) -> Column | None:
    """Return the encoding of a column, or None if it is constant.

    A column is numeric if no value is a text or, in a text file, if all values look like numbers.
    """
    present = [value for value in values if value is not None]
    if present and all(_looks_like_number(value) if read.texts else not isinstance(value, str) for value in present):
        return _numeric_column(name, _numbers(values, name, read.source))
    return _categorical_column(name, [_as_level(value) for value in values])


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(values: list[Any], name: str, source: str) -> Floats:
    """Return numbers, NaN where they are missing."""
    try:
        numbers = np.array([math.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(math.inf)
    if np.isinf(numbers).any():
        raise InputError(f"column {name!r} of {source} must hold finite numbers, or texts as categories")
    return numbers


def _numeric_column(name: str, numbers: Floats) -> Column | None:
    """Return (value − mean)/scale. Missing values become the mean, with an indicator column."""
    known = numbers[~np.isnan(numbers)]
    unit = float(np.abs(known).max()) or 1.0  # squares may be too large for numbers, or too small
    mean, spread = unit * float((known / unit).mean()), float((known / unit).std())
    names = (name, f"{name} {MISSING}") if len(known) < len(numbers) else (name,)
    scale = unit * (spread if spread > MIN_SPREAD else 1.0)

    def encode(values: list[Any], source: str) -> Floats:
        numbers = _numbers(values, name, source)
        missing = np.isnan(numbers)
        return np.column_stack([np.where(missing, 0, (numbers - mean) / scale), missing])[:, : len(names)]

    return Column(name, names, encode) if spread > MIN_SPREAD or len(names) > 1 else None


def _categorical_column(name: str, values: list[str]) -> Column | None:
    """Return one indicator per level except the most frequent one, which is the reference.

    Levels of a single item, levels beyond the fiftieth and new levels are merged into (other). Missing values are a
    level of their own. Without (other), a new level equals the reference.
    """
    counts = Counter(values)
    reference, *others = sorted(counts, key=lambda level: (-counts[level], level))
    own = [level for level in others if level != OTHER and (counts[level] >= FEWEST or level == MISSING)][:MOST_LEVELS]
    levels = [*own, OTHER] if len(own) < len(others) and reference != OTHER else own

    def encode(values: list[Any], source: str) -> Floats:
        found = [level if level in (reference, *levels) else OTHER for level in map(_as_level, values)]
        rows = [[level == each for each in levels] for level in found]
        return np.array(rows, dtype=float).reshape(len(values), len(levels))

    return Column(name, tuple(f"{name}={level}" for level in levels), encode) if others else None


def _as_level(value: Any) -> str:
    return MISSING if value is None else str(value)
