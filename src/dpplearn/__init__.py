"""Learn determinantal point processes, and mixtures of them, from example subsets: baskets, registries, playlists."""

from typing import TYPE_CHECKING, Any

from dpplearn import datasets
from dpplearn.analysis.diagnosis import Diagnosis, Verdict, diagnose
from dpplearn.analysis.similarity import LiftBySimilarity, lift_by_similarity
from dpplearn.analysis.stability import Stability, stability
from dpplearn.analysis.substitutes import substitute_groups, substitute_pairs
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import Parts
from dpplearn.data.readers import read_baskets, read_parts, read_registry
from dpplearn.data.slates import Slates, read_slates
from dpplearn.errors import InputError, InputWarning
from dpplearn.evaluation.bootstrap import Difference, Estimate
from dpplearn.evaluation.calibration import Reliability
from dpplearn.evaluation.cross_validation import cross_validate
from dpplearn.evaluation.diversity import Diversity
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.result import Evaluation
from dpplearn.fitting.fit import fit
from dpplearn.fitting.result import FitProgress, FitResult
from dpplearn.fitting.slates import fit_slates
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.statistics import Statistics, statistics, sum_statistics
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.learners.loop import Stop
from dpplearn.models.answers import Recommendation, Relation, Segment, Selection, ShelfRecommendation, Substitute
from dpplearn.models.dpp import DPP
from dpplearn.models.explaining import Explanation
from dpplearn.models.history import History
from dpplearn.models.kernel_file import read_kernel, write_kernel
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.models.slates import SlatesFit
from dpplearn.pipeline.fit_all import fit_all
from dpplearn.pipeline.manifest import Prepared
from dpplearn.pipeline.prepare import prepare
from dpplearn.pipeline.recommend_all import Recommended, recommend_all
from dpplearn.pipeline.shelf import Shelf
from dpplearn.pipeline.shelf_items import add_to_shelf
from dpplearn.version import __version__

if TYPE_CHECKING:
    from dpplearn.integrations.sklearn import DPPEstimator

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
    "FactoredKernel",
    "FitProgress",
    "FitResult",
    "History",
    "InputError",
    "InputWarning",
    "Kernel",
    "LiftBySimilarity",
    "Mixture",
    "MixtureKernel",
    "Parts",
    "Prepared",
    "Recommendation",
    "Recommended",
    "Relation",
    "Reliability",
    "Segment",
    "Selection",
    "Shelf",
    "ShelfRecommendation",
    "Slates",
    "SlatesFit",
    "Stability",
    "Statistics",
    "Stop",
    "Substitute",
    "Verdict",
    "WeightedKernel",
    "__version__",
    "add_to_shelf",
    "cross_validate",
    "datasets",
    "diagnose",
    "evaluate",
    "fit",
    "fit_all",
    "fit_slates",
    "lift_by_similarity",
    "load",
    "prepare",
    "read_baskets",
    "read_kernel",
    "read_parts",
    "read_registry",
    "read_slates",
    "recommend_all",
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
        from dpplearn.integrations.sklearn import DPPEstimator

        return DPPEstimator
    raise AttributeError(f"module 'dpplearn' has no attribute {name!r}")
