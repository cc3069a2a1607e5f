"""Which items a model keeps apart: the kernel as a heat map, substitutes as a map of points."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.models.dpp import DPP, ROUNDING
from dpplearn.plots.figures import needs_dpp, new_figure, styled, text_widths
from dpplearn.plots.heat import beyond_chance, heat_map, zero_marked
from dpplearn.plots.layout import by_cluster, names, placed, pushed_apart, strongest_pairs
from dpplearn.plots.style import DIVERGING, KA, OURS
from dpplearn.tools.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALE = "apart: share of the meetings by chance that are missing; below 0, they meet more often"
MAP_ITEMS, AROUND = 40, 15  # items of a map, and around one
MAP_NAME, RAGGED = 24, 8  # characters of each of two lines of a name on a map, and that may be lost between words
MAP_FONT, GAP = 7, 6  # points: the size of the names, and how far from its point a name begins
ROOM = 3.0  # of a map, as a multiple of what the names take
POINTS = 72  # per inch
LEAST = 290  # points, the width of a map at least
SMALL = 3.9  # points that a letter of a note takes


def kernel_map(dpp: DPP, top: int | None = None, figure: Figure | None = None) -> Figure:
    """How much every two items repel each other, alike ones side by side.

    Parameters
    ----------
    dpp
        A model.
    top
        Of so many of the likeliest items; by default of all.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map: red for items that are kept apart, white for those that meet as often as by chance, grey where they
        met as chance explains, as far as the model tells what it was learned from. More than 80 items are named in
        blocks. Columns have the numbers of the rows.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), ["cot", "crib"])
    >>> [label.get_text() for label in kernel_map(dpp).axes[0].get_yticklabels()]
    ['cot  1', 'crib  2']
    """
    needs_dpp(dpp, "a heat map of one kernel", "lift")
    chosen = _likeliest(dpp, len(dpp.items) if top is None else top)
    seen = beyond_chance(dpp, chosen)
    order = by_cluster(np.where(seen, _apart(dpp, chosen), 0) if seen.any() else _apart(dpp, chosen))
    chosen, seen = chosen[order], seen[np.ix_(order, order)]
    shares = dpp.together.substitution[np.ix_(chosen, chosen)]
    reach = float(np.clip(np.ceil(10 * np.abs(shares).max()) / 10, 0.1, 1))
    title = f"What the model keeps apart, of {count(len(chosen), 'item')}; those of a cluster are side by side"
    with styled():
        drawn = heat_map(dpp, chosen, shares, seen, figure, title=title, reach=reach, colours=f"{DIVERGING}_r")
        ticks = np.linspace(-reach, reach, 5)
        zero_marked(drawn, ticks.tolist(), [f"{100 * each:.0f} %".replace("-", "−") for each in ticks], SCALE)
    return drawn.figure


def substitutes_map(
    dpp: DPP, item: Label | None = None, top: int | None = None, figure: Figure | None = None
) -> Figure:
    """Items as points, near each other where they repel each other, with lines for the strongest pairs.

    Parameters
    ----------
    dpp
        A model.
    item
        Of this item and those that it repels most; by default of the likeliest items.
    top
        Of how many items; by default of the 40 likeliest, or of 15 around `item`.
    figure
        A matplotlib figure to draw into; by default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A map of points with the names of the items.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), ["cot", "crib"])
    >>> [text.get_text() for text in substitutes_map(dpp).axes[0].texts][:2]
    ['cot', 'crib']
    """
    needs_dpp(dpp, "a map of substitutes", "lift")
    if item is None:
        chosen = _likeliest(dpp, MAP_ITEMS if top is None else top)
    else:
        chosen = _around(dpp, item, AROUND if top is None else top)
    apart = _apart(dpp, chosen)
    labels = [_in_two_lines(name) for name in names(dpp.catalogue, chosen, 2 * MAP_NAME - RAGGED)]
    with styled():
        boxes = _boxes(labels)
        points = pushed_apart(placed(apart) * _extent(boxes), boxes)
        low, high = (points - boxes * [0, 0.5] - 8).min(axis=0), (points + boxes * [1, 0.5] + 4).max(axis=0)
        high[0] = max(high[0], low[0] + LEAST)
        seen = np.where(beyond_chance(dpp, chosen), apart, 0)
        said = _said(dpp, bool(seen.any()), int((high - low)[0] / SMALL))
        low[1] -= 1.4 * MAP_FONT * (said.count("\n") + 1) + 4
        figure = figure or new_figure(*((high - low) / POINTS))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        _lines(axes, points, seen)
        likely = dpp.marginals()[chosen]
        colours = [KA if item is not None and place == 0 else OURS for place in range(len(chosen))]
        axes.scatter(points[:, 0], points[:, 1], s=8 + 80 * likely / likely.max(), c=colours, linewidths=0, zorder=2)
        behind = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        for (x, y), name in zip(points, labels, strict=True):
            axes.text(x + GAP, y, name, va="center", size=MAP_FONT, linespacing=1.1, bbox=behind, zorder=3)
        axes.text(low[0] + 4, low[1] + 4, said, size=MAP_FONT, color="#555555")
    return figure


def _said(dpp: DPP, any_pair: bool, width: int) -> str:
    what = "lines: pairs that repel each other most" if any_pair else "no two items repel each other"
    beyond = "" if dpp.training is None else ", beyond what chance explains"
    sentences = (f"{what}{beyond}; points: larger for likelier items", dpp.caution)
    return "\n".join(textwrap.fill(each, width) for each in sentences if each)


def _likeliest(dpp: DPP, top: int) -> Ints:
    """Positions of the likeliest items, those of probability zero left out: they repel nothing."""
    marginals = dpp.marginals()
    if not marginals.any():
        raise InputError("every item has probability zero under this model, so none repels another")
    best = np.argsort(-marginals, kind="stable")[: whole_number("top", top, 1)]
    return best[marginals[best] > 0]


def _apart(dpp: DPP, chosen: Ints) -> Floats:
    """How far every two are kept apart; 0 for those that meet as often as by chance, or more often."""
    found = dpp.together.substitution[np.ix_(chosen, chosen)]
    return np.where(found > ROUNDING, found, 0)


def _around(dpp: DPP, item: Label, top: int) -> Ints:
    """The item first, then its substitutes."""
    others = [each.item for each in dpp.substitutes(item, whole_number("top", top, 1))]
    return dpp.catalogue.positions([item, *others])


def _in_two_lines(name: str) -> str:
    return "\n".join(textwrap.wrap(name, MAP_NAME, max_lines=2, placeholder="…"))


def _boxes(labels: Sequence[str]) -> Floats:
    """The width and height that a point and its name take, in points."""
    sizes = []
    for name in labels:
        lines = name.split("\n")
        sizes.append((GAP + max(text_widths(lines, MAP_FONT)) + 8, 1.2 * MAP_FONT * len(lines) + 5))
    return np.array(sizes)


def _extent(boxes: Floats) -> Floats:
    """Half the width and height of a map with room for them."""
    area = ROOM * boxes.prod(axis=1).sum()
    return np.sqrt([1.4 * area, area / 1.4]) / 2


def _lines(axes: Axes, points: Floats, apart: Floats) -> None:
    """As many as there are items, the stronger the wider."""
    pairs = strongest_pairs(apart, len(points))
    strength = np.array([apart[i, j] for i, j in pairs])
    width = 0.5 + 2.5 * (strength - strength.min()) / max(np.ptp(strength), 1e-9) if pairs else strength
    for (i, j), wide in zip(pairs, width, strict=True):
        axes.plot(*points[[i, j]].T, color="#999999", lw=wide, alpha=0.7, zorder=1)
