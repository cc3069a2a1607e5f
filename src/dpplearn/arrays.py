"""Names for the array types that pass between modules, and what else arrays need everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Items = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Array = TypeVar("Array", bound=npt.NDArray[Any])
Seed = int | np.random.Generator | None

EPSILON = float(np.finfo(float).eps)
NO_ITEMS: Ints = np.zeros(0, dtype=np.int64)


def read_only(array: Array) -> Array:
    """The array itself, which from now on cannot be written to."""
    array.flags.writeable = False
    return array


def row_slices(n_rows: int, numbers: int, most: int) -> Iterator[slice]:
    """Yield slices of rows with at most `most` numbers in memory at a time, for `numbers` of each row."""
    step = max(most // max(numbers, 1), 1)
    return (slice(start, start + step) for start in range(0, n_rows, step))


def central_differences(function: Callable[[Floats], Floats | float], at: Floats, steps: Floats) -> Floats:
    """Return the derivatives of a function by central differences: row j is that in parameter j."""
    moves = np.diag(steps)
    rows = [(function(at + move) - function(at - move)) / (2 * move.sum()) for move in moves]
    return np.array(rows)
