"""The log-likelihood during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.models.model import SetModel
from dpplearn.plots.figure import INDEPENDENT, MODEL, OTHER, drawing, integer_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MARKED = 40  # iterations; longer curves have no markers


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
            axes.plot(len(history) - 1, level, "*", color=MODEL, ms=9, label=f"{name}: {_minus(level)}")
        if (level := learned.independent_log_likelihood) is not None:
            axes.axhline(level, color=INDEPENDENT, lw=1, ls="--", label=f"independent items: {_minus(level)}")
        axes.set(xlabel="iteration", ylabel="mean log-likelihood per basket")
        axes.set_ylim(_limits([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]))
        integer_axis(axes)
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
    axes.plot(shown, color=colour, marker=marker, ms=3, label=f"{name}: {_minus(values[-1])}{note}")


def _minus(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")
