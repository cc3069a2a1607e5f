"""Which items go together and which stand in for each other: the lift of every pair as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError, whole_number
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.relations import pair_table
from dpplearn.plots.figures import styled
from dpplearn.plots.heat import beyond_chance, heat_map, zero_marked
from dpplearn.plots.layout import by_profile, times
from dpplearn.plots.style import DIVERGING
from dpplearn.utils.text import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 50  # items, unless more are asked for: their names can be read
LEAST_RANGE, MOST_RANGE = 1, 4  # of the colours, in doublings of chance: from ½ to 2, and from 1/16 to 16
SCALE = "together so many times as often as by chance, 1: as often"
TYPICAL = 0.98  # of the pairs have colours that tell them apart; the few beyond have the last one


def lift(model: DPP | Mixture, top: int | None = None, figure: Figure | None = None) -> Figure:
    """How many times as often as by chance a set holds both of two items.

    Parameters
    ----------
    model
        A `Mixture` or a `DPP`.
    top
        Of so many of the likeliest items; by default of 50.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map: blue above 1, for items that go together; red below, for those that stand in for each other; grey
        where the items met as chance explains, as far as the model tells what it was learned from. Items that go with
        the same others are side by side, more than 80 in blocks. Columns have the numbers of the rows.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> [label.get_text() for label in lift(dpp).axes[0].get_yticklabels()]
    ['cot  1', 'crib  2']
    """
    chosen = _likeliest(model, MOST if top is None else top)
    doublings = _doublings(model, chosen)
    seen = beyond_chance(model, chosen)
    order = by_profile(np.where(seen, doublings, 0) if seen.any() else doublings)
    chosen, doublings, seen = chosen[order], doublings[np.ix_(order, order)], seen[np.ix_(order, order)]
    others = doublings[~np.eye(len(chosen), dtype=bool)]
    reach = float(np.clip(np.quantile(np.abs(others), TYPICAL) if len(others) else 0, LEAST_RANGE, MOST_RANGE))
    title = f"What goes together (blue) and what stands in for each other (red), of {count(len(chosen), 'item')}"
    with styled():
        drawn = heat_map(model, chosen, doublings, seen, figure, title=title, reach=reach, colours=DIVERGING)
        whole = range(-int(reach), int(reach) + 1)
        zero_marked(drawn, whole, [times(each) for each in whole], SCALE)
    return drawn.figure


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
    found = np.log2(np.maximum(pair_table(model.distribution, chosen, chosen).lift, 2.0**-20))
    np.fill_diagonal(found, 0)
    return found
