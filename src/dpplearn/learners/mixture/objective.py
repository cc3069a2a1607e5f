"""What learning a mixture maximises: the log-likelihood less penalties, and its gradient in the free numbers."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.nonsymmetric.statistics import minor_sums, segment_sums
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape
from dpplearn.learners.problem import Problem
from dpplearn.tools.threads import pool, thread_count

BLOCK = 64  # columns at a time, for which LAPACK needs room; without it inverting takes three times as long


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
        log_Z, H = inverses(C, log_odds, threads)
        minors = minor_sums(C, baskets, threads)
        segments = segment_sums(log_odds, np.log(pi) - log_Z, baskets, threads)
        value, empty = minors.logdet + segments.log_sum, np.zeros(shape.segments)
        if self.problem.nonempty:
            of_empty = pi * np.exp(-log_Z)
            value -= n * np.log1p(-of_empty.sum())
            empty = n / (1 - of_empty.sum()) * of_empty
        R = segments.shares + empty
        d = np.exp(log_odds / 2)
        K_ii = 1 - np.diagonal(H, axis1=1, axis2=2)  # (segments, n_items)
        S = np.zeros_like(C)  # transposed, as that is how the inverses lie in memory
        for c in range(shape.segments):
            H[c] *= (R[c] * d[c])[:, None]
            H[c] *= d[c]
            S += H[c]
        G = minors.delta - S.T
        penalty = self.penalty
        expected = R[:, None] * K_ii
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


def inverses(C: Floats, log_odds: Floats, threads: int | None) -> tuple[Floats, Floats]:
    """log det(I + L_c) and (I + L_c)⁻¹ of every segment."""
    m, n = log_odds.shape
    log_Z, H = np.empty(m), np.empty((m, n, n))

    def some(start: int, step: int) -> None:
        from scipy.linalg import lapack

        for c in range(start, m, step):
            d = np.exp(log_odds[c] / 2)
            plus_one = (d[:, None] * C * d).T
            plus_one.ravel(order="K")[:: n + 1] += 1
            factor, swaps, _ = lapack.dgetrf(plus_one, overwrite_a=1)
            log_Z[c] = np.log(np.abs(factor.diagonal())).sum()
            H[c] = lapack.dgetri(factor, swaps, lwork=BLOCK * n, overwrite_lu=1)[0].T

    most = min(thread_count(threads), m) if m * n**3 > 2_000_000 else 1
    others: list[Future[None]] = [pool(most).submit(some, thread, most) for thread in range(1, most)]
    some(0, most)
    for other in others:
        other.result()
    return log_Z, H
