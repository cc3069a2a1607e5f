"""How many items baskets hold, and what a symmetric DPP and a mixture say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.plots.figure import new_figure
from figures.drawing import BLUE, FAINT
from figures.shop import mixture, registries, symmetric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 10


def draw(theme: str) -> Figure:
    sizes = np.arange(1, LARGEST + 1)
    test = registries()[1]
    observed = np.bincount(test.sizes, minlength=LARGEST + 1)[1 : LARGEST + 1] / len(test)
    figure = new_figure(7.0, 3.4)
    axes = figure.add_subplot()
    axes.bar(sizes, 100 * observed, color=FAINT[theme], alpha=0.35, label="unseen registries")
    for name, model, colour in (("symmetric DPP", symmetric(), "#e69f00"), ("mixture", mixture(), BLUE[theme])):
        p = model.size_distribution[1 : LARGEST + 1]
        axes.plot(sizes, 100 * p, "o-", color=colour, label=name, ms=5)
    axes.set(xlabel="items in a registry", ylabel="per cent of registries", xticks=sizes)
    axes.legend()
    return figure
