"""Which items each segment of a mixture likes: a heat map with a column per segment."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import Segment
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.plots.figures import new_figure, styled
from dpplearn.plots.layout import names, times
from dpplearn.plots.style import DIVERGING, LETTER
from dpplearn.utils.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST, SMALL = 12, 0.005  # segments shown, and the least weight of one
EACH = 4  # items of a segment
WRAPPED = 100  # letters of a line of a note
NAME = 48  # characters of a name
REACH = 4  # doublings, of the colours: from 1/16 to 16 times as likely
DARK = 0.65  # of the way to either end, from which on a cell is so dark that its text is white


def segments(model: SetModel, top: int | None = None, figure: Figure | None = None) -> Figure:
    """What each segment likes more than the others do.

    Parameters
    ----------
    model
        A `Mixture` of two segments or more.
    top
        How many items of each segment, the most telling; by default 4.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map: a column per segment with its share of the sets and its items per set, a row per item. In each cell
        stands the chance in per cent that a set of the segment holds the item; the colour tells how many times as
        likely that is as in all sets.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.fit([["tea", "milk"], ["tea"], ["beer"], ["beer", "nuts"]] * 30, segments=2, rng=0).model
    >>> len(segments(model).axes[0].get_xticklabels())
    2
    """
    if not isinstance(model, Mixture):
        raise InputError(
            f"got a {type(model).__name__}, which knows one kind of people; learn a mixture to see segments (fit "
            "without model='dpp', learner, init and shrinkage)"
        )
    if model.n_segments < 2:
        raise InputError("the mixture has a single segment, so there is none to compare it with; learn more segments")
    found = model.segments(whole_number("top", EACH if top is None else top, 1))
    shown = max(sum(each.weight >= SMALL for each in found[:MOST]), 1)
    rows = model.catalogue.positions(dict.fromkeys(item for each in found[:shown] for item, _ in each.likes))
    if not len(rows):
        raise InputError("all segments like all items equally, so there is nothing to tell them apart by")
    p = model.segment_marginals[:shown][:, rows].T  # (n_rows, n_shown)
    doublings = np.log2(p / model.marginals()[rows][:, None])
    with styled():
        labels = names(model.catalogue, rows, NAME)
        width = 1.4 + LETTER * max(map(len, labels)) + 0.62 * shown
        figure = figure or new_figure(max(width, 5.6), 1.9 + 0.19 * len(rows))  # the sentence below takes so much
        axes = figure.subplots()
        image = axes.imshow(doublings, cmap=DIVERGING, vmin=-REACH, vmax=REACH, aspect="auto", interpolation="nearest")
        _write_chances(axes, p, doublings)
        heads = [f"{each.weight:.0%}\n{each.expected_size:.1f}" for each in found[:shown]]
        _name(axes, heads, labels)
        notes = [_what_columns_are(found[shown:], shown), textwrap.fill(model.caution, WRAPPED)]
        axes.set_xlabel("\n".join(each for each in notes if each), size=7)
        figure.suptitle("What each kind of people likes more (blue) or less (red) than all", x=0.01, ha="left", size=9)
        bar = figure.colorbar(image, ax=axes, shrink=min(1, 6 / len(rows) + 0.3), pad=0.02, extend="both")
        bar.set_ticks(list(range(-REACH, REACH + 1)), labels=[times(each) for each in range(-REACH, REACH + 1)])
        bar.ax.axhline(0, color="black", lw=1.2)
        bar.ax.tick_params(labelsize=7)
        bar.set_label("times as likely as in all sets", size=7)
    return figure


def _write_chances(axes: Axes, p: Floats, doublings: Floats) -> None:
    for (row, column), chance in np.ndenumerate(p):
        text = f"{100 * chance:.0f}" if chance >= 0.005 else "·"
        colour = "white" if abs(doublings[row, column]) > DARK * REACH else "black"
        axes.text(column, row, text, ha="center", va="center", size=6, color=colour)


def _name(axes: Axes, heads: list[str], labels: list[str]) -> None:
    axes.set_xticks(range(len(heads)), heads, size=7)
    axes.set_yticks(range(len(labels)), labels, size=7)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)
    what = axes.annotate("share of the sets\nitems per set", (0, 1), (-4, 3), "axes fraction", "offset points")
    what.set(ha="right", va="bottom", size=7, color="#555555")


def _what_columns_are(left_out: Sequence[Segment], shown: int) -> str:
    said = f"{count(shown, 'segment')}; numbers: the chance, in per cent, that a set of the segment holds the item"
    weight = sum(each.weight for each in left_out)
    how_much = f"{100 * weight:.1f} %" if weight >= 0.001 else "less than 0.1 %"
    if not left_out:
        return said
    have = "more segment has {} of the sets" if len(left_out) == 1 else "more segments have {} of the sets together"
    return f"{said}\n{len(left_out)} {have.format(how_much)}"
