"""What learning a mixture maximises: the log-likelihood less penalties, and its gradient in the free numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.nonsymmetric.statistics import Normalisers, minor_sums, normalisers, of_items, segment_sums
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
        shape, baskets, penalty = self.shape, self.problem.baskets, self.penalty
        at, n = Parameters.of(x, shape), baskets.total_weight
        log_odds, pi = at.log_odds, at.weights
        C = at.interaction(shape) if shape.interacts else None
        norms = of_items(log_odds) if C is None else normalisers(C, log_odds, self.problem.threads)
        segments = segment_sums(log_odds, np.log(pi) - norms.log_Z, baskets, self.problem.threads)
        value, empty = segments.log_sum, np.zeros(shape.segments)
        if self.problem.nonempty:
            of_empty = pi * np.exp(-norms.log_Z)
            value -= n * np.log1p(-of_empty.sum())
            empty = n / (1 - of_empty.sum()) * of_empty
        R = segments.shares + empty
        expected = R[:, None] * norms.marginals
        gamma = 2 * (segments.counts.sum(axis=0) - expected.sum(axis=0)) - np.tanh(at.gamma)
        theta = segments.counts - expected - penalty.segments * at.theta
        logits = R - pi * (n + empty.sum())
        value += float((at.gamma - np.logaddexp(0, 2 * at.gamma)).sum())
        value -= penalty.segments / 2 * float(np.vdot(at.theta, at.theta)) if shape.segments > 1 else 0.0
        U, A = at.U, at.A
        if C is not None and isinstance(norms, Normalisers):
            logdet, U, A = self._of_interaction(at, C, norms.weighted_sum(R))
            value += logdet
        return value / n, Parameters(gamma, theta, U, A, logits).flat(shape) / n

    def _of_interaction(self, at: Parameters, C: Floats, expected: Floats) -> tuple[float, Floats, Floats]:
        """What the interaction adds to the value, and its gradient in U and A, with Σ_c R_c D_c H_c D_c expected."""
        shape, penalty = self.shape, self.penalty
        minors = minor_sums(C, self.problem.baskets, self.problem.threads)
        G = minors.delta - expected.T
        U = (G + G.T) @ at.U - 2 * penalty.repulsion * at.U
        A = (G - G.T)[shape.below] - 2 * penalty.attraction * at.A if at.A.size else at.A
        shrunk = penalty.repulsion * float(np.vdot(at.U, at.U)) + penalty.attraction * float(at.A @ at.A)
        return minors.logdet - shrunk, U, A
