"""What learning a mixture maximises: the log-likelihood less penalties, and its gradient in the free numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.nonsymmetric.statistics import minor_sums, normalisers, segment_sums
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape
from dpplearn.learners.problem import Problem


@dataclass(frozen=True)
class Objective:
    """x to the mean log-likelihood less the penalties per basket, and its gradient."""

    problem: Problem
    shape: Shape
    penalty: Penalty = field(default_factory=Penalty)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """−inf where a step went so far that numbers ran over."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self._at(x)
        return (value, gradient) if np.isfinite(value) else (-np.inf, gradient)

    def _at(self, x: Floats) -> tuple[float, Floats]:
        shape, baskets, threads = self.shape, self.problem.baskets, self.problem.threads
        at, n = Parameters.of(x, shape), baskets.total_weight
        C, log_odds, pi = at.interaction(shape), at.log_odds, at.weights
        norms = normalisers(C, log_odds, threads)
        minors = minor_sums(C, baskets, threads)
        segments = segment_sums(log_odds, np.log(pi) - norms.log_Z, baskets, threads)
        value, empty = minors.logdet + segments.log_sum, np.zeros(shape.segments)
        if self.problem.nonempty:
            of_empty = pi * np.exp(-norms.log_Z)
            value -= n * np.log1p(-of_empty.sum())
            empty = n / (1 - of_empty.sum()) * of_empty
        R = segments.shares + empty
        G = minors.delta - norms.weighted_sum(R).T
        penalty = self.penalty
        expected = R[:, None] * norms.marginals
        gamma = 2 * (segments.counts.sum(axis=0) - expected.sum(axis=0)) - np.tanh(at.gamma)
        theta = segments.counts - expected - penalty.segments * at.theta
        U = (G + G.T) @ at.U - 2 * penalty.repulsion * at.U
        skew = (G - G.T)[shape.below] - 2 * penalty.attraction * at.A if at.A.size else at.A
        logits = segments.shares + empty - pi * (n + empty.sum())
        value += float((at.gamma - np.logaddexp(0, 2 * at.gamma)).sum())
        value -= penalty.repulsion * float(np.vdot(at.U, at.U)) + penalty.attraction * float(at.A @ at.A)
        value -= penalty.segments / 2 * float(np.vdot(at.theta, at.theta)) if shape.segments > 1 else 0.0
        gradient = Parameters(gamma, theta, U, skew, logits).flat(shape)
        return value / n, gradient / n
