"""Reliability diagrams: predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT as INDEPENDENT_ITEMS
from dpplearn.evaluation.calibration import Reliability
from dpplearn.plots.figure import INDEPENDENT, MODEL, OTHER, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELLED_RANGE = 500  # ratio of the ends of an axis up to which 1, 2 and 5 are labelled
COLOURS = (MODEL, OTHER, "#009e73", "#cc79a7", "#e69f00")


def reliability_diagram(tables: Mapping[str, Reliability], figure: Figure | None = None) -> Figure:
    """Plot predicted probabilities against observed frequencies with 95 % intervals.

    Calibrated probabilities are on the diagonal. Frequencies of zero are drawn at the edge.

    Parameters
    ----------
    tables : dict of str to Reliability
        Tables to compare, by name: ``evaluate(model, test).reliability["model"]`` has those of one model for all tasks.
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> found = dl.evaluate(dpp, [["cot"], ["crib"], ["cot"]])
    >>> reliability_diagram({"model": found.reliability["model"]["given_one"]}).axes[0].get_xlabel()
    'predicted probability'
    """
    rows = [row for table in tables.values() for row in table.rows]
    if not rows:
        raise InputError("there are no predictions to compare: no basket contains an item that the model can contain")
    positive = [value for row in rows for value in (row.predicted, row.observed) if value > 0]
    ends = (min(positive, default=0.5) / 2, min(2 * max(row.high for row in rows), 1))
    colours = {**dict(zip(tables, cycle(COLOURS), strict=False)), INDEPENDENT_ITEMS: INDEPENDENT}
    with drawing(figure, 5.4, 5.4) as (figure, axes):
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.loglog(ends, ends, color=INDEPENDENT, lw=0.8, ls="--")
        for name, table in tables.items():
            columns = np.array([(row.predicted, row.observed, row.low, row.high) for row in table.rows]).reshape(-1, 4)
            predicted, observed, low, high = np.maximum(columns, ends[0]).T
            interval = np.maximum([observed - low, high - observed], 0)
            label = f"{name}: calibration error {table.error:.2g}"
            colour = colours[name]
            axes.errorbar(predicted, observed, interval, fmt="o-", color=colour, ms=4, lw=0.8, capsize=2, label=label)
        axes.set(xlim=ends, ylim=ends, aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):  # the default labels of a short logarithmic axis overlap
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ends[1] < LABELLED_RANGE * ends[0] else (1,)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="predicted probability", ylabel="observed frequency, with 95 % interval")
        figure.legend(loc="outside upper left", fontsize=8)
    return figure
