"""What learning a mixture maximises: the log-likelihood less penalties, as a function of free numbers, and its gradient."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.statistics import minor_sums, segment_sums
from dpplearn.learners.problem import Problem
from dpplearn.tools.threads import pool, thread_count


@dataclass(frozen=True)
class Shape:
    """How many items, segments, and columns of U; and whether items attract."""

    n_items: int
    segments: int
    rank: int
    attraction: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        n = self.n_items
        theta = self.segments * n if self.segments > 1 else 0
        return n, theta, n * self.rank, n * (n - 1) // 2 if self.attraction else 0, self.segments

    @cached_property
    def below(self) -> tuple[Floats, Floats]:
        return np.tril_indices(self.n_items, -1)


@dataclass(frozen=True)
class Penalty:
    """Half a basket with and half a basket without every item are counted beside the data, whatever these are."""

    repulsion: float = 0.1  # λ_s ‖U‖²
    attraction: float = 1.0  # λ_a Σ_{i>j} A_ij²
    segments: float = 1.0  # λ_t/2 ‖θ‖²


@dataclass(frozen=True)
class Parameters:
    """γ, how much an item is liked; θ_c, what segment c adds; U and A, how items repel and attract; logits of the
    segments' weights."""

    gamma: Floats  # (n_items,)
    theta: Floats  # (segments, n_items)
    U: Floats  # (n_items, rank)
    A: Floats  # (n_items (n_items − 1)/2,), or empty; below the diagonal of the skew part, row after row
    logits: Floats  # (segments,)

    def flat(self, shape: Shape) -> Floats:
        theta = self.theta if shape.segments > 1 else self.theta[:0]
        return np.concatenate([self.gamma, theta.ravel(), self.U.ravel(), self.A, self.logits])

    @classmethod
    def of(cls, x: Floats, shape: Shape) -> Parameters:
        n, m = shape.n_items, shape.segments
        gamma, theta, U, A, logits = np.split(x, np.cumsum(shape.sizes)[:-1])
        return cls(gamma, theta.reshape(m, n) if m > 1 else np.zeros((1, n)), U.reshape(n, shape.rank), A, logits)

    @property
    def log_odds(self) -> Floats:
        return 2 * self.gamma + self.theta

    @property
    def weights(self) -> Floats:
        p = np.exp(self.logits - self.logits.max())
        return np.asarray(p / p.sum())

    def interaction(self, shape: Shape) -> Floats:
        C = self.U @ self.U.T
        C.flat[:: len(C) + 1] += 1
        if self.A.size:
            rows, columns = shape.below
            C[rows, columns] += self.A
            C[columns, rows] -= self.A
        return C

    def kernel(self, shape: Shape) -> MixtureKernel:
        return MixtureKernel(self.weights, self.log_odds, self.interaction(shape)[None])


@dataclass(frozen=True)
class Objective:
    """x to the mean log-likelihood less the penalties per basket, and its gradient."""

    problem: Problem
    shape: Shape
    penalty: Penalty = field(default_factory=Penalty)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
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
        G = minors.delta
        for c in range(shape.segments):
            G -= (R[c] * d[c][:, None]) * H[c].T * d[c]
        penalty = self.penalty
        expected = R[:, None] * K_ii
        gamma = 2 * (segments.counts.sum(axis=0) - expected.sum(axis=0)) + 1 - 2 / (1 + np.exp(-2 * at.gamma))
        theta = segments.counts - expected - penalty.segments * at.theta
        U = (G + G.T) @ at.U - 2 * penalty.repulsion * at.U
        skew = (G - G.T)[shape.below] - 2 * penalty.attraction * at.A if at.A.size else at.A
        logits = segments.shares + empty - pi * (n + empty.sum())
        value += float((at.gamma - np.log1p(np.exp(2 * at.gamma))).sum())
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
            H[c] = lapack.dgetri(factor, swaps, overwrite_lu=1)[0].T

    most = min(thread_count(threads), m) if m * n**3 > 2_000_000 else 1
    others: list[Future[None]] = [pool(most).submit(some, thread, most) for thread in range(1, most)]
    some(0, most)
    for other in others:
        other.result()
    return log_Z, H
