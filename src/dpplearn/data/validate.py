"""Validation of what `Baskets` are made from: lists, matrices, weights, identifiers."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label, as_list, is_plain_integer
from dpplearn.errors import InputError

Pairs = tuple[Ints, Ints, int, Catalogue]  # basket numbers, item positions, number of baskets, catalogue


def pairs_of_lists(
    baskets: Iterable[Iterable[Any]],
    items: Sequence[Label] | None,
    n_items: int | None,
) -> Pairs:
    """Return the pairs of lists of names, or of integers, which are positions unless the catalogue has integers."""
    rows, flat, n_baskets = _flattened(baskets)
    integers = all_integers(flat)
    if items is not None:
        catalogue = Catalogue.of(items)
    elif integers:
        catalogue = Catalogue.numbered(max(flat, default=-1) + 1 if n_items is None else n_items)
    else:
        catalogue = Catalogue.of(sorted(set(flat), key=str))
    if n_items not in (None, len(catalogue)):
        raise InputError(f"n_items is {n_items}, but the catalogue has {len(catalogue)} items; pass them all as items=")
    by_position = integers and catalogue.named
    if by_position and flat and any(is_plain_integer(str(name)) for name in catalogue.labels):
        raise InputError("the baskets hold integers, and names of items are integers, too; write both as strings")
    known = Catalogue.numbered(len(catalogue)) if by_position else catalogue
    return rows, look_up(flat, rows, known), n_baskets, catalogue


def pairs_by_label(baskets: Iterable[Iterable[Any]], catalogue: Catalogue) -> Pairs:
    """Return the pairs of lists of labels, which the catalogue need not have."""
    rows, flat, n_baskets = _flattened(baskets)
    if not all(label in catalogue for label in set(flat)):
        catalogue = Catalogue(tuple({str(label): label for label in flat}.values()))
    return rows, look_up(flat, rows, catalogue), n_baskets, catalogue


def _flattened(baskets: Iterable[Iterable[Any]]) -> tuple[Ints, list[Any], int]:
    """Return the basket and the label of each item, and the number of baskets."""
    is_matrix = hasattr(baskets, "tocoo") or getattr(baskets, "ndim", 1) != 1 or hasattr(baskets, "columns")
    if is_matrix or not isinstance(baskets, Iterable):  # a row of zeros and ones would be read as the items 0 and 1
        raise InputError(
            f"got a {type(baskets).__name__} where a list of baskets was expected; use Baskets.from_matrix for a 0/1 "
            "matrix, Baskets.from_table for a table of (basket, item) rows"
        )
    lists = [as_list(basket, f"basket {number}: ") for number, basket in enumerate(baskets)]
    rows = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))
    flat = list(chain.from_iterable(lists))
    for kind in set(map(type, flat)):
        if not issubclass(kind, str | int | np.integer) or kind is bool:
            row, item = next((rows[place], item) for place, item in enumerate(flat) if type(item) is kind)
            raise InputError(f"basket {row}: item {item!r} is of type {kind.__name__}; expected names or integers")
    return rows, flat, len(lists)


def pairs_of_matrix(matrix: Any, items: Sequence[Label] | None) -> Pairs:
    """Return the pairs at which a matrix of zeros and ones is 1."""
    from scipy.sparse import csr_array

    if items is None and hasattr(matrix, "columns"):
        items = list(matrix.columns)
    try:
        entries = csr_array(matrix if hasattr(matrix, "tocoo") else np.asarray(matrix), copy=True)
    except (TypeError, ValueError):
        raise InputError("expected a matrix of the numbers 0 and 1, (baskets, items)") from None
    if entries.ndim != 2:
        raise InputError(f"got an array of shape {entries.shape}; expected (baskets, items)")
    catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(entries.shape[1])
    if len(catalogue) != entries.shape[1]:
        raise InputError(f"the matrix has {entries.shape[1]} columns, but items names {len(catalogue)}")
    entries.sum_duplicates()  # a double 1 shows as 2
    entries.eliminate_zeros()
    found: Any = entries.tocoo()
    wrong = entries.data[entries.data != 1]
    if wrong.size:
        raise InputError(f"the matrix holds {wrong[0]}; expected 0 and 1 (binarise counts with matrix > 0)")
    return found.row.astype(np.int64), found.col.astype(np.int64), found.shape[0], catalogue


def is_null(item: Any) -> bool:
    """Return whether a value is None, NaN, or a null of pandas, which has no truth value."""
    if isinstance(item, float | np.floating):
        return bool(np.isnan(item))
    return item is None or type(item).__name__ in ("NAType", "NaTType")


def all_integers(flat: list[Any]) -> bool:
    return all(issubclass(kind, int | np.integer) and kind is not bool for kind in set(map(type, flat)))


def look_up(flat: list[Any], rows: Ints, catalogue: Catalogue) -> Ints:
    """Return the positions of labels in the catalogue. The error about an unknown one names its basket."""
    positions: dict[Any, int] = dict.fromkeys(flat, 0)
    for label in positions:
        try:
            positions[label] = catalogue.position(label)
        except InputError as unknown:
            raise InputError(f"basket {rows[flat.index(label)]}: {unknown}") from None
    return np.fromiter(map(positions.__getitem__, flat), np.int64, len(flat))


def as_rows(rows: npt.ArrayLike, n_baskets: int) -> Ints:
    """Return basket numbers, given as numbers (negative ones from the end) or as a mask."""
    try:
        given = np.asarray(rows)
        found = np.arange(n_baskets)[given if given.size else []]
    except (ValueError, IndexError):  # rows of different length; other numbers, or no integers
        found = np.zeros((0, 0), np.int64)
    if found.ndim != 1:
        raise InputError(f"rows must be numbers of {n_baskets} baskets or a mask, got {reprlib.repr(rows)}")
    return found


def as_weights(weights: npt.ArrayLike | None, n_baskets: int) -> Floats:
    """Return one finite weight per basket; 1 by default."""
    if weights is None:
        return np.ones(n_baskets)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array(np.nan)
    with np.errstate(over="ignore"):
        finite = np.isfinite(values.sum()) and np.all(values >= 0)
    if values.shape != (n_baskets,) or not finite:
        raise InputError(
            f"weights must be {n_baskets} numbers, one per basket, 0 or more and with a finite sum, got "
            f"{reprlib.repr(weights)}"
        )
    return values


def as_ids(ids: Iterable[Any], n_baskets: int) -> npt.NDArray[Any]:
    """Return identifiers as integers if all are integers, as text otherwise."""
    values = list(ids)
    if len(values) != n_baskets:
        raise InputError(f"there are {len(values)} ids, but {n_baskets} baskets; expected one per basket")
    return np.array(values, dtype=np.int64) if all_integers(values) else np.array(list(map(str, values)), dtype=object)
