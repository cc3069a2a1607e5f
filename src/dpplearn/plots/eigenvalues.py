"""The eigenvalues of a model, and the sizes of its sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.plots.figures import needs_dpp, new_figure, styled, whole_numbers
from dpplearn.plots.style import KA, OURS, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE = 1e-8  # eigenvalues closer than this to 0 or 1 are drawn at the edge


def spectrum(dpp: DPP, figure: Figure | None = None) -> Figure:
    """The eigenvalues of K, largest first, on a scale of log-odds; and the distribution of the size of a set.

    Parameters
    ----------
    dpp
        A model.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        Eigenvalues on the left, sizes on the right.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> [axes.get_ylabel() for axes in spectrum(dpp).axes]
    ['eigenvalue (scale of log-odds)', 'probability']
    """
    needs_dpp(dpp, "a spectrum", "sizes")
    lam = np.sort(dpp.kernel.eigenvalues)[::-1]
    with styled():
        figure = figure or new_figure(9.4, 3.8)
        left, right = figure.subplots(1, 2)
        left.set_yscale("logit")
        left.set_ylim(_with_room(np.clip(lam, EDGE, 1 - EDGE)))
        inside = np.flatnonzero((lam >= EDGE) & (lam <= 1 - EDGE))
        left.plot(inside + 1, lam[inside], "o", color=OURS, ms=3)
        for beyond, marker, limit in ((lam < EDGE, "v", 0), (lam > 1 - EDGE, "^", 1)):
            at = np.flatnonzero(beyond)
            if len(at):
                said = f"{len(at)} at {limit}" if (lam[at] == limit).all() else f"{len(at)} within {EDGE:g} of {limit}"
                left.plot(at + 1, np.clip(lam[at], EDGE, 1 - EDGE), marker, color=PAPER, ms=4, label=said)
                left.legend(loc="upper right")
        left.set_xlabel(f"{len(lam)} eigenvalues of K, largest first")
        left.set_ylabel("eigenvalue (scale of log-odds)")
        _sizes(right, dpp)
    return figure


def _with_room(probabilities: Floats) -> tuple[float, float]:
    """The range of probabilities, and a little more on the scale of log-odds."""
    low, high = probabilities.min(), probabilities.max()
    return float(low / (low + 2 * (1 - low))), float(2 * high / (2 * high + 1 - high))


def sizes(model: SetModel, figure: Figure | None = None) -> Figure:
    """The distribution of the size of a set.

    Parameters
    ----------
    model
        A `Mixture` or a `DPP`.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        One bar per size, as far as it can be seen.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> sizes(dpp).axes[0].get_xlabel()
    'items in a set'
    """
    with styled():
        figure = figure or new_figure(5.4, 3.8)
        _sizes(figure.subplots(), model)
    return figure


def _sizes(axes: Axes, model: SetModel) -> None:
    """As far as a bar can be seen."""
    law = model.size_distribution
    seen = law[: np.flatnonzero(law > law.max() / 500).max() + 2]
    axes.bar(np.arange(len(seen)), seen, color=OURS)
    axes.axvline(model.expected_size, color=KA, lw=1.2, label=f"expected size {model.expected_size:.2f}")
    axes.set_xlabel("items in a set")
    axes.set_ylabel("probability")
    whole_numbers(axes)
    axes.margins(y=0.12)  # for the legend
    axes.legend(loc="upper right")
