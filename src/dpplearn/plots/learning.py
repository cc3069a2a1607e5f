"""The learning curve of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.record import History
from dpplearn.plots.figures import new_figure, styled, whole_numbers
from dpplearn.plots.style import INDEPENDENT, KA, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def learning_curve(model: SetModel, figure: Figure | None = None) -> Figure:
    """The mean log-likelihood after every iteration, also of the baskets set aside where there are any.

    The curve is that of the learner: before shrinkage for a DPP, and less the penalty for a mixture. A star at the end
    is the log-likelihood of the returned model where it differs.

    Parameters
    ----------
    model
        A model that `fit` made.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        One curve per kind of data, and a line at the level of independent items.

    Examples
    --------
    >>> import dpplearn as dl
    >>> axes = learning_curve(dl.fit_dpp([["cot"], ["crib"], ["cot", "crib"]], "em").model).axes[0]
    >>> axes.get_xlabel()
    'iteration'
    """
    history, learned = _history(model), model.learned
    mixture, shrunk = isinstance(model, Mixture), (learned.shrinkage or 0) > 0
    what = "training data, less the penalty" if mixture else "training data"
    returned = "training data alone" if mixture else "training data, after shrinkage"
    with styled():
        figure = figure or new_figure(6.4, 4)
        axes = figure.subplots()
        _curve(axes, what, history.log_likelihood, OURS)
        if not np.isnan(history.validation).all():
            _curve(axes, "data set aside", history.validation, KA)
        if (shrunk or mixture) and (level := learned.log_likelihood) is not None:
            axes.plot(len(history) - 1, level, "*", color=OURS, ms=9, label=f"{returned}: {_minus(level)}")
        if (level := learned.independent_log_likelihood) is not None:
            axes.axhline(level, color=INDEPENDENT, lw=1, ls="--", label=f"independent items: {_minus(level)}")
        axes.set_xlabel("iteration")
        axes.set_ylabel("mean log-likelihood per basket")
        axes.set_ylim(_limits([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]))
        whole_numbers(axes)
        axes.legend(loc="lower right")
    return figure


def _limits(curves: Sequence[Floats]) -> tuple[float, float]:
    """The first tenth of a curve often comes from far below: what is to be seen is the rest."""
    finite = [values[np.isfinite(values)] for values in curves if np.isfinite(values).any()]
    low = min((np.quantile(values, 0.1) for values in finite), default=-1)
    high = max((values.max() for values in finite), default=0)
    room = max(high - low, 1e-6)
    return float(low - 0.3 * room), float(high + 0.05 * room)


def _history(model: SetModel) -> History:
    if model.training is None or model.training.history is None:
        raise InputError(
            "the model has no learning curve: it was not made by fit, or by a version that kept none; fit it again"
        )
    return model.training.history


def _curve(axes: Axes, name: str, values: Floats, colour: str) -> None:
    """What is minus infinity has no point, and is said in the legend."""
    infinite = np.count_nonzero(np.isneginf(values))
    said = f", minus infinity in {infinite} of {len(values)}" if infinite else ""
    marker = "o" if len(values) < 40 else None
    shown = np.where(np.isfinite(values), values, np.nan)
    axes.plot(shown, color=colour, marker=marker, ms=3, label=f"{name}: {_minus(values[-1])} at the end{said}")


def _minus(value: float) -> str:
    """With the sign that axes have."""
    return f"{value:.4f}".replace("-", "−")
