"""Learn determinantal point processes from example subsets: baskets, registries, playlists."""

from typing import TYPE_CHECKING, Any

from dpplearn import datasets
from dpplearn.baskets import Baskets
from dpplearn.bootstrap import Difference, Estimate
from dpplearn.calibration import Reliability
from dpplearn.cross_validation import cross_validate
from dpplearn.diagnosis import Diagnosis, Verdict, diagnose
from dpplearn.diversity import Diversity
from dpplearn.dpp import DPP, Recommendation, Selection, Substitute
from dpplearn.errors import InputError, InputWarning
from dpplearn.evaluation import evaluate
from dpplearn.evaluation_result import Evaluation
from dpplearn.explaining import Explanation
from dpplearn.fit_result import FitProgress, FitResult
from dpplearn.fitting import fit
from dpplearn.kernel import Kernel
from dpplearn.kernel_file import read_kernel, write_kernel
from dpplearn.learners.loop import History, Stop
from dpplearn.model_file import load
from dpplearn.readers import read_baskets, read_registry
from dpplearn.statistics import Statistics, statistics, sum_statistics
from dpplearn.substitutes import Stability, stability, substitute_groups, substitute_pairs
from dpplearn.version import __version__

if TYPE_CHECKING:
    from dpplearn.estimator import DPPEstimator

__all__ = [
    "DPP",
    "Baskets",
    "DPPEstimator",
    "Diagnosis",
    "Difference",
    "Diversity",
    "Estimate",
    "Evaluation",
    "Explanation",
    "FitProgress",
    "FitResult",
    "History",
    "InputError",
    "InputWarning",
    "Kernel",
    "Recommendation",
    "Reliability",
    "Selection",
    "Stability",
    "Statistics",
    "Stop",
    "Substitute",
    "Verdict",
    "__version__",
    "cross_validate",
    "datasets",
    "diagnose",
    "evaluate",
    "fit",
    "load",
    "read_baskets",
    "read_kernel",
    "read_registry",
    "stability",
    "statistics",
    "substitute_groups",
    "substitute_pairs",
    "sum_statistics",
    "write_kernel",
]


def __dir__() -> list[str]:
    """The public names alone: what completion offers is what there is to use. Modules can be imported all the same."""
    return __all__


def __getattr__(name: str) -> Any:
    if name == "DPPEstimator":  # scikit-learn is an extra, and slow to load
        from dpplearn.estimator import DPPEstimator

        return DPPEstimator
    raise AttributeError(f"module 'dpplearn' has no attribute {name!r}")
