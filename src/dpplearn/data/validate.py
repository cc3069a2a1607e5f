"""Validation of what `Baskets` are made from: lists, matrices, weights, identifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label, is_plain_integer
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count

Pairs = tuple[Ints, Ints, int, Catalogue]  # basket numbers, item positions, number of baskets, catalogue


def pairs_of_lists(
    baskets: Iterable[Iterable[Any]],
    items: Sequence[Label] | None,
    n_items: int | None,
) -> Pairs:
    """Return the pairs of lists of names, or of integers, which are positions unless the catalogue has integers."""
    rows, flat, n_baskets = _flattened(baskets)
    catalogue = Catalogue.of(items) if items is not None else None
    if all_integers(flat) and (catalogue is None or catalogue.named):
        positions = as_positions(flat, catalogue)
        if catalogue is None:
            catalogue = Catalogue.numbered(n_items if n_items is not None else one_more_than_largest(positions))
        check_range(positions, rows, len(catalogue))
    else:
        check_kinds(flat, rows, integers=catalogue is not None and not catalogue.named)
        catalogue = Catalogue.of(sorted(set(flat))) if catalogue is None else catalogue
        positions = look_up(flat, rows, catalogue)
    if n_items not in (None, len(catalogue)):
        raise InputError(
            f"n_items is {n_items}, but the catalogue has {count(len(catalogue), 'item')}; pass them all as items="
        )
    return rows, positions, n_baskets, catalogue


def pairs_by_label(baskets: Iterable[Iterable[Any]], catalogue: Catalogue) -> Pairs:
    """Return the pairs of lists of labels, which the catalogue need not have."""
    rows, flat, n_baskets = _flattened(baskets)
    check_kinds(flat, rows, integers=True)
    if all(label in catalogue for label in set(flat)):
        return rows, look_up(flat, rows, catalogue), n_baskets, catalogue
    theirs = Catalogue(tuple({str(label): label for label in flat}.values()))
    return rows, look_up(flat, rows, theirs), n_baskets, theirs


def _flattened(baskets: Iterable[Iterable[Any]]) -> tuple[Ints, list[Any], int]:
    check_is_not_a_matrix(baskets)
    lists = [as_basket(number, basket) for number, basket in enumerate(baskets)]
    sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    return np.repeat(np.arange(len(lists)), sizes), list(chain.from_iterable(lists)), len(lists)


def pairs_of_matrix(matrix: Any, items: Sequence[Label] | None) -> Pairs:
    """Return the pairs at which a matrix of zeros and ones is 1."""
    if items is None and hasattr(matrix, "columns"):
        items = list(matrix.columns)
    if not hasattr(matrix, "tocoo"):
        matrix = as_array(matrix)
    if matrix.ndim != 2:
        raise InputError(f"got an array of shape {matrix.shape}; expected (baskets, items)")
    if items is not None and len(items) != matrix.shape[1]:
        raise InputError(f"the matrix has {matrix.shape[1]} columns, but items names {len(items)}")
    catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(matrix.shape[1])
    rows, columns, values = nonzero_entries(matrix)
    wrong = np.flatnonzero(values != 1)
    if wrong.size:
        first = wrong[0]
        raise InputError(
            f"row {rows[first]}, column {columns[first]} of the matrix holds {values[first]}; "
            "expected 0 or 1 (binarise counts first, for instance with matrix > 0)"
        )
    return rows, columns, matrix.shape[0], catalogue


def check_is_not_a_matrix(baskets: Any) -> None:
    """Raise an error for a matrix: a row of zeros and ones would be read as a basket of the items 0 and 1."""
    if hasattr(baskets, "tocoo") or getattr(baskets, "ndim", 1) != 1 or hasattr(baskets, "columns"):
        kind = type(baskets).__name__
        raise InputError(
            f"got a {kind} where a list of baskets was expected; "
            "use Baskets.from_matrix for a 0/1 matrix, Baskets.from_table for a table of (basket, item) rows"
        )


def as_basket(number: int, basket: Any) -> list[Any]:
    if isinstance(basket, str | bytes) or not isinstance(basket, Iterable):
        raise InputError(f"basket {number} is {basket!r}; expected a list of items, such as [{basket!r}]")
    return basket.tolist() if isinstance(basket, np.ndarray) else list(basket)


def as_array(values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError("the rows are not all of one length; expected an array") from None


def as_positions(flat: list[Any], catalogue: Catalogue | None) -> Ints:
    """Return integers as positions. Raise an error if a name in the catalogue could be meant instead."""
    alike = next((label for label in catalogue.labels if is_plain_integer(str(label))), None) if catalogue else None
    if flat and alike is not None:
        raise InputError(
            f"the baskets hold integers, and some item names, such as {alike!r}, are integers as well; write the "
            "baskets with names, as strings"
        )
    try:
        return np.array(flat, dtype=np.int64)
    except OverflowError:
        raise InputError(f"item {max(flat, key=abs)} is out of range; pass integer labels as items=") from None


def is_null(item: Any) -> bool:
    """Return whether a value is None, NaN, or a null of pandas, which has no truth value."""
    if isinstance(item, float | np.floating):
        return bool(np.isnan(item))
    return item is None or type(item).__name__ in ("NAType", "NaTType")


def all_integers(flat: list[Any]) -> bool:
    return all(map(_is_integer, set(map(type, flat))))


def _is_integer(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool


def one_more_than_largest(positions: Ints) -> int:
    if not positions.size:
        raise InputError("no basket holds an item, so the catalogue is unknown; pass items= or n_items=")
    return max(int(positions.max()) + 1, 1)


def check_range(positions: Ints, rows: Ints, n_items: int) -> None:
    wrong = np.flatnonzero((positions < 0) | (positions >= n_items))
    if wrong.size:
        row, item = rows[wrong[0]], positions[wrong[0]]
        advice = f"pass n_items={item + 1} or fix the basket" if item >= n_items else "indices start at 0"
        raise InputError(f"basket {row} names item {item}, but the catalogue has {count(n_items, 'item')}; {advice}")


def check_kinds(flat: list[Any], rows: Ints, *, integers: bool) -> None:
    """Raise if an item is not a string, nor, with `integers`, an integer."""
    labels = (str, int, np.integer) if integers else (str,)
    wrong = [kind for kind in dict.fromkeys(map(type, flat)) if not issubclass(kind, labels)]
    for kind in sorted(wrong, key=_is_integer)[:1]:  # of integers and floats, the float is the mistake
        number, item = next((n, item) for n, item in enumerate(flat) if type(item) is kind)
        what = "is null" if is_null(item) else f"is of type {kind.__name__}"
        raise InputError(f"basket {rows[number]}: item {item!r} {what}; expected all names or all integers")


def look_up(flat: list[Any], rows: Ints, catalogue: Catalogue) -> Ints:
    """Return the positions of labels in the catalogue. The error about an unknown one names its basket."""
    distinct: dict[Any, int] = {}
    for number, label in enumerate(flat):
        try:
            if label not in distinct:
                distinct[label] = catalogue.position(label)
        except InputError as unknown:
            raise InputError(f"basket {rows[number]}: {unknown}") from None
    return np.array([distinct[label] for label in flat], dtype=np.int64)


def nonzero_entries(matrix: Any) -> tuple[Ints, Ints, npt.NDArray[Any]]:
    if hasattr(matrix, "tocoo"):
        entries = matrix.tocsr().tocoo()  # tocsr adds up repeated entries, so that a double 1 shows as 2
        kept = np.flatnonzero(entries.data != 0)
        return entries.row[kept].astype(np.int64), entries.col[kept].astype(np.int64), entries.data[kept]
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"the matrix holds {matrix.dtype}; expected numbers 0 and 1, or bool")
    rows, columns = np.nonzero(matrix)
    return rows, columns, matrix[rows, columns]


def as_rows(rows: npt.ArrayLike, n_baskets: int) -> Ints:
    """Return basket numbers, given as numbers (negative ones from the end) or as a mask."""
    rows = as_array(rows)
    if rows.dtype == bool:
        if rows.shape != (n_baskets,):
            raise InputError(f"the mask has shape {rows.shape}; expected ({n_baskets},), one value per basket")
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise InputError(f"rows are {rows.dtype} of shape {rows.shape}; expected a list of basket numbers or a mask")
    if rows.size and not (-n_baskets <= rows.min() and rows.max() < n_baskets):
        raise InputError(f"rows reach from {rows.min()} to {rows.max()}, but there are {n_baskets} baskets")
    return np.arange(n_baskets)[rows]


def as_weights(weights: npt.ArrayLike | None, n_baskets: int) -> Floats:
    if weights is None:
        return np.ones(n_baskets)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("the weights are not all numbers; expected one number per basket") from None
    if values.shape != (n_baskets,):
        raise InputError(
            f"weights have shape {values.shape}, but there are {n_baskets} baskets; expected one per basket"
        )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        raise InputError(f"the weight of basket {wrong[0]} is {values[wrong[0]]}; expected a finite number, 0 or more")
    with np.errstate(over="ignore"):
        if np.isinf(values.sum()):
            raise InputError(
                f"the weights add up to more than the largest number there is (the largest, of basket "
                f"{values.argmax()}, is {values.max():g}); divide them all by {values.max():g}, as only ratios matter"
            )
    return values


def as_ids(ids: Iterable[Any], n_baskets: int) -> npt.NDArray[Any]:
    """Return identifiers as integers if all are integers, as text otherwise."""
    values = list(ids)
    if len(values) != n_baskets:
        raise InputError(f"there are {len(values)} ids, but {n_baskets} baskets; expected one per basket")
    return np.array(values, dtype=np.int64) if all_integers(values) else np.array(list(map(str, values)), dtype=object)


def warn_of_repeats(n: int, rows: npt.NDArray[Any], keys: Ints) -> None:
    """Warn that n of the keys are repeated. A key determines its row."""
    if not n:
        return
    order = np.argsort(keys, kind="stable")
    repeated = rows[order[1:][keys[order][1:] == keys[order][:-1]]]
    baskets = f"{count(len(np.unique(repeated)), 'basket')} (the first is basket {repeated.min()})"
    warnings.warn(
        f"{count(n, 'repeated item')} in {baskets}: a basket is a set, so each is counted once",
        InputWarning,
        stacklevel=4,
    )
