"""Points that fall independently, and points of a DPP that repels what is near: as many of both, in a square."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import dpplearn as dl
from dpplearn.plots.figure import new_figure
from figures.drawing import BLUE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE, NEAR, N_POINTS = 24, 0.11, 60


def draw(theme: str) -> Figure:
    ticks = (np.arange(SIDE) + 0.5) / SIDE
    places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)  # (SIDE², 2)
    squared = ((places[:, None] - places) ** 2).sum(axis=2)
    smooth = np.linalg.eigh(np.exp(-squared / (2 * NEAR**2)))[1][:, -N_POINTS:]  # K projects on these
    repelled = np.array(dl.DPP.from_K(smooth @ smooth.T).sample(1, rng=1)[0])
    independent = np.random.default_rng(4).choice(len(places), N_POINTS, replace=False)
    figure = new_figure(7.4, 3.8)
    for at, (title, chosen) in enumerate({"independent": independent, "a DPP": repelled}.items()):
        axes = figure.add_subplot(1, 2, at + 1)
        axes.plot(*places[chosen].T, "o", color=BLUE[theme], ms=6)
        axes.set(title=title, xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.spines[:].set_visible(True)
    return figure
