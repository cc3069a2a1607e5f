"""Learning a mixture with a dense interaction, by L-BFGS on a penalised likelihood.

L_c = D_c (I + U Uᵀ + A) D_c with log D_c² = 2γ + θ_c: γ is the quality of items, θ_c what segment c adds to it, U the
repulsion and the skew A the attraction. Segments are learned first, without interaction, and then everything.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints, read_only
from dpplearn.distributions.components import softmax
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.statistics import SegmentSums, minor_sums, normalisers, of_items, segment_sums
from dpplearn.learners.kernels import Segments
from dpplearn.learners.lbfgs import Point, ascend
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import MATRICES, Problem
from dpplearn.models.mixture import Mixture

NEWTON_STEPS = 20  # which converge in a few
MIN_WEIGHT = 1e-12  # weight of a segment that may still grow
# Log-odds are clipped here. Without a penalty that counts, as with weights of 1e12, they would grow without bound, and
# e^l would not be a number.
MAX_LOG_ODDS = 80.0

NOISE = 0.3  # standard deviation of random numbers
SPREAD = 0.7  # of log-odds over the segments, from small baskets to large ones

PAIR_SMOOTHING = 5.0  # baskets added to observed and expected pair counts, so that rare pairs count as independent
CONFIDENCE = 3.0  # standard deviations of a count
RANDOM_SHARE = 0.3  # of the random U that is kept next to the repulsion that pairs show
ATTRACTION_SHARE = 0.3  # of the attraction that pairs show; small, so that its signs can still change

# Weights of the penalties: of repulsion on ‖U‖², of attraction on Σ_{i>j} A_ij², of segments on ½ ‖θ‖². In addition,
# half a basket with and half a basket without each item are added to the data.
REPULSION_PENALTY, ATTRACTION_PENALTY, SEGMENT_PENALTY = 0.1, 1.0, 1.0

MATRICES_PER_SEGMENT = 2  # N×N matrices, in addition to `MATRICES`
SEGMENT_STEPS = 120  # at most, on segments alone
FIRST_STEP = 0.3  # length of the first step, in the scaled parameters


@dataclass(frozen=True)
class Parameters:
    """The parameters γ, θ, U and A, and the logits of the mixing weights."""

    gamma: Floats  # (n_items,)
    theta: Floats  # (n_segments, n_items), 0 for a single segment
    U: Floats  # (n_items, rank)
    A: Floats  # (n_items (n_items − 1)/2,), or empty; below the diagonal of the skew part, row after row
    logits: Floats  # (n_segments,)

    def flat(self) -> Floats:
        return np.concatenate([self.gamma, self.theta.ravel(), self.U.ravel(), self.A, self.logits])

    @property
    def log_odds(self) -> Floats:
        return np.clip(2 * self.gamma + self.theta, -MAX_LOG_ODDS, MAX_LOG_ODDS)

    @property
    def weights(self) -> Floats:
        return softmax(self.logits)

    def interaction(self) -> Floats:
        """Return C = I + U Uᵀ + A."""
        C = self.U @ self.U.T
        C.flat[:: len(C) + 1] += 1
        if self.A.size:
            rows, columns = below_diagonal(len(C))
            C[rows, columns] += self.A
            C[columns, rows] -= self.A
        return C

    def kernel(self) -> Segments:
        C = self.interaction()
        return Segments.dense(self.weights, self.log_odds, C - np.eye(len(C)))

    @classmethod
    def from_kernel(cls, kernel: Segments, rank: int, *, attraction: bool) -> Parameters:
        """Return the parameters of a kernel whose segments share an interaction, truncated to the rank.

        U are the leading eigenvectors of the symmetric part of the interaction; γ is what leaves the least penalty.
        """
        X = kernel.components.interaction.X.mean(axis=0)
        excess, V = np.linalg.eigh((X + X.T) / 2)
        kept = slice(max(len(X) - rank, 0), None)
        U = V[:, kept] * np.sqrt(np.maximum(excess[kept], 0))
        A = ((X - X.T) / 2)[below_diagonal(len(X))] if attraction else np.zeros(0)
        log_odds = np.clip(kernel.components.log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        gamma = _common(log_odds) if len(log_odds) > 1 else log_odds[0] / 2
        return cls(gamma, log_odds - 2 * gamma, U, A, np.log(np.maximum(kernel.weights, MIN_WEIGHT)))


@lru_cache(maxsize=4)
def below_diagonal(n: int) -> tuple[Ints, Ints]:
    """Return the rows and columns of the entries of A, row after row."""
    rows, columns = np.tril_indices(n, -1)
    return read_only(rows.astype(np.int64)), read_only(columns.astype(np.int64))


def _common(log_odds: Floats) -> Floats:
    """Return the γ that maximises −λ_t/2 Σ_c (l_c − 2γ)² + γ − log(1 + e^{2γ}) for each item, by Newton's method."""
    m, gamma = len(log_odds), log_odds.mean(axis=0) / 2
    for _ in range(NEWTON_STEPS):
        halved = np.tanh(gamma)
        slope = 2 * SEGMENT_PENALTY * (log_odds - 2 * gamma).sum(axis=0) - halved
        gamma = gamma + slope / (4 * SEGMENT_PENALTY * m + 1 - halved**2)
    return np.asarray(gamma)


