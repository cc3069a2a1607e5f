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
YES_NO = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), True),
    **dict.fromkeys(("0", "0.0", "false", "no"), False),
}
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
        return _stacked([_of_lists(number, each) for number, each in enumerate(slates)])
    return _stacked(_of_table(slates))


Slate = tuple[list[Any], list[float], list[bool]]


def _of_lists(number: int, slate: Any) -> Slate:
    try:
        items, scores, chosen = slate
        items, scores, chosen = list(items), [float(score) for score in scores], list(chosen)
    except (TypeError, ValueError):
        raise InputError(f"slate {number} is {slate!r}; {EXPECTED}") from None
    if len(items) != len(scores):
        raise InputError(f"slate {number} has {count(len(items), 'candidate')} and {count(len(scores), 'score')}")
    unknown = [item for item in chosen if item not in items]
    if unknown:
        raise InputError(f"slate {number} has {unknown[0]!r} chosen, which is no candidate of it")
    return items, scores, [item in chosen for item in items]


def _of_table(table: Any) -> list[Slate]:
    read = read_table(table)
    source, columns = read.source, read.columns
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputError(f"{source} has the columns {', '.join(columns)}, but not {', '.join(missing)}; {EXPECTED}")
    found: dict[Any, Slate] = {}
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    for row, (slate, item, score, chosen) in enumerate(rows, start=1):
        if slate is None or item is None:
            missing_in = "slate" if slate is None else "item"
            raise InputError(f"row {row} of {source} has no {missing_in}; expected one in each")
        items, scores, taken = found.setdefault(slate, ([], [], []))
        items.append(item)
        scores.append(_score(score, source, row))
        taken.append(_chosen(chosen, source, row))
    return list(found.values())


def _score(value: Any, source: str, row: int) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"row {row} of {source} has the score {value!r}; expected a number") from None


def _chosen(value: Any, source: str, row: int) -> bool:
    known = YES_NO.get(str(value).lower())
    if known is None:
        raise InputError(f"row {row} of {source} has {value!r} as chosen; expected 1 or 0, true or false")
    return known


def _catalogue(items: set[Any]) -> Catalogue:
    """Return the catalogue of names, sorted, or of nonnegative integers as positions."""
    found = Catalogue.of(sorted(items, key=lambda item: (str(type(item)), item)))
    numbers = [label for label in found.labels if isinstance(label, int)]
    return Catalogue.numbered(max(numbers) + 1) if numbers and min(numbers) >= 0 else found


def _stacked(slates: list[Slate]) -> Slates:
    if not slates:
        raise InputError(f"there are no slates; {EXPECTED}")
    catalogue = _catalogue({as_label(item) for items, _, _ in slates for item in items})
    shape = len(slates), max(len(items) for items, _, _ in slates)
    found = Slates(catalogue, np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    for row, (items, scores, chosen) in enumerate(slates):
        n = len(items)
        try:
            found.items[row, :n] = catalogue.positions(items)
        except InputError as error:
            raise InputError(f"slate number {row}: {error}") from None
        if not np.isfinite(scores).all():
            raise InputError(f"slate number {row} has a score that is not a finite number; leave its item out")
        found.scores[row, :n], found.chosen[row, :n], found.there[row, :n] = scores, chosen, True
    return found
