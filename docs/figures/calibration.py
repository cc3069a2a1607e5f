"""Reliability diagram of a mixture and of independent items on held-out registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpplearn.plots import reliability_diagram, reliability_of
from figures.shop import mixture, registries

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(theme: str) -> Figure:
    figure = reliability_diagram(reliability_of(mixture(), registries()[1]))
    figure.set_size_inches(6.4, 4.6)
    return figure