def with_pairs(at: Parameters, problem: MixtureProblem) -> Parameters:
    """Return segments of independent items with the interactions that pair counts show.

    Attraction is what the segments do not explain. Repulsion is compared with independence, because segments learned
    alone represent substitutes by differences in taste.

    A² maximises m log(1 + A²) − (e + 1) A² for a pair that occurs m times where segments alone imply e. Its sign, which
    pair counts do not determine, is that of the random numbers.
    """
    n, frequencies = problem.baskets.total_weight, problem.baskets.pair_frequencies()
    m = frequencies.diagonal()
    observed, independent = n * frequencies, n * np.outer(m, m)
    items = of_items(at.log_odds)
    allowed = 1 - at.weights @ np.exp(-items.log_Z) if problem.nonempty else 1.0
    expected = (n * at.weights[:, None] / allowed * items.marginals).T @ items.marginals
    attraction = np.sqrt(np.maximum(observed / (expected + 1) - 1, 0))
    A = ATTRACTION_SHARE * np.copysign(attraction[below_diagonal(len(m))], at.A) if at.A.size else at.A
    U = RANDOM_SHARE * at.U + repelling_directions(observed, independent, at.U.shape[1])
    return replace(at, U=U, A=A)


def repelling_directions(observed: Floats, expected: Floats, rank: int) -> Floats:
    """Return U with U Uᵀ near √(1 − lift) of the pairs that clearly co-occur less often than expected.

    Where there are many substitutes, small random numbers would take long to find them, or never do.
    """
    lift = (observed + CONFIDENCE * np.sqrt(observed) + PAIR_SMOOTHING) / (expected + PAIR_SMOOTHING)
    apart = np.sqrt(np.maximum(1 - lift, 0))
    np.fill_diagonal(apart, 0)
    np.fill_diagonal(apart, apart.max(axis=1))
    values, vectors = np.linalg.eigh(apart)
    kept = slice(len(values) - rank, None)
    return np.asarray(vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0)))


