"""Curves: training, spectrum of a kernel, sizes of sets, calibration, and the posterior of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT as INDEPENDENT_ITEMS
from dpplearn.evaluation.calibration import Reliability
from dpplearn.learners.posterior import Posterior
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.plots.figure import INDEPENDENT, MODEL, OTHER, drawing, names, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MARKED = 40  # iterations; longer curves have no markers
EDGE = 1e-8  # eigenvalues closer than this to 0 or 1 are drawn at the edge
MIN_HEIGHT = 1 / 500  # of the highest bar; smaller bars at the end are left out
LABELLED_RANGE = 500  # ratio of the ends of an axis up to which 1, 2 and 5 are labelled
COLOURS = (MODEL, OTHER, "#009e73", "#cc79a7", "#e69f00")
COLUMNS, BINS = 3, 40  # of the histograms
TAIL = 0.002  # share of the draws that a histogram leaves out at either end


def learning_curve(model: SetModel, figure: Figure | None = None) -> Figure:
    """Plot the mean log-likelihood after every iteration, also on the validation set if there was one.

    The curve is the objective of the learner: before shrinkage for a DPP, minus the penalty for a mixture. A star at
    the end is the log-likelihood of the returned model where it differs.

    Parameters
    ----------
    model : SetModel
        A model returned by a fit.
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> axes = learning_curve(dl.fit_dpp([["cot"], ["crib"], ["cot", "crib"]], "em").model).axes[0]
    >>> axes.get_xlabel()
    'iteration'
    """
    if model.training is None or model.training.history is None:
        raise InputError("the model has no training history, because it was not made by a fit")
    history, learned = model.training.history, model.learned
    penalised = model.kind == "mixture"
    with drawing(figure, 6.4, 4) as (figure, axes):
        _curve(axes, "training data minus penalty" if penalised else "training data", history.log_likelihood, MODEL)
        if not np.isnan(history.validation).all():
            _curve(axes, "validation set", history.validation, OTHER)
        if (penalised or learned.shrinkage) and (level := learned.log_likelihood) is not None:
            name = "training data" if penalised else "training data, after shrinkage"
            axes.plot(len(history) - 1, level, "*", color=MODEL, ms=9, label=f"{name}: {level:.4f}")
        if (level := learned.independent_log_likelihood) is not None:
            axes.axhline(level, color=INDEPENDENT, lw=1, ls="--", label=f"independent items: {level:.4f}")
        axes.set(xlabel="iteration", ylabel="mean log-likelihood per basket")
        axes.set_ylim(_limits([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]))
        axes.locator_params(axis="x", integer=True)
        figure.legend(loc="outside lower left", ncols=2, fontsize=8)  # a curve may cross any corner of the axes
    return figure


def _limits(curves: list[Floats]) -> tuple[float, float]:
    """Return limits that cut off the first tenth of a curve, which often starts far below the rest."""
    finite = [values[np.isfinite(values)] for values in curves if np.isfinite(values).any()]
    low = min((np.quantile(values, 0.1) for values in finite), default=-1)
    high = max((values.max() for values in finite), default=0)
    room = max(high - low, 1e-6)
    return float(low - 0.1 * room), float(high + 0.05 * room)


def _curve(axes: Axes, name: str, values: Floats, colour: str) -> None:
    """Plot the finite values, and state in the legend how many are −inf."""
    infinite = np.count_nonzero(np.isneginf(values))
    note = f" (−inf in {infinite} of {len(values)})" if infinite else ""
    shown = np.where(np.isfinite(values), values, np.nan)
    marker = "o" if len(values) < MAX_MARKED else None
    axes.plot(shown, color=colour, marker=marker, ms=3, label=f"{name}: {values[-1]:.4f}{note}")


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
        axes.locator_params(axis="x", integer=True)
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
        axes.locator_params(axis="x", integer=True)
        axes.margins(y=0.15)  # room for the legend
        axes.legend(loc="upper right")
    return figure


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
    with drawing(figure, max(3.2 * across, 6.4), 0.3 + 2.4 * down, (down, across)) as (figure, grid):
        for place, axes in enumerate(np.ravel(grid)):
            if place < n:
                _marginal(axes, posterior, place)
            else:
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
