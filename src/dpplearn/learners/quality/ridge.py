"""How strongly the weights of features are drawn to 0: by the evidence, or by what predicts baskets left out."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.learners.quality.newton import Target, best_weights
from dpplearn.learners.quality.problem import QualityProblem

LEAST, MOST = 1e-6, 1e8  # of a ridge: no more than nothing, and all weights at 0
ROUNDS, SETTLED = 100, 1e-4  # of the evidence, and the relative change at which it has settled
FOLDS = 5
STRENGTHS = 10.0 ** np.arange(-1, 6)  # ridges that are tried on baskets left out


def by_evidence(problem: QualityProblem, phi: Floats) -> float:
    """ρ = γ/|θ|² with γ = Σ 1 − ρ [H⁻¹]_jj, how many weights the data determine. [MacKay92]

    The ridge under which the data are likeliest, the weights being normal with variance 1/ρ beforehand.
    """
    n, ridge, theta = problem.number, 1.0, None
    for _ in range(ROUNDS):
        target = problem.with_ridge(ridge).target(phi)
        best = best_weights(target, theta)
        theta, shrunk = best.theta, target.design.shrunk
        variance = np.linalg.inv(n * target.information(best.law)).diagonal()[shrunk]
        determined = float((1 - ridge * variance).sum())
        before, ridge = (
            ridge,
            float(np.clip(determined / max(float(theta[shrunk] @ theta[shrunk]), 1e-12), LEAST, MOST)),
        )
        if abs(ridge / before - 1) < SETTLED:
            break
    return ridge


def by_cross_validation(problem: QualityProblem, phi: Floats, seed: int) -> float:
    """The ridge under which baskets left out are likeliest. Of these the frequencies are all that it takes."""
    baskets = problem.baskets
    assert isinstance(baskets, Baskets)  # as options for parts see to
    folds = baskets.folds(FOLDS, np.random.default_rng(seed))
    scores = np.zeros(len(STRENGTHS))
    for fold in folds:
        learned, left_out = (baskets.weighted(weights) for weights in (baskets.weights - fold, fold))
        if not learned.total_weight > 0 or not left_out.total_weight > 0:
            continue
        for place, ridge in enumerate(STRENGTHS):
            target = problem.with_ridge(float(ridge)).target(phi)
            inside = Target(target.S, learned.frequencies(), target.design, target.nonempty, target.ridge)
            best = best_weights(inside)
            u = target.design.quality(best.theta)
            held_out = float(left_out.frequencies() @ u) - best.law.log_normaliser
            scores[place] += left_out.total_weight * held_out
    return float(STRENGTHS[int(scores.argmax())])
