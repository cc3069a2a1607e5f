"""Pictures of a model: its learning curve, spectrum, kernel, substitutes and reliability; and files of them.

Every function draws into the `figure` given or into a new one, and returns it. None of them knows of pyplot, so nothing
is shown or kept by itself; a notebook displays what is returned.
"""

from dpplearn.plots.eigenvalues import spectrum
from dpplearn.plots.figures import figure_format, write_figure
from dpplearn.plots.learning import learning_curve
from dpplearn.plots.maps import kernel_map, substitutes_map
from dpplearn.plots.reliability import reliability_diagram, reliability_of

__all__ = [
    "figure_format",
    "kernel_map",
    "learning_curve",
    "reliability_diagram",
    "reliability_of",
    "spectrum",
    "substitutes_map",
    "write_figure",
]
