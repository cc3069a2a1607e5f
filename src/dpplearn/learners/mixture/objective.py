"""What learning a mixture maximises: the log-likelihood minus penalties, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.segment_statistics import Normalisers, minor_sums, normalisers, of_items, segment_sums
from dpplearn.learners.mixture.parameters import MAX_LOG_ODDS, Parameters, Penalty, Shape


@dataclass(frozen=True)
class Objective:
    """Function from x to the mean log-likelihood minus the penalties per basket, and its gradient."""

    baskets: AnyBaskets
    threads: int | None
    nonempty: bool  # whether the distribution is P(Y given Y ≠ ∅)
    shape: Shape
    penalty: Penalty = field(default_factory=Penalty)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return value and gradient; the value is −inf where a step went so far that numbers overflowed."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self._at(x)
        return (value, gradient) if np.isfinite(value) else (-np.inf, gradient)

    def penalties(self, at: Parameters) -> float:
        """Return the penalties per basket."""
        total = self._of_segments(at) + self._of_interaction(at) - _pseudo_baskets(at)
        return total / self.baskets.total_weight

    def _of_segments(self, at: Parameters) -> float:
        return self.penalty.segments / 2 * float(np.vdot(at.theta, at.theta)) if self.shape.segments > 1 else 0.0

    def _of_interaction(self, at: Parameters) -> float:
        return self.penalty.repulsion * float(np.vdot(at.U, at.U)) + self.penalty.attraction * float(at.A @ at.A)

    def _at(self, x: Floats) -> tuple[float, Floats]:
        shape, penalty = self.shape, self.penalty
        at, n = Parameters.of(x, shape), self.baskets.total_weight
        log_odds, pi = at.log_odds, at.weights
        C = at.interaction(shape) if shape.interacts else None
        norms = of_items(log_odds) if C is None else normalisers(C, log_odds, self.threads)
        segments = segment_sums(log_odds, np.log(pi) - norms.log_Z, self.baskets, self.threads)
        value, empty = segments.log_sum, np.zeros(shape.segments)
        if self.nonempty:
            of_empty = pi * np.exp(-norms.log_Z)  # P(c, ∅)
            value -= n * np.log1p(-of_empty.sum())
            empty = n / (1 - of_empty.sum()) * of_empty  # R⁰_c
        R = segments.shares + empty
        counts, expected = segments.counts, R[:, None] * norms.marginals  # (segments, n_items)
        clipped = np.abs(2 * at.gamma + at.theta) > MAX_LOG_ODDS
        if clipped.any():
            counts, expected = np.where(clipped, 0, counts), np.where(clipped, 0, expected)
        gamma = 2 * (counts.sum(axis=0) - expected.sum(axis=0)) - np.tanh(at.gamma)
        theta = counts - expected - penalty.segments * at.theta
        logits = R - pi * (n + empty.sum())
        value += _pseudo_baskets(at)
        value -= self._of_segments(at)
        U, A = at.U, at.A
        if C is not None and isinstance(norms, Normalisers):
            minors = minor_sums(C, self.baskets, self.threads)
            value += minors.logdet - self._of_interaction(at)
            G = minors.delta - norms.weighted_sum(R).T  # with Σ_c R_c D_c H_c D_c
            U = (G + G.T) @ at.U - 2 * penalty.repulsion * at.U
            A = (G - G.T)[shape.below] - 2 * penalty.attraction * at.A if at.A.size else at.A
        return value / n, Parameters(gamma, theta, U, A, logits).flat(shape) / n


def _pseudo_baskets(at: Parameters) -> float:
    """Return the log-likelihood of half a basket with and half a basket without each item, at odds e^{2γ}."""
    return float((at.gamma - np.logaddexp(0, 2 * at.gamma)).sum())
