"""Pictures of a model: how it was learned, what goes together, what stands in for what, segments, sizes, whether
probabilities come true; of a DPP its spectrum and kernel; how sure weights and parameters are; and files of them.

Every function draws into the `figure` given or into a new one, and returns it. None of them knows of pyplot, so nothing
is shown or kept by itself; a notebook displays what is returned.
"""

from dpplearn.plots.eigenvalues import sizes, spectrum
from dpplearn.plots.figures import figure_format, write_figure
from dpplearn.plots.learning import learning_curve
from dpplearn.plots.lifts import lift
from dpplearn.plots.maps import kernel_map, substitutes_map
from dpplearn.plots.reliability import reliability_diagram, reliability_of
from dpplearn.plots.segment_map import segments
from dpplearn.plots.uncertain import marginals, quality_weights

__all__ = [
    "figure_format",
    "kernel_map",
    "learning_curve",
    "lift",
    "marginals",
    "quality_weights",
    "reliability_diagram",
    "reliability_of",
    "segments",
    "sizes",
    "spectrum",
    "substitutes_map",
    "write_figure",
]
