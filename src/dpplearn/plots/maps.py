"""Which items a model keeps apart: the kernel as a heat map, substitutes as a map of points."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.models.dpp import DPP
from dpplearn.plots.figures import needs_dpp, new_figure, styled
from dpplearn.plots.layout import by_cluster, names, placed, pushed_apart, strongest_pairs
from dpplearn.plots.style import DIAGONAL, KA, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED, NAME = 60, 44  # items, beyond which a heat map has no room for names; characters of a name in it
MAP_ITEMS, AROUND = 40, 15  # items of a map, and around one
MAP_NAME = 24  # characters of each of two lines of a name on a map
MAP_FONT, GAP = 7, 6  # points: the size of the names, and how far from its point a name begins
ROOM = 3.0  # of a map, as a multiple of what the names take
POINTS = 72  # per inch


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
        A heat map, with the names of the items where there is room.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), ["cot", "crib"])
    >>> [label.get_text() for label in kernel_map(dpp).axes[0].get_yticklabels()]
    ['cot', 'crib']
    """
    needs_dpp(dpp, "a heat map of one kernel", "lift")
    chosen = _likeliest(dpp, len(dpp.items) if top is None else top)
    chosen = chosen[by_cluster(_apart(dpp, chosen))]
    shares = _apart(dpp, chosen)
    strongest = max(shares.max(), 0.01)
    np.fill_diagonal(shares, np.nan)
    named = len(chosen) <= NAMED
    with styled():
        side = max(1.6 + 0.13 * len(chosen), 4) if named else 6.4
        figure = figure or new_figure(side + (4.4 if named else 1.4), side)
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=strongest, interpolation="nearest")
        axes.set_facecolor(DIAGONAL)
        figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, label="apart (share of chance meetings that are missing)")
        labels = names(dpp.catalogue, chosen, NAME) if named else []
        axes.set_yticks(range(len(labels)), labels, size=7)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if not named:
            axes.set_ylabel(f"{len(chosen)} items, those of a cluster side by side")
    return figure


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
    labels = [_in_two_lines(name) for name in names(dpp.catalogue, chosen, 2 * MAP_NAME)]
    with styled():
        boxes = _boxes(labels)
        points = pushed_apart(placed(apart) * _extent(boxes), boxes)
        low, high = (points - boxes * [0, 0.5] - 8).min(axis=0), (points + boxes * [1, 0.5] + 4).max(axis=0)
        low[1] -= 2 * MAP_FONT
        figure = figure or new_figure(*((high - low) / POINTS))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        pairs = _lines(axes, points, apart)
        likely = dpp.marginals()[chosen]
        colours = [KA if item is not None and place == 0 else OURS for place in range(len(chosen))]
        axes.scatter(points[:, 0], points[:, 1], s=8 + 80 * likely / likely.max(), c=colours, linewidths=0, zorder=2)
        behind = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        for (x, y), name in zip(points, labels, strict=True):
            axes.text(x + GAP, y, name, va="center", size=MAP_FONT, linespacing=1.1, bbox=behind, zorder=3)
        what = "lines: pairs that repel each other most" if pairs else "no two items repel each other"
        said = f"{what}; points: larger for likelier items"
        axes.text(low[0] + 4, low[1] + 4, said, size=MAP_FONT, color="#555555")
    return figure


def _likeliest(dpp: DPP, top: int) -> Ints:
    """Positions of the likeliest items, those of probability zero left out: they repel nothing."""
    marginals = dpp.marginals()
    if not marginals.any():
        raise InputError("every item has probability zero under this model, so none repels another")
    best = np.argsort(-marginals, kind="stable")[: whole_number("top", top, 1)]
    return best[marginals[best] > 0]


def _apart(dpp: DPP, chosen: Ints) -> Floats:
    """How far every two are kept apart; 0 for those that meet as often as by chance, or more often."""
    return np.maximum(dpp.together.substitution[np.ix_(chosen, chosen)], 0)


def _around(dpp: DPP, item: Label, top: int) -> Ints:
    """The item first, then its substitutes."""
    others = [each.item for each in dpp.substitutes(item, whole_number("top", top, 1))]
    return dpp.catalogue.positions([item, *others])


def _in_two_lines(name: str) -> str:
    return "\n".join(textwrap.wrap(name, MAP_NAME, max_lines=2, placeholder="…"))


def _boxes(labels: Sequence[str]) -> Floats:
    """The width and height that a point and its name take, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=MAP_FONT)
    sizes = []
    for name in labels:
        lines = name.replace(r"\$", "$").split("\n")
        width = max(measure.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)
        sizes.append((GAP + width + 8, 1.2 * MAP_FONT * len(lines) + 5))
    return np.array(sizes)


def _extent(boxes: Floats) -> Floats:
    """Half the width and height of a map with room for them."""
    area = ROOM * boxes.prod(axis=1).sum()
    return np.sqrt([1.4 * area, area / 1.4]) / 2


def _lines(axes: Axes, points: Floats, apart: Floats) -> list[tuple[int, int]]:
    """As many as there are items, the stronger the wider."""
    pairs = strongest_pairs(apart, len(points))
    strength = np.array([apart[i, j] for i, j in pairs])
    width = 0.5 + 2.5 * (strength - strength.min()) / max(np.ptp(strength), 1e-9) if pairs else strength
    for (i, j), wide in zip(pairs, width, strict=True):
        axes.plot(*points[[i, j]].T, color="#999999", lw=wide, alpha=0.7, zorder=1)
    return pairs
