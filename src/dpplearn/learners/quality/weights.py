"""QualityWeights: the weights of `fit_quality` with standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpplearn.arrays import Floats
from dpplearn.utils.text import Part, Result, TextTable, count, number

MAX_ROWS_SHOWN = 20
WEIGHTS = "Log-odds per unit: with 1 more, the odds of an item are e times as high, apart from repulsion."
STRENGTHS = "How strongly similar items repel each other, from 0 (not at all) to 1."


class Weight(NamedTuple):
    """One weight with its standard error."""

    name: str
    weight: float
    standard_error: float


@dataclass(frozen=True, eq=False, repr=False)
class QualityWeights(Result):
    """The weights of quality, u = F θ, and the strengths of similarities. Printed, it is a table.

    A weight is in log-odds: of an item on its own; of a feature, per standard deviation of a number, or for a category
    relative to the most frequent one. Standard errors are NaN for a strength at 0 or 1, for weights that the baskets do
    not determine, such as those of collinear features, and for all weights where the strength of "uniform" is 1.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10
    >>> weights = dl.fit_quality(baskets).quality
    >>> [each.name for each in weights.rows]
    ['bib', 'cot', 'crib']
    """

    names: tuple[str, ...]
    weights: Floats  # (n_weights,)
    standard_errors: Floats
    strength_names: tuple[str, ...]
    strengths: Floats
    strength_errors: Floats
    ridge: float | None = None  # on the weights of features; None with one weight per item

    @property
    def rows(self) -> list[Weight]:
        """The weights, in order."""
        return _rows(self.names, self.weights, self.standard_errors)

    @property
    def strength_rows(self) -> list[Weight]:
        """The strengths: of "uniform", how alike all items are; of a similarity, its share of the rest."""
        return _rows(self.strength_names, self.strengths, self.strength_errors)

    def __repr__(self) -> str:
        strengths = count(len(self.strength_names), "strength")
        return f"QualityWeights({count(len(self.names), 'weight')}, {strengths} of similarity)"

    def to_dict(self) -> dict[str, Any]:
        """Return weights, strengths and ridge as plain values."""
        weights, strengths = ([row._asdict() for row in rows] for rows in (self.rows, self.strength_rows))
        return {"weights": weights, "strengths": strengths, "ridge": self.ridge}

    def tables(self) -> Iterator[Part]:
        """Yield a table of the weights, the largest first, and a table of the strengths."""
        rows = sorted(self.rows, key=lambda row: -row.weight)
        yield _table("Weights of quality", WEIGHTS, rows[:MAX_ROWS_SHOWN])
        if len(rows) > MAX_ROWS_SHOWN:
            yield f"{count(len(rows) - MAX_ROWS_SHOWN, 'weight')} more not shown."
        if self.ridge is not None:
            yield f"Ridge penalty on the weights of features: {self.ridge:.3g}."
        if self.strength_names:
            yield _table("Strengths of similarities", STRENGTHS, self.strength_rows)


def _rows(names: tuple[str, ...], values: Floats, errors: Floats) -> list[Weight]:
    return list(map(Weight, names, values.tolist(), errors.tolist()))


def _table(title: str, meaning: str, rows: list[Weight]) -> TextTable:
    cells = [(row.name, *(number(value, 3) for value in row[1:])) for row in rows]
    return TextTable(title, meaning, ["", "value>", "standard error>"], cells)
