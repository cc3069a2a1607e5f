"""dpplearn compare: cross-validate models or learners on the same baskets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from dpplearn.cli.commands.score import Measure
from dpplearn.cli.options import Data, Filter, Read, one_of
from dpplearn.cli.output import Display
from dpplearn.learners.symmetric.table import LEARNERS

# Models that are compared by default. Independent items are always a baseline.
MODELS: Mapping[str, Mapping[str, Any]] = {
    "symmetric DPP": {"model": "dpp"},
    "nonsymmetric DPP": {"segments": 1},
    "segments alone": {"attraction": False, "rank": 0},
    "mixture": {},
}


def compare(
    data: Data,
    read: Read,
    filter: Filter,
    measure: Measure,
    display: Display,
    learner: Annotated[list[str] | None, one_of(["mixture", *LEARNERS])] = None,
    folds: int = 5,
) -> None:
    """Compare models, learners and baselines by cross-validation.

    Parameters
    ----------
    learner
        A learner to compare; repeat for more. Without it, four models are compared.
    folds
        Number of folds.
    """
    from dpplearn.evaluation.evaluation import cross_validate

    chosen = {name: {"model": name} if name == "mixture" else {"learner": name} for name in learner or ()}
    options = chosen or {name: dict(each) for name, each in MODELS.items()}
    baskets = filter.filtered(read.baskets(data, display))
    result = cross_validate(baskets, options, folds=folds, **measure.options(display))
    display.write(result, data=data, folds=folds, seed=measure.seed, models=options)
