"""One run of one learner on one problem: how soon it was how near."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.learners.problems import Case
from benchmarks.statistics import batched
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood
from dpplearn.learners.loop import Limits, Rule, Run, Step, relative_change, remaining_gain, run
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.factor import factor, factor_likelihood, search
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.utils.threads import suitable_blas

PAPER = "em to 1e-4"  # the paper's EM with the paper's stopping rule
NUMPY = "lbfgs, numpy"  # what a user would write with an array library
CONTESTANTS = (*LEARNERS, NUMPY, PAPER)

TOL = 1e-4
POLISHED = 1e-7
TOLERANCES = (1e-2, 1e-3, 1e-4)  # at which the stopping rule is compared with the truth
KEPT_EVERY = 1e-5  # nats between the points of a run that are kept
LONGER = 3  # times the limit of a run, to learn on to 1e-7
REPEATED = 0.3  # seconds at the beginning of a run that are run again, the shortest time to each step counting
REPEATS = 2


@dataclass(frozen=True)
class Record:
    """A run: points of its way up, where it ended, and where its stopping rule would have ended it."""

    problem: str
    start: str
    learner: str
    limit: float  # seconds
    log_likelihood: list[float]
    seconds: list[float]
    evaluations: list[float]
    test: float
    polished: float  # what the run's last kernel becomes when learned on to 1e-7
    ruled: dict[str, float]  # the log-likelihood at which the rule first fell to a tolerance


def steps(learner: str, start: SpectralDPP, data: Baskets) -> Iterator[Step]:
    if learner == NUMPY:
        B = factor(prepared(start, data))
        likelihood = partial(factor_likelihood, SymmetricProblem(data), sums=batched_sums)
        return search(likelihood, B, np.ones(len(B)), min_rank=len(B))
    return LEARNERS["em" if learner == PAPER else learner].steps(start, SymmetricProblem(data))


def rule(learner: str) -> tuple[Rule, float]:
    """The rule of the learner; the paper's two go on to the time limit, since their rule stops them far below."""
    if learner == PAPER:
        return relative_change, TOL
    if learner == NUMPY:
        return remaining_gain, TOL
    found = LEARNERS[learner].rule
    return found, -1.0 if found is relative_change else TOL


def batched_sums(L: np.ndarray, baskets: Baskets, threads: int | None) -> tuple[float, np.ndarray]:
    parts = [batched(L, group.sets, baskets.weights[group.rows]) for group in baskets.by_size if group.sets.shape[1]]
    return sum(logdet for logdet, _ in parts), sum(delta for _, delta in parts)


def one_run(problem: Case, start: SpectralDPP, learner: str, seconds: float) -> Run:
    figure, tol = rule(learner)
    return timed(problem, steps(learner, start, problem.train), Limits(figure, tol, 10**9, seconds))


def timed(problem: Case, taken: Iterator[Step], limits: Limits) -> Run:
    with suitable_blas(problem.train.n_items, None):
        began = time.perf_counter()
        return run(taken, limits, lambda: time.perf_counter() - began, lambda _: False)


def compete(problem: Case, init: str, learner: str, seconds: float) -> Record:
    """A run, the beginning of which is repeated: a learner takes the same steps again, so the shortest times count."""
    start = problem.start(init)
    best = one_run(problem, start, learner, seconds)
    likelihoods, times = best.history.log_likelihood, best.history.seconds
    for _ in range(REPEATS):
        again = one_run(problem, start, learner, min(REPEATED, seconds)).history.seconds
        n = min(len(times), len(again))
        times[:n] = np.minimum(times[:n], again[:n])
    kept = _kept(likelihoods)
    return Record(
        problem=problem.name,
        start=init,
        learner=learner,
        limit=seconds,
        log_likelihood=likelihoods[kept].tolist(),
        seconds=times[kept].tolist(),
        evaluations=best.history.evaluations[kept].tolist(),
        test=mean_log_likelihood(best.step.kernel, problem.test),
        polished=polished(problem, learner, best, LONGER * seconds),
        ruled=_ruled(likelihoods.tolist()),
    )


def polished(problem: Case, learner: str, last: Run, seconds: float) -> float:
    """The optimum above the end of a run, where the stopping rule is to be judged by it, and of `lbfgs` in any case."""
    judged = rule(learner)[0] is not relative_change and learner != NUMPY and problem.is_registry
    if learner != "lbfgs" and not judged:
        return last.entry.log_likelihood
    found = timed(
        problem, steps("lbfgs", last.step.kernel, problem.train), Limits(remaining_gain, POLISHED, 10**9, seconds)
    )
    return max(last.entry.log_likelihood, found.entry.log_likelihood)


def _kept(likelihoods: np.ndarray) -> list[int]:
    """The points that are each at least a little above the one kept before, the first and the last."""
    kept = [0]
    for step, likelihood in enumerate(likelihoods):
        if likelihood >= likelihoods[kept[-1]] + KEPT_EVERY:
            kept.append(step)
    return kept if kept[-1] == len(likelihoods) - 1 else [*kept, len(likelihoods) - 1]


def _ruled(likelihoods: Sequence[float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for tol in TOLERANCES:
        for n in range(1, len(likelihoods) + 1):
            if remaining_gain(likelihoods[:n]) <= tol:
                found[f"{tol:g}"] = likelihoods[n - 1]
                break
    return found
