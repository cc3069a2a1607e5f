"""A determinant as an area: two items that differ span much, two that are alike span little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.plots.figure import new_figure
from figures.drawing import BLUE, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAIRS = {
    "a crib and a monitor": ((0.95, 0.12), (0.1, 0.9), "they differ: a large area,\na likely pair"),
    "a crib and a cot": ((0.95, 0.12), (0.85, 0.42), "they are alike: a small area,\nan unlikely pair"),
}


def pair(axes: Axes, title: str, theme: str) -> None:
    first, second, words = PAIRS[title]
    corners = np.array([(0, 0), first, np.add(first, second), second])
    axes.fill(*corners.T, color=BLUE[theme], alpha=0.25)
    for end in (first, second):
        axes.annotate("", end, (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK[theme], "lw": 1.8})
    area = abs(np.linalg.det(np.array([first, second])))
    axes.text(0, -0.12, f"{words}\narea² = det = {area**2:.2f}", va="top", color=FAINT[theme])
    axes.set(title=title, xlim=(-0.1, 1.9), ylim=(-0.5, 1.1), aspect="equal")
    axes.set_axis_off()


def draw(theme: str) -> Figure:
    figure = new_figure(7.4, 3.3)
    for at, title in enumerate(PAIRS):
        pair(figure.add_subplot(1, 2, at + 1), title, theme)
    return figure
