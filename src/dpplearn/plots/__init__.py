"""Plots: training curve, spectrum, sizes, lift, segments, reliability diagram, posterior.

Every function draws into `figure` or into a new matplotlib figure, and returns it. pyplot is not used, so nothing is
displayed by itself. A notebook displays the returned figure.
"""

from dpplearn.plots.curves import learning_curve, marginals, reliability_diagram, sizes, spectrum
from dpplearn.plots.figure import write_figure
from dpplearn.plots.heatmap import lift, segments

__all__ = [
    "learning_curve",
    "lift",
    "marginals",
    "reliability_diagram",
    "segments",
    "sizes",
    "spectrum",
    "write_figure",
]
