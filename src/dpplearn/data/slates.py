"""Slates: lists shown by another recommender, with its scores and the items that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.catalogue import Catalogue, as_label
from dpplearn.data.item_tables import read_table
from dpplearn.errors import InputError
from dpplearn.utils.text import count

COLUMNS = ("slate", "item", "score", "chosen")
CHOSEN = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
EXPECTED = (
    "expected a table (a DataFrame, a dict of columns, or a path to CSV or Parquet) with a row per candidate and the "
    "columns slate, item, score and chosen, or a list of (candidates, scores, chosen)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Slates:
    """Candidates of every slate as positions in a catalogue, their scores, and which were chosen.

    Shorter slates are padded; `there` is False at the padding.

    Examples
    --------
    >>> slates = read_slates([(["cot", "crib"], [0.9, 0.4], ["cot"]), (["bib", "cot"], [0.8, 0.1], [])])
    >>> slates
    Slates(2 slates of 2 candidates on average, 1 item chosen)
    """

    catalogue: Catalogue
    items: Ints  # (n_slates, n)
    scores: Floats  # (n_slates, n)
    chosen: Bools  # (n_slates, n)
    there: Bools  # (n_slates, n)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        mean = self.there.sum() / max(len(self), 1)
        chosen = count(int(self.chosen.sum()), "item")
        return f"Slates({count(len(self), 'slate')} of {mean:.3g} candidates on average, {chosen} chosen)"


def read_slates(slates: Any) -> Slates:
    """Read slates from a long table or a list.

    Parameters
    ----------
    slates
        A table with a row per candidate and the columns slate, item, score and chosen (1 or 0, true or false): a pandas
        or polars DataFrame, an Arrow table, a dict of columns, or a path to CSV or Parquet. Or a list of (candidates,
        scores, chosen), one per slate.

    Returns
    -------
    Slates
        Their items are names in the order of the alphabet, or positions if they are integers from 0.

    Examples
    --------
    >>> table = {"slate": [1, 1, 2], "item": ["cot", "bib", "cot"], "score": [0.5, 0.4, 0.2], "chosen": [1, 0, 0]}
    >>> read_slates(table).chosen.tolist()
    [[True, False], [False, False]]
    """
    if isinstance(slates, Slates):
        return slates
    if isinstance(slates, Sequence) and not isinstance(slates, str):
        rows = [row for slate in enumerate(slates) for row in _rows(*slate)]
    else:
        rows = _rows_of_table(slates)
    return _stacked(rows)


Row = tuple[Any, Any, Any, Any]  # slate, item, score, chosen


def _rows(number: int, slate: Any) -> list[Row]:
    """Return the rows of (candidates, scores, chosen)."""
    try:
        items, scores, chosen = map(list, slate)
        if set(items) >= set(chosen):
            return [(number, item, score, item in chosen) for item, score in zip(items, scores, strict=True)]
    except (TypeError, ValueError):
        pass
    raise InputError(f"slate {number} is {slate!r}; expected (candidates, a score for each, the chosen candidates)")


def _rows_of_table(table: Any) -> list[Row]:
    read = read_table(table)
    missing = [name for name in COLUMNS if name not in read.columns]
    if missing or None in read.columns["slate"]:
        raise InputError(f"{read.source} has no {', '.join(missing) or 'slate in some row'}; {EXPECTED}")
    return list(zip(*(read.columns[name] for name in COLUMNS), strict=True))


def _stacked(rows: list[Row]) -> Slates:
    slates: dict[Any, list[Row]] = {}
    for row in rows:
        slates.setdefault(row[0], []).append(row)
    if not slates:
        raise InputError(f"there are no slates; {EXPECTED}")
    catalogue = Catalogue.of(sorted({as_label(row[1]) for row in rows}, key=str))
    numbers = [label for label in catalogue.labels if isinstance(label, int)]
    if numbers and min(numbers) >= 0:  # positions
        catalogue = Catalogue.numbered(max(numbers) + 1)
    shape = len(slates), max(map(len, slates.values()))
    found = Slates(catalogue, np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    for number, (slate, candidates) in enumerate(slates.items()):
        n, (_, items, scores, chosen) = len(candidates), zip(*candidates, strict=True)
        try:
            found.items[number, :n] = catalogue.positions(items)
            found.scores[number, :n] = np.asarray_chkfinite(scores, dtype=float)
            found.chosen[number, :n] = [CHOSEN[str(each).lower()] for each in chosen]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"slate {slate!r}: {error}; expected distinct items, finite scores, and 1 or 0 as chosen"
            ) from None
        found.there[number, :n] = True
    return found
