"""Which items go together and which stand in for each other: the lift of every pair as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError, whole_number
from dpplearn.models.meetings import together
from dpplearn.models.model import SetModel
from dpplearn.plots.figures import new_figure, styled
from dpplearn.plots.layout import by_profile, names, times
from dpplearn.plots.style import DIAGONAL, DIVERGING, LETTER
from dpplearn.tools.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

MOST = 50  # items, unless more are asked for: their names can be read
NAMED, NAME = 80, 44  # items, beyond which there is no room for names; characters of a name
LEAST_RANGE, MOST_RANGE = 1, 4  # of the colours, in doublings of chance: from ½ to 2, and from 1/16 to 16
TYPICAL = 0.98  # of the pairs have colours that tell them apart; the few beyond have the last one


def lift(model: SetModel, top: int | None = None, figure: Figure | None = None) -> Figure:
    """How many times as often as by chance a set holds both of two items, P(i, j)/(P(i) P(j)).

    Parameters
    ----------
    model
        A `Mixture` or a `DPP`; in a DPP no lift is above 1.
    top
        Of so many of the likeliest items; by default of 50.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map: blue above 1, for items that go together; red below, for those that stand in for each other. Items
        that go with the same others are side by side. Columns have the numbers of the rows.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), ["cot", "crib"])
    >>> [label.get_text() for label in lift(dpp).axes[0].get_yticklabels()]
    ['cot  1', 'crib  2']
    """
    chosen = _likeliest(model, MOST if top is None else top)
    doublings = _doublings(model, chosen)
    order = by_profile(doublings)
    chosen, doublings = chosen[order], doublings[np.ix_(order, order)]
    others = doublings[~np.eye(len(chosen), dtype=bool)]
    reach = float(np.clip(np.quantile(np.abs(others), TYPICAL) if len(others) else 0, LEAST_RANGE, MOST_RANGE))
    np.fill_diagonal(doublings, np.nan)
    labels = names(model.catalogue, chosen, NAME) if len(chosen) <= NAMED else []
    with styled():
        side = max(1.6 + 0.15 * len(chosen), 4) if labels else 7.0
        figure = figure or new_figure(side + 1.5 + LETTER * max(map(len, labels), default=0), side + 0.2)
        axes = figure.subplots()
        image = axes.imshow(doublings, cmap=DIVERGING, vmin=-reach, vmax=reach, interpolation="nearest")
        axes.set_facecolor(DIAGONAL)
        _name(axes, labels)
        if not labels:
            axes.set_ylabel(f"the {len(chosen)} likeliest items, those that go with the same others side by side")
        _scale(figure, axes, image, reach)
    return figure


def _likeliest(model: SetModel, top: int) -> Ints:
    """Positions of the likeliest items, those of probability zero left out: with them nothing is by chance."""
    marginals = model.marginals()
    best = np.argsort(-marginals, kind="stable")[: whole_number("top", top, 1)]
    best = best[marginals[best] > 0]
    if len(best) < 2:
        raise InputError(
            f"{count(len(best), 'item')} to show, and a lift is of two; expected two or more that can be in a set"
        )
    return best


def _doublings(model: SetModel, chosen: Ints) -> Floats:
    """log₂ of the lift of every two; what is never together is far beyond the scale. Zero on the diagonal."""
    found = np.log2(np.maximum(together(model.law, nonempty=model.nonempty, items=chosen).lift, 2.0**-20))
    np.fill_diagonal(found, 0)
    return found


def _name(axes: Axes, labels: list[str]) -> None:
    numbers = [str(place) for place in range(1, len(labels) + 1)]
    axes.set_yticks(range(len(labels)), [f"{name}  {number}" for name, number in zip(labels, numbers, strict=True)])
    axes.set_xticks(range(len(labels)), numbers, rotation=90 if len(labels) > 20 else 0)
    axes.tick_params(length=0, labelsize=7)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)


def _scale(figure: Figure, axes: Axes, image: AxesImage, reach: float) -> None:
    """The colours' meaning, in words at both ends."""
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, extend="both")
    whole = range(-int(reach), int(reach) + 1)
    bar.set_ticks(list(whole), labels=[times(each) for each in whole])
    bar.ax.tick_params(labelsize=7)
    bar.set_label("together so many times as often as by chance\n← stand in for each other · go together →", size=7)
