"""Figures of a model: training curve, lift, segments, basket sizes, reliability diagram, spectrum of a DPP, and
uncertainty of weights and parameters.

Every function draws into the `figure` given or into a new one, and returns it. None of them knows of pyplot, so nothing
is shown or kept by itself; a notebook displays what is returned.
"""

from dpplearn.plots.eigenvalues import sizes, spectrum
from dpplearn.plots.figures import write_figure
from dpplearn.plots.learning import learning_curve
from dpplearn.plots.lifts import lift
from dpplearn.plots.reliability import reliability_diagram, reliability_of
from dpplearn.plots.segment_map import segments
from dpplearn.plots.uncertain import marginals, quality_weights

__all__ = [
    "learning_curve",
    "lift",
    "marginals",
    "quality_weights",
    "reliability_diagram",
    "reliability_of",
    "segments",
    "sizes",
    "spectrum",
    "write_figure",
]
