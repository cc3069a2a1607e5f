"""Learn determinantal point processes from example subsets: baskets, registries, playlists."""

from typing import TYPE_CHECKING, Any

from dpplearn import datasets
from dpplearn.baskets import Baskets
from dpplearn.dpp import DPP, Recommendation, Selection, Substitute
from dpplearn.errors import InputError, InputWarning
from dpplearn.fit_result import FitProgress, FitResult
from dpplearn.fitting import fit
from dpplearn.kernel import Kernel
from dpplearn.learners.loop import History, Stop
from dpplearn.model_file import load
from dpplearn.readers import read_baskets, read_registry
from dpplearn.statistics import Statistics, statistics, sum_statistics
from dpplearn.version import __version__

if TYPE_CHECKING:
    from dpplearn.estimator import DPPEstimator

__all__ = [
    "DPP",
    "Baskets",
    "DPPEstimator",
    "FitProgress",
    "FitResult",
    "History",
    "InputError",
    "InputWarning",
    "Kernel",
    "Recommendation",
    "Selection",
    "Statistics",
    "Stop",
    "Substitute",
    "__version__",
    "datasets",
    "fit",
    "load",
    "read_baskets",
    "read_registry",
    "statistics",
    "sum_statistics",
]


def __getattr__(name: str) -> Any:
    if name == "DPPEstimator":  # scikit-learn is an extra, and slow to load
        from dpplearn.estimator import DPPEstimator

        return DPPEstimator
    raise AttributeError(f"module 'dpplearn' has no attribute {name!r}")
