"""What each special case of a mixture gains on baskets that it has not seen: repulsion, attraction and segments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.errors import InputWarning
from dpplearn.evaluation.baselines import INDEPENDENT as INDEPENDENT_ITEMS
from dpplearn.evaluation.evaluation import cross_validate
from dpplearn.evaluation.metrics import LOG_LIKELIHOOD
from dpplearn.learners.data import units_of
from dpplearn.learners.settings import settings_of
from dpplearn.models.independence import WORTH_HAVING

FOLDS = 5
ENOUGH = 3000  # unseen baskets; once the folds so far have as many, the others are not needed
INDEPENDENT, SYMMETRIC, NONSYMMETRIC, SEGMENTS, MIXTURE = (
    "independent",
    "symmetric",
    "nonsymmetric",
    "segments",
    "mixture",
)
# A diagnosis can do with less than a fit.
LIMITS = {"max_iter": 180, "tol": 0.002}  # 120 iterations learn the segments
OF_A_DPP = {"learner": "lbfgs", "max_iter": 100, "tol": 1e-3}
Ways = tuple[Mapping[str, Any], ...]  # to learn a case, of which the best on unseen baskets is taken
CASES: Mapping[str, Ways] = MappingProxyType(
    {
        # Two shrinkages instead of cross-validation; a shrinkage of 1 is the case of independent items.
        SYMMETRIC: ({"shrinkage": 0.5, **OF_A_DPP}, {"shrinkage": 0.1, **OF_A_DPP}),
        NONSYMMETRIC: ({"segments": 1, **LIMITS},),
        SEGMENTS: ({"attraction": False, "rank": 0, **LIMITS},),
        MIXTURE: (LIMITS,),
    }
)
WAYS = [(case, way) for case, ways in CASES.items() for way in ways]


class Gain(NamedTuple):
    """What one model gains over another on baskets that neither has seen, in nats per basket.

    NaN where there are too few baskets to set any aside.
    """

    mean: float
    standard_error: float

    @property
    def clear(self) -> bool:
        """Worth having, and more than two standard errors above nothing."""
        return self.mean >= WORTH_HAVING and self.mean > 2 * self.standard_error

    @property
    def percent(self) -> float:
        """By how many per cent an unseen basket becomes likelier."""
        return 100 * (exp(self.mean) - 1)


@dataclass(frozen=True, eq=False, repr=False)
class Unseen:
    """The log-probabilities of baskets under models that were learned without them."""

    log_probs: Mapping[str, Floats]  # of every case, and of independent items: (n_unseen,)
    weights: Floats  # (n_unseen,)

    def gain(self, case: str, over: str = INDEPENDENT) -> Gain:
        """How much likelier baskets are under one model than under another: the mean over baskets, one by one.

        Parameters
        ----------
        case, over
            "independent", "symmetric", "nonsymmetric", "segments" or "mixture".

        Returns
        -------
        Gain
            In nats per basket, with its standard error.

        Examples
        --------
        >>> unseen = Unseen({"independent": np.array([-3.0, -2.0]), "mixture": np.array([-2.0, -2.0])}, np.ones(2))
        >>> gain = unseen.gain("mixture")
        >>> gain.mean, round(gain.standard_error, 3), round(gain.percent)
        (0.5, 0.354, 65)
        """
        each, total = self.log_probs[case] - self.log_probs[over], float(self.weights.sum())
        if not total:
            return Gain(np.nan, np.nan)
        mean = float(self.weights @ each) / total
        return Gain(mean, float(np.sqrt(in_variance(self.weights) @ (each - mean) ** 2)) / total)

    @property
    def best(self) -> str:
        """The case that predicts best; of those equally good, the simplest."""
        return max(self.log_probs, key=lambda case: self.gain(case).mean)


def check_gains_memory(baskets: Baskets, threads: int | None) -> None:
    """Raise an error if the fits of `predicted` need more memory than there is."""
    for _, way in WAYS:
        settings_of(threads=threads, **way).task(baskets).check_memory()


def predicted(
    baskets: Baskets, rng: Seed = 0, *, nonempty: bool, threads: int | None = None, progress: bool = False
) -> Unseen:
    """Cross-validate all cases, over as many folds as give ENOUGH test baskets."""
    units = units_of(baskets)
    if units.n_units < 2:
        return Unseen(dict.fromkeys((INDEPENDENT, *CASES), np.zeros(0)), np.zeros(0))
    # A search may go too far and step back. The verdict says where no pair repels.
    with warnings.catch_warnings(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", InputWarning)
        found = cross_validate(
            units,
            {f"{case} {number}": way for number, (case, way) in enumerate(WAYS)},
            folds=min(FOLDS, units.n_units),
            tested_folds=_folds_needed(units),
            tasks=(),
            max_baskets=None,
            rng=rng,
            progress=progress,
            nonempty=nonempty,
            threads=threads,
        )
    weights, log_probs = found.weights, {INDEPENDENT: found.outcomes[INDEPENDENT_ITEMS][LOG_LIKELIHOOD]}
    for number, (case, _) in enumerate(WAYS):
        learned = found.outcomes[f"{case} {number}"][LOG_LIKELIHOOD]
        before = log_probs.get(case, log_probs[INDEPENDENT] if case == SYMMETRIC else learned)
        log_probs[case] = learned if weights @ learned > weights @ before else before
    return Unseen(log_probs, weights)


def _folds_needed(baskets: Baskets) -> int:
    folds = min(FOLDS, baskets.n_units)
    return min(folds, ceil(ENOUGH * folds / max(baskets.n_units, 1)))
