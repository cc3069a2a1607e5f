"""What was learned of parameters, with how sure that is: weights of quality, and posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import whole_number
from dpplearn.learners.posterior import Posterior
from dpplearn.learners.quality.weights import QualityWeights, Weight
from dpplearn.plots.figures import new_figure, styled
from dpplearn.plots.layout import short
from dpplearn.plots.style import INDEPENDENT, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST, NAME = 30, 44  # weights, unless more are asked for; characters of a name
COLUMNS, BINS = 3, 40  # of a posterior's pictures
TAIL = 0.002  # of a parameter's draws, that its picture leaves out at either end


def quality_weights(weights: QualityWeights, top: int | None = None, figure: Figure | None = None) -> Figure:
    """The weights of quality with their 95% intervals, and the strengths of similarities.

    Parameters
    ----------
    weights
        `quality` of a fit.
    top
        So many of the largest; by default 30.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        Weights on the left, largest first; where strengths were learned, these on the right.

    Examples
    --------
    >>> import dpplearn as dl
    >>> fit = dl.fit_quality([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> [label.get_text() for label in quality_weights(fit.quality).axes[1].get_yticklabels()]
    ['uniform']
    """
    rows = sorted(weights.rows, key=lambda row: -row.weight)[: whole_number("top", MOST if top is None else top, 1)]
    strengths = weights.strength_rows
    with styled():
        figure = figure or new_figure(9.4 if strengths else 6.4, 1.2 + 0.22 * max(len(rows), len(strengths)))
        left, *right = figure.subplots(1, 1 + bool(strengths), squeeze=False)[0]
        _intervals(left, rows, "weight in log-odds, and 95% interval")
        left.axvline(0, color=INDEPENDENT, lw=0.8)
        for axes in right:
            _intervals(axes, strengths, "strength of similarity")
            axes.set_xlim(-0.02, 1.02)
        figure.suptitle("How much each is worth, largest first", x=0.01, ha="left", size=9)
    return figure


def _intervals(axes: Axes, rows: list[Weight], what: str) -> None:
    places = np.arange(len(rows))[::-1]
    values = np.array([row.weight for row in rows])
    reach = np.nan_to_num([(row.weight - row.low, row.high - row.weight) for row in rows]).reshape(-1, 2).T
    axes.errorbar(values, places, xerr=np.maximum(reach, 0), fmt="o", color=OURS, ms=3, lw=1)
    axes.set_yticks(places, short([row.name for row in rows], NAME))
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(what)


def marginals(posterior: Posterior, figure: Figure | None = None) -> Figure:
    """The posterior of every parameter, its median and 90% interval, and the prior.

    Parameters
    ----------
    posterior
        From `dpplearn.posterior`.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A picture per parameter: a histogram of the draws, the prior as a line.

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
        figure = figure or new_figure(3.2 * across, 0.2 + 2.4 * down)
        every = figure.subplots(down, across, squeeze=False).ravel()
        for place, axes in enumerate(every[:n]):
            _marginal(axes, posterior, place)
        for axes in every[n:]:
            axes.remove()
        title = "What the baskets say of each parameter: median, 90% interval (dotted), and the prior (grey)"
        figure.suptitle(title, x=0.01, ha="left", size=9)
    return figure


def _marginal(axes: Axes, posterior: Posterior, place: int) -> None:
    low, *middle, high = posterior.quantiles([TAIL, 0.05, 0.5, 0.95, 1 - TAIL])[:, place].tolist()
    edges = np.linspace(low, high, BINS + 1).tolist()
    axes.hist(posterior.draws[:, place], edges, weights=posterior.weights, density=True, color=OURS, alpha=0.5)
    x = np.linspace(low, high, 200)
    axes.plot(x, _normal(x, float(posterior.kernel.mean[place]), float(posterior.kernel.sd[place])), color=INDEPENDENT)
    for value, style in zip(middle, (":", "-", ":"), strict=True):
        axes.axvline(value, color=OURS, lw=1, ls=style)
    axes.set_xlabel(posterior.names[place].replace("$", r"\$"))
    axes.set_yticks([])


def _normal(x: Floats, mean: float, sd: float) -> Floats:
    return np.asarray(np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi)))
