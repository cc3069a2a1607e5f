"""Plots: training curve, spectrum, sizes, lift, segments, reliability diagram, posterior.

Every function draws into `figure` or into a new matplotlib figure, and returns it. pyplot is not used, so nothing is
displayed by itself. A notebook displays the returned figure.
"""

from dpplearn.plots.figure import write_figure
from dpplearn.plots.heatmap import lift, segments
from dpplearn.plots.kernel import sizes, spectrum
from dpplearn.plots.posterior import marginals
from dpplearn.plots.reliability import reliability_diagram
from dpplearn.plots.training import learning_curve

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
