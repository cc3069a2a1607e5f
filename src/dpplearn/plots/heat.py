"""Heat maps of every two items: with their names, or those of blocks of them, and without what chance explains."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.relations import significant_pairs
from dpplearn.plots.figures import new_figure, text_widths
from dpplearn.plots.layout import blocks, names
from dpplearn.plots.style import DIAGONAL
from dpplearn.utils.text import count, without_middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

NAMED, NAME = 80, 44  # items, beyond which there is no room for names; characters of a name
BLOCKS = 16  # of items, where there is none: each is named by its likeliest ones
SIDE = 7.0  # inches of a map of blocks
FONT, POINTS = 7, 72  # the size of names, and points per inch
SMALL = 0.054  # inches that a letter of a note takes
GREY = "grey: chance explains as much"
UNSURE = "how much of it chance explains is not known"


class Map(NamedTuple):
    """A figure with a heat map in it."""

    figure: Figure
    axes: Axes
    image: AxesImage


def heat_map(
    model: DPP | Mixture,
    chosen: Ints,
    values: Floats,
    seen: Bools,
    figure: Figure | None,
    *,
    title: str,
    reach: float,
    colours: str,
) -> Map:
    """Of items in the order given, with colours from −reach to reach, so that zero is white. Pairs that are not `seen`,
    as they met as chance explains, are grey, and so is the diagonal."""
    values, note = np.where(seen, values, np.nan), _note(model, seen)
    labels, edges = _labels(model, chosen, values)
    side = max(1.6 + 0.15 * len(chosen), 4) if len(chosen) <= NAMED else SIDE
    width = side + 1.5 + max(text_widths(labels, FONT)) / POINTS
    notes = "\n".join(textwrap.fill(each, int(width / SMALL)) for each in (note, model.caution) if each)
    figure = figure or new_figure(width, side + 0.5 + 0.13 * (notes.count("\n") + 1))
    axes = figure.subplots()
    image = axes.imshow(values, cmap=colours, vmin=-reach, vmax=reach, interpolation="nearest")
    axes.set_facecolor(DIAGONAL)
    _name(axes, labels, edges)
    figure.suptitle(title, x=0.01, ha="left", size=9)
    figure.supxlabel(notes, x=0.01, ha="left", size=7, color="#555555")
    return Map(figure, axes, image)


def zero_marked(drawn: Map, ticks: Sequence[float], said: Sequence[str], label: str) -> None:
    """A scale of colours with a line where zero is."""
    bar = drawn.figure.colorbar(drawn.image, ax=drawn.axes, shrink=0.7, pad=0.02, extend="both")
    bar.set_ticks(list(ticks), labels=list(said))
    bar.ax.axhline(0, color="black", lw=1.2)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(label, size=7)


def beyond_chance(model: DPP | Mixture, chosen: Ints) -> Bools:
    """Which pairs of these items are shown: those that met more or less often than chance explains; or all, where it is
    not known how often they met."""
    seen = np.ones((len(chosen), len(chosen)), bool)
    if model.training is not None:
        seen = significant_pairs(model, chosen)
    np.fill_diagonal(seen, False)
    return seen


def _note(model: DPP | Mixture, seen: Bools) -> str:
    n = len(seen) * (len(seen) - 1) // 2
    return UNSURE if model.training is None else f"{GREY} ({count(n - seen.sum() / 2)} of {count(n, 'pair')})"


def _labels(model: DPP | Mixture, chosen: Ints, values: Floats) -> tuple[list[str], list[int]]:
    """Of rows, or of blocks of them; and where each begins, and the last ends."""
    if len(chosen) <= NAMED:
        return names(model.catalogue, chosen, NAME), list(range(len(chosen) + 1))
    edges, p = blocks(np.nan_to_num(values), BLOCKS), model.marginals()
    labels = []
    for first, last in pairwise(edges):
        block = chosen[first:last]
        best = names(model.catalogue, block[np.argsort(-p[block], kind="stable")][:2], NAME)
        more = f" and {len(block) - 2} more" if len(block) > 2 else ""
        labels.append(f"{without_middle(', '.join(best), NAME)}{more}")
    return labels, edges


def _name(axes: Axes, labels: Sequence[str], edges: Sequence[int]) -> None:
    """Rows by their names and a number each, which columns have, too."""
    middles = [(first + last - 1) / 2 for first, last in pairwise(edges)]
    numbers = [str(place) for place in range(1, len(labels) + 1)]
    axes.set_yticks(middles, [f"{name}  {number}" for name, number in zip(labels, numbers, strict=True)])
    axes.set_xticks(middles, numbers, rotation=90 if len(labels) > 20 else 0)
    axes.tick_params(length=0, labelsize=FONT)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)
    for edge in edges[1:-1] if len(labels) < edges[-1] else ():
        axes.axhline(edge - 0.5, color="white", lw=0.8)
        axes.axvline(edge - 0.5, color="white", lw=0.8)
