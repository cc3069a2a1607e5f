"""What each special case of a mixture gains on baskets that it has not seen: repulsion, attraction and segments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import ceil, exp
from threading import Event
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.distributions.independent import IndependentItems, chances
from dpplearn.errors import InputWarning
from dpplearn.learners.data import units_of
from dpplearn.learners.settings import settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.independence import WORTH_HAVING
from dpplearn.models.model import SetModel
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.threads import one_blas_thread, thread_count

FOLDS = 5
ENOUGH = 3000  # unseen baskets; once the folds so far have as many, the others are not needed
SMOOTHING = 0.5  # baskets with and without every item, counted beside the data
POLL = 0.1  # seconds
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
    at_once = min(thread_count(threads), _folds_needed(baskets) * len(WAYS))
    for _, way in WAYS:
        settings_of(threads=1, **way).task(baskets).check_memory(at_once)


def predicted(
    baskets: Baskets, rng: Seed = 0, *, nonempty: bool, threads: int | None = None, progress: bool = False
) -> Unseen:
    """Learn every case from four fifths of the baskets and judge it on the rest, until enough baskets are judged.

    Fits share the threads, one each, so that the result does not depend on how many there are.
    """
    units = units_of(baskets)
    if units.n_units < 2:
        return Unseen(dict.fromkeys((INDEPENDENT, *CASES), np.zeros(0)), np.zeros(0))
    rng = np.random.default_rng(rng)
    left_out = units.folds(min(FOLDS, units.n_units), rng)[: _folds_needed(units)]
    seed = int(rng.integers(2**63))
    parts = [(units.weighted(units.weights - fold), units.weighted(fold)) for fold in left_out]
    jobs = [Job(train, test, {"nonempty": nonempty, **way}, seed) for train, test in parts for _, way in WAYS]
    learned = _in_parallel(jobs, thread_count(threads), progress)
    weights = np.concatenate([test.weights for _, test in parts])
    found = {INDEPENDENT: np.concatenate([_independent(train, test, nonempty) for train, test in parts])}
    for number, (case, _) in enumerate(WAYS):
        log_probs = np.concatenate(learned[number :: len(WAYS)])
        before = found.get(case, found[INDEPENDENT] if case == SYMMETRIC else log_probs)
        found[case] = log_probs if weights @ log_probs > weights @ before else before
    return Unseen(found, weights)


def _folds_needed(baskets: Baskets) -> int:
    folds = min(FOLDS, baskets.n_units)
    return min(folds, ceil(ENOUGH * folds / max(baskets.n_units, 1)))


def _independent(train: Baskets, test: Baskets, nonempty: bool) -> Floats:
    p = chances(train.frequencies(), train.total_weight, smoothing=SMOOTHING, nonempty=nonempty)
    return IndependentItems(p, nonempty).log_prob(test)


class Job(NamedTuple):
    """A model to learn from one part and to judge on another."""

    train: Baskets
    test: Baskets
    options: Mapping[str, Any]
    seed: int

    def done(self, cancelled: Event) -> Floats:
        settings = settings_of(threads=1, **self.options)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a search may go too far, and turns back
            model: SetModel = fit_with(settings, self.train, rng=self.seed, callback=lambda _: cancelled.is_set()).model
        return model.distribution.log_prob(self.test, 1)


def _in_parallel(jobs: Sequence[Job], threads: int, progress: bool) -> list[Floats]:
    cancelled = Event()
    with (
        warnings.catch_warnings(),
        one_blas_thread(),
        shown_progress(progress, transient=True) as shown,
        ThreadPoolExecutor(min(threads, len(jobs)), thread_name_prefix="dpplearn-diagnosis") as executor,
    ):
        warnings.simplefilter("ignore", InputWarning)  # the verdict says where no pair repels
        bar = shown.bar("learning what each kind of model gains", len(jobs))
        try:
            waiting = futures = [executor.submit(job.done, cancelled) for job in jobs]
            while waiting:  # a main thread that sleeps until the end may not hear of Ctrl-C
                waiting = list(wait(waiting, POLL, FIRST_COMPLETED).not_done)
                bar.update(len(jobs) - len(waiting))
            return [future.result() for future in futures]
        finally:  # after Ctrl-C, what is under way ends with its next step
            cancelled.set()
            executor.shutdown(wait=True, cancel_futures=True)