@dataclass(frozen=True, eq=False)
class MixtureProblem(Problem):
    """The baskets and their distribution, and the shape of the mixture.

    A learner starts from parameters, and whether they are random.
    """

    segments: int = 10
    rank: int = 20
    attraction: bool = True
    penalised: float = 1.0  # factor of the penalties

    model_type: ClassVar[Any] = Mixture

    def parameters(self, x: Floats) -> Parameters:
        """Return the parameters that `Parameters.flat` has made a vector."""
        n, m, r = self.baskets.n_items, self.segments, min(self.rank, self.baskets.n_items)
        pairs = n * (n - 1) // 2 if self.attraction else 0
        gamma, theta, U, A, logits = np.split(x, np.cumsum([n, m * n, n * r, pairs]))
        return Parameters(gamma, theta.reshape(m, n), U.reshape(n, r), A, logits)

    def penalties(self, at: Parameters) -> float:
        """Return the penalties per basket."""
        of_interaction = REPULSION_PENALTY * np.vdot(at.U, at.U) + ATTRACTION_PENALTY * np.vdot(at.A, at.A)
        squares = SEGMENT_PENALTY / 2 * np.vdot(at.theta, at.theta) + of_interaction
        # the log-likelihood of half a basket with and half a basket without each item, at odds e^{2γ}
        pseudo_baskets = (at.gamma - np.logaddexp(0, 2 * at.gamma)).sum()
        return float(self.penalised * squares - pseudo_baskets) / self.baskets.total_weight

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        """Return the mean log-likelihood minus penalties, and its gradient; −inf where numbers overflow."""
        at = self.parameters(x)
        n, log_odds, pi, penalised = self.baskets.total_weight, at.log_odds, at.weights, self.penalised
        C = at.interaction() if at.U.size or at.A.size else None
        norms = of_items(log_odds) if C is None else normalisers(C, log_odds, self.threads)
        segments, log_likelihood, empty = responsibilities(self, log_odds, np.log(pi) - norms.log_Z)
        R = segments.shares + empty
        excess = segments.counts - R[:, None] * norms.marginals  # of observed over expected items
        excess[np.abs(2 * at.gamma + at.theta) > MAX_LOG_ODDS] = 0  # where log-odds are clipped
        gamma = 2 * excess.sum(axis=0) - np.tanh(at.gamma)
        theta = excess - penalised * SEGMENT_PENALTY * at.theta if len(pi) > 1 else np.zeros_like(at.theta)
        logits = R - pi * (n + empty.sum())
        U, A = at.U, at.A
        if C is not None:
            logdet, delta = minor_sums(C, self.baskets, self.threads)
            log_likelihood += logdet
            G = delta - norms.weighted_sum(R).T  # with Σ_c R_c D_c H_c D_c
            U = (G + G.T) @ U - 2 * penalised * REPULSION_PENALTY * U
            A = (G - G.T)[below_diagonal(len(C))] - 2 * penalised * ATTRACTION_PENALTY * A if A.size else A
        value = log_likelihood / n - self.penalties(at)
        gradient = Parameters(gamma, theta, U, A, logits).flat() / n
        return (value, gradient) if np.isfinite(value) else (-np.inf, gradient)

    @cached_property
    def scale(self) -> Floats:
        """The scale of the search: about the root of the second derivative in each parameter, for equal segments."""
        n, m, rank = self.baskets.total_weight, self.segments, min(self.rank, self.baskets.n_items)
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING)
        size, variance = p.sum(), p * (1 - p)
        rows, columns = below_diagonal(len(p)) if self.attraction else (np.zeros(0, dtype=np.int64),) * 2
        U = np.sqrt(p * size / (1 + size) + 2 * (REPULSION_PENALTY + 1) / n)
        return Parameters(
            gamma=np.sqrt(4 * variance + 1 / n),
            theta=np.tile(np.sqrt(variance / m + SEGMENT_PENALTY / n), (m, 1)),
            U=np.tile(U[:, None], rank),
            A=np.sqrt(p[rows] * p[columns] + ATTRACTION_PENALTY / n),
            logits=np.full(m, np.sqrt(max((1 - 1 / m) / m, 1 / n))),
        ).flat()

    def baseline(self) -> Segments:
        n = self.baskets.n_items
        return Segments.dense(np.ones(1), independent_log_odds(self)[None], np.zeros((n, n)))

    def objective(self, kernel: Segments) -> float:
        n = self.baskets.n_items
        whole = replace(self, segments=len(kernel.weights), rank=n, attraction=True)  # with room for any kernel
        return whole.value_and_gradient(Parameters.from_kernel(kernel, n, attraction=True).flat())[0]

    def initial(self, name: str, rng: np.random.Generator) -> tuple[Parameters, bool]:
        """Return independent items with small random deviations between segments and random interactions."""
        n, m, r = self.baskets.n_items, self.segments, min(self.rank, self.baskets.n_items)
        theta = NOISE * rng.standard_normal((m, n)) + np.linspace(-SPREAD, SPREAD, m)[:, None]
        U = NOISE * rng.standard_normal((n, r)) / np.sqrt(max(r, 1))
        A = NOISE * rng.standard_normal(n * (n - 1) // 2 if self.attraction else 0) / np.sqrt(n)
        theta = theta if m > 1 else np.zeros((1, n))
        return Parameters(independent_log_odds(self) / 2, theta, U, A, np.zeros(m)), True

    def adapted(self, model: Mixture, rng: np.random.Generator) -> Segments:
        return Segments.adapted(model, self.baskets, self.segments, independent_log_odds(self), NOISE, rng)

    def start_from(self, kernel: Segments) -> tuple[Parameters, bool]:
        return Parameters.from_kernel(kernel, self.rank, attraction=self.attraction), False

    def facts(self, step: Step) -> dict[str, Any]:
        return {"segments": self.segments, "rank": min(self.rank, self.baskets.n_items), "attraction": self.attraction}

    def memory(self) -> float:
        return 8.0 * self.baskets.n_items**2 * (MATRICES + MATRICES_PER_SEGMENT * self.segments)


def responsibilities(
    problem: Problem, log_odds: Floats, log_empty: Floats, temperature: float = 1.0
) -> tuple[SegmentSums, float, Floats]:
    """Return sums over P(c | Y), the log-likelihood without minors, and the expected number of empty sets by segment.

    `log_empty` is log P(c, ∅) = log π_c − log Z_c. Empty sets are expected if the distribution excludes them.
    Responsibilities are taken to the power `temperature`.
    """
    sums = segment_sums(temperature * log_odds, temperature * log_empty, problem.baskets, problem.threads)
    if not problem.nonempty:
        return sums, sums.log_sum, np.zeros(len(log_empty))
    n, of_empty = problem.baskets.total_weight, np.exp(log_empty)
    return sums, sums.log_sum - n * float(np.log1p(-of_empty.sum())), n / (1 - of_empty.sum()) * of_empty


def independent_log_odds(problem: Problem) -> Floats:
    """Return the log-odds of independent items with frequencies (count + ½)/(n + 1), under the distribution.

    Where a basket has little more than one item on average, the condition Y ≠ ∅ would make items arbitrarily rare; they
    are at least as frequent as one nonempty basket in n + 1 makes them.
    """
    n, m = problem.baskets.total_weight, problem.baskets.frequencies()
    p = chances(m, n, smoothing=SMOOTHING, nonempty=problem.nonempty)
    p = np.maximum(p, chances(m, n, smoothing=SMOOTHING) / (n + 1))
    return np.asarray(np.log(p / (1 - p)))


def mixture(start: tuple[Parameters, bool], problem: MixtureProblem) -> Iterator[Step]:
    """Yield steps from a start. A random start first learns its segments without interaction."""
    at, is_random = start
    if is_random:
        if problem.segments > 1:
            at = yield from learn_segments(at, problem)
        at = with_pairs(at, problem)
        # principal axes for U, and the γ that leaves the least penalty
        at, _ = problem.start_from(at.kernel())
    yield from climb(problem, at)


def learn_segments(at: Parameters, problem: MixtureProblem) -> Generator[Step, None, Parameters]:
    """Yield steps in which items do not interact, and return where they end.

    Such a step takes a fraction of the time of one with interaction, and leaves little to do for those.
    """
    alone = replace(problem, rank=0, attraction=False)
    for step in islice(climb(alone, replace(at, U=at.U[:, :0], A=at.A[:0])), SEGMENT_STEPS + 1):
        last = step
        yield replace(step, preliminary=True)
    return replace(alone.parameters(last.parameters["x"]), U=at.U, A=at.A)


def climb(problem: MixtureProblem, at: Parameters) -> Iterator[Step]:
    """Yield steps of L-BFGS in y = s ∘ x, s the scale: in y all second derivatives are about 1."""
    scale = problem.scale

    def scaled(y: Floats) -> tuple[float, Floats]:
        value, gradient = problem.value_and_gradient(y / scale)
        return value, gradient / scale

    y = at.flat() * scale
    first = Point(y, *scaled(y))
    for each in chain([first], ascend(scaled, first, first_direction, rounding)):
        x = each.x / scale
        at = problem.parameters(x)
        log_likelihood = each.value + problem.penalties(at)
        yield Step(at.kernel, log_likelihood, each.step_size, each.evaluations, each.value, parameters={"x": x})


def rounding(at: Point) -> float:
    return 1e3 * EPSILON * max(1, abs(at.value))


def first_direction(gradient: Floats) -> Floats:
    """Return the gradient, which is Newton's step where second derivatives are 1, of limited length."""
    return np.asarray(gradient * (FIRST_STEP / max(float(np.linalg.norm(gradient)), FIRST_STEP)))
