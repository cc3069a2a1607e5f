from . import datasets as datasets
from .analysis.diagnose import Diagnosis, diagnose
from .data.baskets import Baskets
from .data.features import Features, read_features
from .data.parts import Parts
from .data.readers import read_baskets, read_parts
from .data.similarity import read_similarity
from .data.slates import Slates, read_slates
from .errors import InputError, InputWarning
from .evaluation.calibration import Reliability
from .evaluation.evaluation import cross_validate, evaluate
from .evaluation.metrics import Difference, Estimate
from .evaluation.result import Evaluation, OverTime, Period
from .integrations.sklearn import DPPEstimator
from .learners.checkpoint import Checkpoint
from .learners.fit import fit, fit_dpp
from .learners.loop import Stop
from .learners.posterior import Posterior, posterior
from .learners.quality.fit_quality import fit_quality
from .learners.quality.weights import QualityWeights
from .learners.result import FitProgress, FitResult
from .learners.slates import fit_slates
from .learners.weights import fit_weights
from .lifecycle.check import Drift, check
from .lifecycle.update import Changes, Update, update
from .models.answers import Recommendation, Relation, Segment, Selection, StoreRecommendation
from .models.dpp import DPP
from .models.explaining import Explanation
from .models.mixture import Mixture
from .models.model_file import load
from .models.record import History
from .models.reranking import SlatesFit
from .models.store import ModelStore
from .pipeline.fit_all import fit_all
from .pipeline.prepare import prepare
from .pipeline.prepared import Prepared
from .pipeline.recommend_all import Recommended, recommend_all
from .version import __version__

__all__ = [
    "DPP",
    "Baskets",
    "Changes",
    "Checkpoint",
    "DPPEstimator",
    "Diagnosis",
    "Difference",
    "Drift",
    "Estimate",
    "Evaluation",
    "Explanation",
    "Features",
    "FitProgress",
    "FitResult",
    "History",
    "InputError",
    "InputWarning",
    "Mixture",
    "ModelStore",
    "OverTime",
    "Parts",
    "Period",
    "Posterior",
    "Prepared",
    "QualityWeights",
    "Recommendation",
    "Recommended",
    "Relation",
    "Reliability",
    "Segment",
    "Selection",
    "Slates",
    "SlatesFit",
    "Stop",
    "StoreRecommendation",
    "Update",
    "__version__",
    "check",
    "cross_validate",
    "datasets",
    "diagnose",
    "evaluate",
    "fit",
    "fit_all",
    "fit_dpp",
    "fit_quality",
    "fit_slates",
    "fit_weights",
    "load",
    "posterior",
    "prepare",
    "read_baskets",
    "read_features",
    "read_parts",
    "read_similarity",
    "read_slates",
    "recommend_all",
    "update",
]
