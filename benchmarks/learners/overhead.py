"""On a small problem, the share of an evaluation that is neither statistics nor algebra."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.learners.problems import Case
from benchmarks.measure import Result, best_seconds
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.learners.loop import Limits, run
from dpplearn.learners.problem import Problem
from dpplearn.learners.quasi_newton import PAIRS, Curvature
from dpplearn.learners.registry import LEARNERS
from dpplearn.learners.stopping import still_to_gain
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor
from dpplearn.tools.threads import suitable_blas

STEPS = 18  # before the first change of the number of columns
CALLS, REPEATS = 200, 20


def each(work: object, calls: int = CALLS) -> float:
    """Seconds of one of many calls in a row."""

    def many() -> None:
        for _ in range(calls):
            work()  # type: ignore[operator]

    return best_seconds(many, REPEATS) / calls


def measured(problem: Case) -> Result:
    data, start = problem.train, problem.start("moments")

    def whole() -> float:
        began = time.perf_counter()
        limits = Limits(still_to_gain, 0, STEPS, None)
        last = run(
            LEARNERS["auto"].steps(start, Problem(data)),
            limits,
            lambda: time.perf_counter() - began,
            lambda _: False,
        )
        return (last.seconds - last.record.seconds[0]) / (last.record.evaluations[-1] - last.record.evaluations[0])

    with suitable_blas(data.n_items, None):
        B = factor(next(LEARNERS["auto"].steps(start, Problem(data))).kernel)
        L, likelihood = B @ B.T, FactorLikelihood(Problem(data))
        curvature, rng = Curvature.unknown(B.size), np.random.default_rng(0)
        for _ in range(PAIRS):
            s = rng.standard_normal(B.shape)
            curvature.learn(s, s + 0.1 * rng.standard_normal(B.shape))
        statistics = each(lambda: sums_under_L(L, data))
        evaluation = each(lambda: likelihood(B))
        products = each(lambda: curvature.times(s)) + each(lambda: curvature.learn(s, s))
        total = min(whole() for _ in range(10 * REPEATS))
        columns, t = np.ones(B.shape[1]), rng.standard_normal(B.shape)
        sums = each(lambda: (s * columns, s * columns, s + t, s - t, np.vdot(s, t)))  # of a step, on N × N arrays
    algebra = evaluation - statistics + products + sums
    detail = f"{total * 1e6:.0f} µs, statistics {statistics * 1e6:.0f}, algebra {algebra * 1e6:.0f}"
    what = f"{problem.name}, share of an evaluation outside statistics and algebra"
    return Result(what, 1 - (statistics + algebra) / total, "", 0.3, False, detail)
