"""Reliability diagram of a mixture and of independent items on held-out registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpplearn import evaluate
from dpplearn.plots import reliability_diagram
from figures.shop import mixture, registries

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(theme: str) -> Figure:
    found = evaluate(mixture(), registries()[1], tasks=("given_one",)).reliability
    figure = reliability_diagram({name: tables["given_one"] for name, tables in found.items()})
    figure.set_size_inches(6.4, 4.6)
    return figure
