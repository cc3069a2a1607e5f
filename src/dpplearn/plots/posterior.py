"""Posterior of the parameters of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.learners.posterior import Posterior
from dpplearn.plots.figure import INDEPENDENT, MODEL, names, new_figure, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, BINS = 3, 40  # of the histograms
TAIL = 0.002  # share of the draws that a histogram leaves out at either end


def marginals(posterior: Posterior, figure: Figure | None = None) -> Figure:
    """Plot the posterior of every parameter with its median and 90 % interval, and the prior.

    Parameters
    ----------
    posterior : Posterior
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = dl.Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
    >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
    >>> found = dl.posterior(baskets, features=table, draws=100, rng=0)
    >>> [axes.get_xlabel() for axes in marginals(found).axes]
    ['(all items)', 'price', 'log length']
    """
    n = len(posterior.names)
    across = min(n, COLUMNS)
    down = -(-n // across)
    with styled():
        figure = figure or new_figure(max(3.2 * across, 6.4), 0.3 + 2.4 * down)
        every = figure.subplots(down, across, squeeze=False).ravel()
        for place, axes in enumerate(every[:n]):
            _marginal(axes, posterior, place)
        for axes in every[n:]:
            axes.remove()
        title(figure, "Posterior (blue): median and 90% interval (dotted); prior (grey)")
    return figure


def _marginal(axes: Axes, posterior: Posterior, place: int) -> None:
    low, *middle, high = posterior.quantiles([TAIL, 0.05, 0.5, 0.95, 1 - TAIL])[:, place].tolist()
    edges = np.linspace(low, high, BINS + 1).tolist()
    axes.hist(posterior.draws[:, place], edges, weights=posterior.weights, density=True, color=MODEL, alpha=0.5)
    x, mean, sd = np.linspace(low, high, 200), posterior.kernel.mean[place], posterior.kernel.sd[place]
    axes.plot(x, np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi)), color=INDEPENDENT)
    for value, style in zip(middle, (":", "-", ":"), strict=True):
        axes.axvline(value, color=MODEL, lw=1, ls=style)
    axes.set_xlabel(names([posterior.names[place]])[0])
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=4)  # labels of more ticks overlap
