from . import datasets as datasets
from .analysis.diagnosis import Diagnosis, Verdict, diagnose
from .analysis.similarity import LiftBySimilarity
from .analysis.substitutes import substitute_pairs
from .data.baskets import Baskets
from .data.features import Features, read_features
from .data.parts import Parts
from .data.readers import read_baskets, read_parts
from .data.similarity import read_similarity
from .data.slates import Slates, read_slates
from .errors import InputError, InputWarning
from .evaluation.calibration import Reliability
from .evaluation.cross_validation import cross_validate
from .evaluation.evaluation import evaluate
from .evaluation.intervals import Difference, Estimate
from .evaluation.over_time import OverTime, Period
from .evaluation.result import Evaluation
from .integrations.sklearn import DPPEstimator
from .learners.checkpoint import Checkpoint
from .learners.fit import fit
from .learners.fit_dpp import fit_dpp
from .learners.loop import Stop
from .learners.posterior.posterior import posterior
from .learners.posterior.result import Posterior
from .learners.quality.fit_quality import fit_quality
from .learners.quality.weights import QualityWeights
from .learners.result import FitProgress, FitResult
from .learners.slates import fit_slates
from .learners.weights import fit_weights
from .models.answers import Recommendation, Relation, Segment, Selection, ShelfRecommendation
from .models.dpp import DPP
from .models.explaining import Explanation
from .models.history import History
from .models.mixture import Mixture
from .models.model_file import load
from .models.slates import SlatesFit
from .pipeline.fit_all import fit_all
from .pipeline.manifest import Prepared
from .pipeline.prepare import prepare
from .pipeline.recommend_all import Recommended, recommend_all
from .pipeline.shelf import Shelf
from .pipeline.shelf_items import add_to_shelf
from .upkeep.changes import Changes
from .upkeep.check import check
from .upkeep.drift import Drift
from .upkeep.update import Update, update
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
    "LiftBySimilarity",
    "Mixture",
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
    "Shelf",
    "ShelfRecommendation",
    "Slates",
    "SlatesFit",
    "Stop",
    "Update",
    "Verdict",
    "__version__",
    "add_to_shelf",
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
    "substitute_pairs",
    "update",
]
