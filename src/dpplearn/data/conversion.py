"""Lists and matrices to (basket number, item position) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.checks import (
    all_integers,
    as_array,
    as_basket,
    as_positions,
    check_is_not_a_matrix,
    check_kinds,
    check_range,
    look_up,
    nonzero_entries,
    one_more_than_largest,
)
from dpplearn.data.times import Times
from dpplearn.errors import InputError
from dpplearn.utils.text import count


class Pairs(NamedTuple):
    """What `Baskets.from_pairs` takes: which basket, by number, holds which item, by its position in a catalogue."""

    rows: Ints
    positions: Ints
    n_baskets: int
    catalogue: Catalogue
    weights: npt.ArrayLike | None = None  # one per basket
    ids: npt.NDArray[Any] | None = None  # what each basket is called
    times: Times | None = None  # when each came about


def pairs_of_lists(
    baskets: Iterable[Iterable[Any]],
    items: Sequence[Label] | None,
    n_items: int | None,
    weights: npt.ArrayLike | None,
) -> Pairs:
    """Of names, or of integers, which are positions unless the catalogue is of integers as well."""
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
    return Pairs(rows, positions, n_baskets, catalogue, weights)


def pairs_by_label(baskets: Iterable[Iterable[Any]], catalogue: Catalogue) -> Pairs:
    """Of lists whose items are all labels, of the catalogue or others."""
    rows, flat, n_baskets = _flattened(baskets)
    check_kinds(flat, rows, integers=True)
    if all(label in catalogue for label in set(flat)):
        return Pairs(rows, look_up(flat, rows, catalogue), n_baskets, catalogue)
    theirs = Catalogue(tuple({str(label): label for label in flat}.values()))
    return Pairs(rows, look_up(flat, rows, theirs), n_baskets, theirs)


def _flattened(baskets: Iterable[Iterable[Any]]) -> tuple[Ints, list[Any], int]:
    check_is_not_a_matrix(baskets)
    lists = [as_basket(number, basket) for number, basket in enumerate(baskets)]
    sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    return np.repeat(np.arange(len(lists)), sizes), list(chain.from_iterable(lists)), len(lists)


def pairs_of_matrix(matrix: Any, items: Sequence[Label] | None, weights: npt.ArrayLike | None) -> Pairs:
    """Where a matrix of zeros and ones has ones."""
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
    return Pairs(rows, columns, matrix.shape[0], catalogue, weights)
