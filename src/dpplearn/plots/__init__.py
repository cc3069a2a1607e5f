"""Pictures of a model."""

from dpplearn.plots.maps import (
    figure_format,
    kernel_map,
    learning_curve,
    reliability_diagram,
    reliability_of,
    spectrum,
    substitutes_map,
    write_figure,
)

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
