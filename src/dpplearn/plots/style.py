"""The looks of all figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure

OURS, PAPER, KA, INDEPENDENT = "#0072b2", "#e69f00", "#d55e00", "#777777"
DIVERGING, DIAGONAL = "RdBu", "#e4e4e4"  # red is less than by chance, blue more; a pair of an item with itself is none
LETTER = 0.07  # inches that a letter of a name beside a heat map takes
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dpplearn",  # the same figure, the same file
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
