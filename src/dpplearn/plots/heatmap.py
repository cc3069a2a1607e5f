"""Heat maps: the lift of pairs of items, and the items that distinguish segments."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import Segment
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.relations import pair_table, significant_pairs
from dpplearn.plots.figure import (
    ABOVE,
    BELOW,
    FONT_SIZE,
    GRID,
    LETTER,
    NEUTRAL,
    NOT_SHOWN,
    drawing,
    label_width,
    names,
    title,
)
from dpplearn.utils.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_ITEMS, MAX_ITEMS = 50, 200  # of a heat map of pairs; more would not fit into a picture
ROW = 0.17  # inches of a row
RANGE = 2  # doublings: colours from 1/4 to 4, as on the pages of the service
SEGMENT_RANGE = 4
MIN_LIFT = 2.0**-20
MAX_SEGMENTS, MIN_SEGMENT = 12, 0.005  # segments shown, and the least weight of one
ITEMS_PER_SEGMENT = 4
DARK = 0.6  # of the range, from which on text in a cell is white


def lift(model: SetModel, top: int | None = None, figure: Figure | None = None) -> Figure:
    """Plot the lift of pairs of items: P(both) divided by its value expected under independence.

    Blue pairs co-occur less often (substitutes), red pairs more often (complements). Pairs that are not significant in
    the training baskets are white. Items with similar lifts are neighbours.

    Parameters
    ----------
    model : DPP or Mixture
    top : int, default 50
        Number of items, the most likely ones; at most 200.
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> [label.get_text() for label in lift(dpp).axes[0].get_yticklabels()]
    ['cot  1', 'crib  2']
    """
    items = _most_likely(model, whole_number("top", DEFAULT_ITEMS if top is None else top, 1))
    log_lift = np.log2(np.maximum(pair_table(model.distribution, items, items).lift, MIN_LIFT))
    shown = significant_pairs(model, items)
    order = _similar_adjacent(np.where(shown, log_lift, 0) if shown.any() else log_lift)
    items, places = items[order], np.ix_(order, order)
    values = np.where(shown, log_lift, np.nan)[places]
    np.fill_diagonal(values, np.nan)
    n, known = len(items), model.training is not None
    note = "white: not significant" if known else "significance unknown: the model has no training counts"
    labels = [f"{name}  {number}" for number, name in enumerate(names(model.catalogue.select(items)), start=1)]
    side = max(ROW * n, 2.4)
    with drawing(figure, side + label_width(labels) + 1.5, side + 1.1) as (figure, axes):
        _heat_map(figure, axes, values, labels, RANGE, "lift")
        axes.set_xticks(range(n), [str(number) for number in range(1, n + 1)], rotation=90 if n > 20 else 0)
        _notes(figure, [note, model.caution])
        title(figure, f"Substitutes (blue) and complements (red) among {count(n, 'item')}")
    return figure


def _most_likely(model: SetModel, top: int) -> Ints:
    """Return the most likely items of positive probability."""
    if top > MAX_ITEMS:
        raise InputError(f"top must be at most {MAX_ITEMS}, got {top}")
    marginals = model.marginals()
    best = np.argsort(-marginals, kind="stable")[:top]
    best = best[marginals[best] > 0]
    if len(best) < 2:
        raise InputError(f"lift needs two items of positive probability, got {len(best)}")
    return best


def _similar_adjacent(relation: Floats) -> Ints:
    """Return an order in which items with similar rows are neighbours, by average linkage."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(relation) < 3:
        return np.arange(len(relation))
    with np.errstate(invalid="ignore", divide="ignore"):  # constant rows
        distance = np.asarray(1 - np.nan_to_num(np.corrcoef(relation)))
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def segments(model: SetModel, top: int | None = None, figure: Figure | None = None) -> Figure:
    """Plot the items that distinguish the segments of a mixture.

    Each column is a segment, with its share of the baskets and mean basket size. Each cell has the probability of the
    item in the segment in per cent. Its colour is the ratio to the probability in all baskets: red above 1, blue below.

    Parameters
    ----------
    model : Mixture
        At least two segments.
    top : int, default 4
        Number of items of each segment.
    figure : matplotlib.figure.Figure, optional
        Figure to draw into. Default: a new one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.fit([["tea", "milk"], ["tea"], ["beer"], ["beer", "nuts"]] * 30, segments=2, rng=0).model
    >>> len(segments(model).axes[0].get_xticklabels())
    2
    """
    if not isinstance(model, Mixture) or model.n_segments < 2:
        raise InputError(f"segments needs a mixture of at least two segments, got {model!r}")
    found = model.segments(whole_number("top", ITEMS_PER_SEGMENT if top is None else top, 1))
    n = max(sum(each.weight >= MIN_SEGMENT for each in found[:MAX_SEGMENTS]), 1)
    items = model.catalogue.positions(dict.fromkeys(item for each in found[:n] for item, _ in each.likes))
    if not len(items):
        raise InputError("all segments have the same items, so that nothing distinguishes them")
    p = model.segment_marginals[:n][:, items].T  # (n_items, n_segments)
    ratio = np.log2(np.maximum(p, MIN_LIFT) / np.maximum(model.marginals()[items], MIN_LIFT)[:, None])
    labels = names(model.catalogue.select(items))
    width, height = max(0.5 * n, 1.5) + max(label_width(labels), 1.3), max(ROW * len(items), 1.2)
    with drawing(figure, width + 1.6, height + 1.4) as (figure, axes):
        _heat_map(figure, axes, ratio, labels, SEGMENT_RANGE, "ratio to all baskets")
        axes.set_xticks(range(n), [f"{each.weight:.0%}\n{each.expected_size:.1f}" for each in found[:n]])
        heading = axes.annotate("share of baskets\nitems per basket", (0, 1), (-4, 3), "axes fraction", "offset points")
        heading.set(ha="right", va="bottom", size=FONT_SIZE)
        for (row, column), each in np.ndenumerate(p):
            colour = "white" if abs(ratio[row, column]) > DARK * SEGMENT_RANGE else "black"
            text = f"{100 * each:.0f}" if each >= 0.005 else "·"
            axes.text(column, row, text, ha="center", va="center", size=6, color=colour)
        _notes(figure, [_column_note(found[n:], n), model.caution])
        title(figure, "Items that distinguish the segments")
    return figure


