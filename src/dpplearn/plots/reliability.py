"""Whether the probabilities of a model come true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT as INDEPENDENT_ITEMS
from dpplearn.evaluation.calibration import Reliability
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.protocol import GIVEN_ONE
from dpplearn.models.model import SetModel
from dpplearn.plots.figures import new_figure, styled
from dpplearn.plots.style import INDEPENDENT, KA, OURS, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES = (OURS, KA, PAPER, "#009e73", "#cc79a7")


def reliability_of(model: SetModel, baskets: Baskets | Iterable[Iterable[Any]]) -> dict[str, Reliability]:
    """Whether the probabilities of a model come true on baskets, and those of independent items.

    Parameters
    ----------
    model
        A `Mixture` or a `DPP`.
    baskets
        `Baskets`, best ones that the model was not learned from, or a list of lists; items are found by label.

    Returns
    -------
    dict of str to Reliability
        Under "model" and "independent items".

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> list(reliability_of(dpp, [["cot"], ["crib"], ["cot", "crib"]]))
    ['model', 'independent items']
    """
    found = evaluate(model, baskets, tasks=(GIVEN_ONE,))
    return {name: tables[GIVEN_ONE] for name, tables in found.reliability.items()}


def reliability_diagram(tables: Mapping[str, Reliability], figure: Figure | None = None) -> Figure:
    """Probabilities predicted against the share that came true, with its interval; on the diagonal they agree.

    Parameters
    ----------
    tables
        From `reliability_of`, or the `reliability` of an evaluation.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        One series of points per table.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> axes = reliability_diagram(reliability_of(dpp, [["cot"], ["crib"], ["cot", "crib"]])).axes[0]
    >>> axes.get_xlabel()
    'probability predicted'
    """
    rows = [row for table in tables.values() for row in table.rows]
    if not rows:
        raise InputError("there is nothing to check probabilities on: no basket holds an item that the model can have")
    seen = [value for row in rows for value in (row.predicted, row.observed) if value > 0]
    ends = (min(seen, default=0.5) / 2, min(2 * max(row.high for row in rows), 1))
    colours = {**dict(zip(tables, cycle(SERIES), strict=False)), INDEPENDENT_ITEMS: INDEPENDENT}
    with styled():
        figure = figure or new_figure(5.4, 5)
        axes = figure.subplots()
        axes.loglog(ends, ends, color="#bbbbbb", lw=1)
        for name, table in tables.items():
            _reliability(axes, table, ends[0], f"{name}: calibration error {table.error:.2g}", colours[name])
        axes.set(xlim=ends, ylim=ends, aspect="equal")
        axes.set_xlabel("probability predicted")
        axes.set_ylabel("share that came true, with its 95 % interval")
        axes.legend(loc="upper left")
    return figure


def _reliability(axes: Axes, table: Reliability, least: float, name: str, colour: str) -> None:
    """What is zero stands at the edge of a logarithmic scale."""
    columns = np.array([(row.predicted, row.observed, row.low, row.high) for row in table.rows]).reshape(-1, 4)
    predicted, observed, low, high = np.maximum(columns, least).T
    spread = np.maximum([observed - low, high - observed], 0)
    axes.errorbar(predicted, observed, spread, fmt="o-", color=colour, ms=4, lw=0.8, capsize=2, label=name)
