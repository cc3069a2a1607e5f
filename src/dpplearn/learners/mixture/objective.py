"""What learning a mixture maximises: its parameters, the log-likelihood minus penalties, and the gradient."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.segment_statistics import Normalisers, minor_sums, normalisers, of_items, segment_sums
from dpplearn.learners.kernels import Segments

NEWTON_STEPS = 20  # which converge in a few
MIN_WEIGHT = 1e-12  # weight of a segment that may still grow
# Log-odds are clipped here. Without a penalty that counts, as with weights of 1e12, they would grow without bound, and
# e^l would not be a number.
MAX_LOG_ODDS = 80.0


@dataclass(frozen=True)
class Shape:
    """Numbers of items, segments and columns of U, and whether items attract."""

    n_items: int
    segments: int
    rank: int
    attraction: bool = True

    @property
    def interacts(self) -> bool:
        """Whether items of a segment interact."""
        return self.rank > 0 or self.attraction

    @property
    def sizes(self) -> tuple[int, ...]:
        n = self.n_items
        theta = self.segments * n if self.segments > 1 else 0
        return n, theta, n * self.rank, n * (n - 1) // 2 if self.attraction else 0, self.segments

    @cached_property
    def below(self) -> tuple[Ints, Ints]:
        """Rows and columns of the entries of A, row after row."""
        rows, columns = np.tril_indices(self.n_items, -1)
        return rows.astype(np.int64), columns.astype(np.int64)


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties. Half a basket with and half a basket without each item are always added to the data."""

    repulsion: float = 0.1  # λ_s ‖U‖²
    attraction: float = 1.0  # λ_a Σ_{i>j} A_ij²
    segments: float = 1.0  # λ_t/2 ‖θ‖²


@dataclass(frozen=True)
class Parameters:
    """γ, the quality of items; θ_c, what segment c adds to it; U and A, how items repel and attract; logits of the
    segments' weights. L_c = D_c (I + U Uᵀ + A) D_c with log D_c² = 2γ + θ_c."""

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
        return np.clip(2 * self.gamma + self.theta, -MAX_LOG_ODDS, MAX_LOG_ODDS)

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

    def kernel(self, shape: Shape) -> Segments:
        return Segments.dense(self.weights, self.log_odds, self.interaction(shape) - np.eye(shape.n_items))

    @classmethod
    def from_kernel(cls, kernel: Segments, shape: Shape, penalty: Penalty) -> Parameters:
        """Return the parameters of a kernel whose segments share an interaction, truncated to the shape.

        U are the leading eigenvectors of the symmetric part of the interaction; γ is what leaves the least penalty.
        """
        X = kernel.X
        excess, V = np.linalg.eigh((X + X.T) / 2)
        kept = slice(len(X) - shape.rank, None)
        U = V[:, kept] * np.sqrt(np.maximum(excess[kept], 0))
        A = ((X - X.T) / 2)[shape.below] if shape.attraction else np.zeros(0)
        log_odds = np.clip(kernel.log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        gamma = _common(log_odds, penalty) if kernel.n_segments > 1 else log_odds[0] / 2
        return cls(gamma, log_odds - 2 * gamma, U, A, np.log(np.maximum(kernel.weights, MIN_WEIGHT)))


def scaled_for(p: Floats, n: float, shape: Shape, penalty: Penalty) -> Parameters:
    """Return the scale of the search: about the root of the second derivative in each parameter.

    `p` are the frequencies of the items in baskets of weight n.
    """
    m, size = shape.segments, p.sum()
    rows, columns = shape.below
    U = np.sqrt(p * size / (1 + size) + 2 * (penalty.repulsion + 1) / n)
    return Parameters(
        gamma=np.sqrt(4 * p),
        theta=np.tile(np.sqrt(p / m + penalty.segments / n), (m, 1)),
        U=np.tile(U[:, None], shape.rank),
        A=np.sqrt(2 * (p[rows] * p[columns] + penalty.attraction / n)) if shape.attraction else np.zeros(0),
        logits=np.full(m, m**-0.5),
    )


def rescaled(scale: Parameters, shares: Floats, marginals: Floats, n: float, penalty: Penalty) -> Parameters:
    """Return the scale once weights and marginals of the segments, (segments, n_items), are known."""
    variance = shares[:, None] * marginals * (1 - marginals)
    return replace(
        scale,
        gamma=np.sqrt(4 * variance.sum(axis=0) + 1 / n),
        theta=np.sqrt(variance + penalty.segments / n),
        logits=np.sqrt(np.maximum(shares * (1 - shares), 1 / n)),
    )


def _common(log_odds: Floats, penalty: Penalty) -> Floats:
    """Return the γ that maximises −λ_t/2 Σ_c (l_c − 2γ)² + γ − log(1 + e^{2γ}) for each item, by Newton's method."""
    m, gamma = len(log_odds), log_odds.mean(axis=0) / 2
    for _ in range(NEWTON_STEPS):
        halved = np.tanh(gamma)
        slope = 2 * penalty.segments * (log_odds - 2 * gamma).sum(axis=0) - halved
        gamma = gamma + slope / (4 * penalty.segments * m + 1 - halved**2)
    return np.asarray(gamma)


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
