"""The spectrum of a DPP, and the distribution of the size of a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.plots.figure import MODEL, OTHER, drawing, integer_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE = 1e-8  # eigenvalues closer than this to 0 or 1 are drawn at the edge
MIN_HEIGHT = 1 / 500  # of the highest bar; smaller bars at the end are left out


def spectrum(dpp: DPP, figure: Figure | None = None) -> Figure:
    """Plot the eigenvalues of K, largest first, on a log-odds scale.

    Parameters
    ----------
    dpp : DPP
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> spectrum(dpp).axes[0].get_ylabel()
    'eigenvalue (log-odds scale)'
    """
    if not hasattr(dpp, "kernel"):
        raise InputError(f"spectrum needs a DPP, got a {type(dpp).__name__}; use 'sizes', or fit a DPP (fit_dpp)")
    lam = np.sort(dpp.kernel.eigenvalues)[::-1]
    drawn = np.clip(lam, EDGE, 1 - EDGE)
    with drawing(figure, 5.4, 3.8) as (figure, axes):
        axes.set_yscale("logit")
        low, high = drawn.min(), drawn.max()  # a factor of 2 in the odds is left free on either side
        axes.set_ylim(float(low / (low + 2 * (1 - low))), float(2 * high / (2 * high + 1 - high)))
        inside = np.flatnonzero((lam >= EDGE) & (lam <= 1 - EDGE))
        axes.plot(inside + 1, lam[inside], "o", color=MODEL, ms=3)
        for beyond, marker, limit in ((lam < EDGE, "v", 0), (lam > 1 - EDGE, "^", 1)):
            at = np.flatnonzero(beyond)
            if len(at):
                label = f"{len(at)} within {EDGE:g} of {limit}"
                axes.plot(at + 1, drawn[at], marker, color=OTHER, ms=4, label=label)
                axes.legend(loc="upper right")
        axes.set(xlabel=f"{len(lam)} eigenvalues of K, largest first", ylabel="eigenvalue (log-odds scale)")
        integer_axis(axes)
    return figure


def sizes(model: SetModel, figure: Figure | None = None) -> Figure:
    """Plot the distribution of the size of a set.

    Parameters
    ----------
    model : DPP or Mixture
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> sizes(dpp).axes[0].get_xlabel()
    'items in a set'
    """
    p = model.size_distribution
    shown = p[: np.flatnonzero(p > p.max() * MIN_HEIGHT).max() + 2]
    with drawing(figure, 5.4, 3.8) as (figure, axes):
        axes.bar(np.arange(len(shown)), shown, color=MODEL)
        axes.axvline(model.expected_size, color=OTHER, lw=1.2, label=f"mean {model.expected_size:.2f}")
        axes.set(xlabel="items in a set", ylabel="probability")
        integer_axis(axes)
        axes.margins(y=0.15)  # room for the legend
        axes.legend(loc="upper right")
    return figure