def _column_note(left_out: Sequence[Segment], n: int) -> str:
    note = f"{count(n, 'segment')}; numbers: probability of the item in per cent"
    weight = sum(each.weight for each in left_out)
    return f"{note}; {count(len(left_out), 'more segment')} with {weight:.1%} of the baskets" if left_out else note


def _heat_map(figure: Figure, axes: Axes, values: Floats, labels: list[str], reach: int, meaning: str) -> None:
    """Draw logarithms from −reach to reach with a name per row, and a colour bar of their powers; NaN is white."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("lift", [BELOW, NEUTRAL, ABOVE])
    image = axes.imshow(values, cmap=colours, vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    axes.set_facecolor(NOT_SHOWN)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="both", length=0, labelsize=FONT_SIZE)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=GRID, lw=0.5)
    axes.tick_params(which="minor", length=0, top=False)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, extend="both")
    ticks = range(-reach, reach + 1)  # one per doubling
    bar.set_ticks(list(ticks), labels=[f"{2**each}" if each >= 0 else f"1/{2**-each}" for each in ticks])
    bar.ax.tick_params(labelsize=FONT_SIZE)
    bar.set_label(meaning, size=FONT_SIZE)


def _notes(figure: Figure, notes: Sequence[str]) -> None:
    """Write notes below the axes, wrapped to the width of the figure."""
    width = int(figure.get_size_inches()[0] / LETTER)
    lines = "\n".join(textwrap.fill(each, width) for each in notes if each)
    figure.supxlabel(lines, x=0.01, ha="left", size=FONT_SIZE)
