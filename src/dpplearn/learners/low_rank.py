"""Learning a mixture with a low-rank interaction, for large catalogues: a fixed schedule of passes over the baskets.

EM learns the segments alone. Then batches change Z, with I + X = I + Z Ω Zᵀ, by steps of Adam in single precision, and
the log-odds of the segments by damped steps towards the targets of an E-step. The gradient of the mean log-likelihood
in Z is that of the batch's minors, Σ w (B + Bᵀ) W and so on with B the inverse of a minor, minus Σ_c π_c times that of
log Z_c, p_c Z (T_c + T_cᵀ), here of some segments in turn. The latter also gives the segments' marginals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import iadd
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.interaction import (
    LowRank,
    Singles,
    absorbed_core,
    minor_gradient,
    repelling_and_attracting,
    weighted_gram,
)
from dpplearn.distributions.minors import Share, over_threads
from dpplearn.learners.kernels import Segments
from dpplearn.learners.loop import Arrays, Step
from dpplearn.learners.mixture import independent_log_odds, responsibilities
from dpplearn.learners.problem import Problem
from dpplearn.models.mixture import Mixture
from dpplearn.utils.threads import thread_count

MIN_COUNT = 20  # baskets with an item, from which on it interacts with others
EM_PASSES = 60  # over the baskets, for the segments alone
NOISE, SPREAD = 0.5, 0.8  # of random log-odds: standard deviation, and range over the segments
ROW_LENGTH = 0.1  # of a random row of Z, about
VARIANT_NOISE = 0.3  # standard deviation by which the copy of a segment differs from it

TEMPERED_PASSES, MIN_TEMPERATURE = 10, 0.3  # first passes, with responsibilities to a power that rises from this to 1
EPOCHS, BATCHES = 5, 40  # passes for the interaction, and batches in each
SEGMENTS_PER_BATCH = 5  # whose normalisers a batch computes, in turn
BATCHES_PER_E_STEP = 20
BATCH_COST = 5  # EM passes that take as long as a batch: on Belgian retail with 30 segments and 96 pairs of columns

RATE, DECAY, SQUARE_DECAY = 0.06, 0.9, 0.99  # of Adam; the rate falls to 0 along half a cosine
RIDGE = 5.0  # baskets: weight of the ridge penalty on Z
DAMPING, MAX_CHANGE = 0.7, 1.0  # fraction of the way to their targets that log-odds go in a step; largest change
MIN_PROBABILITY = 1e-9  # distance from 0 and 1 of marginals, which rounding may leave there
ALWAYS = 10**9  # nanoseconds of work: a step is always worth all threads

PRIOR_COUNT = 1.0  # baskets with an item, as frequent as in all segments together, added to those of each segment


class LowRankState(NamedTuple):
    """The complete state of the learner, which checkpoints keep."""

    counts: Ints  # passes of EM and batches of the interaction that are done, and the seed of their order
    weights: Floats  # (n_segments,)
    log_odds: Floats  # (n_segments, n_items)
    Z: Singles  # (n_active, n_columns); without columns while segments are learned alone
    mean: Singles  # moments of the gradients of Z in Adam
    square: Singles

    @classmethod
    def first(cls, weights: Floats, log_odds: Floats, passes: int, Z: Singles) -> LowRankState:
        """Return the state before any batch."""
        counts = np.array([passes, 0, crc32(log_odds.tobytes())])
        return cls(counts, weights, log_odds.astype(float), Z.copy(), np.zeros_like(Z), np.zeros_like(Z))

    def copy(self) -> LowRankState:
        return LowRankState(*map(np.array, self))


@dataclass(frozen=True, eq=False)
class LowRankProblem(Problem):
    """The baskets and their distribution, and the numbers of segments and columns of Z."""

    baskets: Baskets
    segments: int = 30
    repelling: int = 8  # columns
    attracting: int = 96  # pairs of columns

    model_type: ClassVar[Any] = Mixture
    # in large catalogues, rare pairs have lifts that few columns cannot represent
    blends: ClassVar[bool] = True

    @property
    def columns(self) -> int:
        return self.repelling + 2 * self.attracting

    @cached_property
    def core(self) -> Floats:
        """Ω, with C = I + Z Ω Zᵀ."""
        return repelling_and_attracting(self.repelling, self.attracting)

    @cached_property
    def frequencies(self) -> Floats:
        """Smoothed frequencies of the items, none of them 0 or 1."""
        return chances(self.baskets.frequencies(), self.baskets.total_weight, smoothing=SMOOTHING)

    @cached_property
    def active(self) -> Ints:
        """The items that interact with others; none where there are fewer than two."""
        found = np.flatnonzero(self.baskets.item_weights >= MIN_COUNT)
        return found if len(found) > 1 and self.columns else found[:0]

    @cached_property
    def active_sets(self) -> Baskets:
        """The baskets restricted to the items that interact, as rows of Z."""
        return self.baskets.known_to(Catalogue(self.baskets.catalogue.select(self.active)))[0]

    @property
    def n_batches(self) -> int:
        return EPOCHS * BATCHES if len(self.active) else 0

    def baseline(self) -> Segments:
        log_odds = independent_log_odds(self)[None]
        return Segments.low_rank(np.ones(1), log_odds, np.zeros((log_odds.shape[1], 0)), np.zeros((0, 0)))

    def initial(self, name: str, rng: np.random.Generator) -> LowRankState:
        log_odds = np.tile(_logit(self.frequencies), (self.segments, 1))
        if self.segments > 1:
            spread = np.linspace(-SPREAD, SPREAD, self.segments)[:, None]
            log_odds += NOISE * rng.standard_normal(log_odds.shape) + spread
        weights, alone = np.full(self.segments, 1 / self.segments), np.zeros((len(self.active), 0), dtype=np.float32)
        return LowRankState.first(weights, log_odds.astype(np.float32), 0, alone)

    def random_Z(self, rng: np.random.Generator) -> Singles:
        """Return small random rows of the active items."""
        small = ROW_LENGTH / np.sqrt(max(self.columns / 2, 1))
        return np.asarray(small * rng.standard_normal((len(self.active), self.columns)), dtype=np.float32)

    def adapted(self, model: Mixture, rng: np.random.Generator) -> Segments:
        """Return the segments of a model; where it has other columns than wanted, Z is random."""
        common = _logit(self.frequencies)
        kernel = Segments.adapted(model, self.baskets, self.segments, common, VARIANT_NOISE, rng)
        known, log_odds = kernel.components.interaction, kernel.components.log_odds
        if isinstance(known, LowRank) and np.array_equal(known.core, self.core[None]):
            return Segments.low_rank(kernel.weights, log_odds, known.Z, self.core)
        return self.segments_of(kernel.weights, log_odds, self.random_Z(rng))

    def start_from(self, kernel: Segments) -> LowRankState:
        """Return the state with the segments of a kernel, which are not learned alone if some items interact."""
        interaction: Any = kernel.components.interaction
        passes, columns = (EM_PASSES, self.columns) if len(self.active) else (0, 0)
        Z = interaction.Z[self.active, :columns]
        return LowRankState.first(kernel.weights, kernel.components.log_odds, passes, Z)

    def resumed(self, schedule: Arrays) -> LowRankState | None:
        same_columns = schedule["columns"].tolist() == [self.repelling, self.attracting]
        same_rows = schedule["Z"].shape in ((len(self.active), 0), (len(self.active), self.columns))
        if not same_columns or not same_rows or schedule["log_odds"].shape != (self.segments, self.baskets.n_items):
            return None
        return LowRankState(**{name: schedule[name] for name in LowRankState._fields})

    def segments_of(self, weights: Floats, log_odds: Floats, Z: Singles) -> Segments:
        """Return segments with the rows Z of the active items."""
        whole = np.zeros((log_odds.shape[1], Z.shape[1]), dtype=np.float32)
        whole[self.active] = Z
        return Segments.low_rank(weights, log_odds, whole, self.core[: Z.shape[1], : Z.shape[1]])

    def kernel(self, at: LowRankState) -> Segments:
        return self.segments_of(at.weights, at.log_odds, at.Z)

    def e_step(self, at: LowRankState, temperature: float = 1.0) -> tuple[Floats, Floats, float]:
        """Return new weights, target log-odds of the marginals (n_segments, n_items), and the mean log-likelihood
        without the minors of the interaction.

        Where sets cannot be empty, the expected number of empty sets of each segment is added. Responsibilities are
        taken to the power `temperature`, and the frequencies of each segment are shrunk towards those of all segments
        times its relative basket size.
        """
        n = self.baskets.total_weight
        log_empty = np.log(np.maximum(at.weights, np.finfo(float).tiny)) - self.log_normalisers(at)
        sums, value, empty = responsibilities(self, at.log_odds, log_empty, temperature)
        shares = (sums.shares + empty) * (n + 2 * SMOOTHING) / n
        counts = sums.counts + SMOOTHING * sums.shares[:, None] / n
        targets = shrunk_log_odds(counts, shares, self.frequencies)
        return shares / shares.sum(), targets, value / n

    def log_normalisers(self, at: LowRankState) -> Floats:
        """Return log Z_c = Σ log(1 + e^l) + log det(I + S_c Ω) of every segment."""
        found = np.logaddexp(0, at.log_odds).sum(axis=1)
        Z, log_odds = at.Z.astype(float), at.log_odds[:, self.active]

        def part(share: Share) -> None:
            for c in range(share.thread, len(found), share.of):
                found[c] += absorbed_core(self.core, weighted_gram(Z, 1 / (1 + np.exp(-log_odds[c]))))[0]

        if Z.shape[1]:
            over_threads(part, ALWAYS, self.threads, with_blas=True)
        return np.asarray(found)

    def mean_log_minor(self, at: LowRankState) -> float:
        """Return the mean of log det C_Y over the baskets."""
        each = self.kernel(at).components.interaction.log_minors(self.baskets, self.threads)[:, 0]
        return float(each @ self.baskets.weights / self.baskets.total_weight)

    def gradient(self, Z: Singles, batch: Floats, log_odds: Floats, weights: Floats) -> tuple[Singles, Floats]:
        """Return the gradient of the batch mean of log det C_Y minus Σ_c w_c log Z_c.

        `batch` is the weight of every basket in the batch. `log_odds`, (m, n_active), and the weights w are of some
        segments. The second result has the marginals of the active items in each of them.
        """
        sets, marginals = self.active_sets.weighted(batch), np.empty_like(log_odds)

        def part(share: Share) -> Singles:
            into = minor_gradient(Z, self.core, sets[share.among(len(sets))])
            into /= batch.sum()
            for c in range(share.thread, len(weights), share.of):
                marginals[c] = self._subtract(into, Z, log_odds[c], weights[c])
            return into

        return reduce(iadd, over_threads(part, ALWAYS, self.threads, with_blas=True)), marginals

    def _subtract(self, into: Singles, Z: Singles, log_odds: Floats, weight: float) -> Floats:
        """Subtract the gradient of log Z_c and return the marginals of the segment."""
        p = 1 / (1 + np.exp(-log_odds))
        _, T = absorbed_core(self.core, weighted_gram(Z, p.astype(np.float32)))  # in single precision
        Q = Z @ (T + T.T).astype(np.float32)
        along = np.einsum("ij,ij->i", Q, Z) / 2
        Q *= (weight * p).astype(np.float32)[:, None]
        into -= Q
        return np.asarray(p + p * (1 - p) * along)

    def facts(self, step: Step) -> dict[str, Any]:
        return {"segments": self.segments, "rank": self.repelling, "attraction": self.attracting > 0}

    def memory(self) -> float:
        """Z, its moments and a copy of both; per thread a gradient and a normaliser; some tables per segment."""
        threads = thread_count(self.threads)
        of_Z = 4 * len(self.active) * self.columns * (3 + 3 + 2 * threads + 2)
        tables = 8 * self.segments * self.baskets.n_items * (5 + threads)
        return float(of_Z + tables + 3 * self.baskets.indices.nbytes)


def damped_step(log_odds: Floats, marginals: Floats, targets: Floats) -> Floats:
    """Return the log-odds moved so that the marginals come nearer to those of the targets."""
    kept = np.clip(marginals, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    far = targets - (np.log(kept) - np.log1p(-kept))
    return np.asarray(log_odds + DAMPING * np.clip(far, -MAX_CHANGE, MAX_CHANGE))


def shrunk_log_odds(counts: Floats, shares: Floats, p: Floats) -> Floats:
    """Return the log-odds of t_ci = p_i (N_ci + s)/(n_c p_i + s/m_c), m_c the relative basket size of segment c."""
    size = np.maximum(counts.sum(axis=1) / np.maximum(shares * p.sum(), np.finfo(float).tiny), 1e-6)
    with_item = counts + PRIOR_COUNT
    without = shares[:, None] + PRIOR_COUNT / (size[:, None] * p) - with_item
    return np.asarray(np.log(with_item) - np.log(np.maximum(without, PRIOR_COUNT)))


def columns_of(model: Mixture) -> tuple[int, int] | None:
    """Return the numbers of repelling columns and of attracting pairs of a low-rank mixture that was learned."""
    if model.training is not None and model.training.schedule is not None:  # the kernel may not have its columns yet
        repelling, attracting = model.training.schedule["columns"].tolist()
        return repelling, attracting
    interaction: Any = getattr(model.distribution.components, "interaction", None)
    if not hasattr(interaction, "core"):
        return None
    repelling = int(np.count_nonzero(interaction.core[0].diagonal()))
    attracting = (interaction.rank - repelling) // 2
    usual = repelling_and_attracting(repelling, attracting)
    return (repelling, attracting) if np.array_equal(interaction.core, usual[None]) else None


def _logit(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1 - p)))


def low_rank(start: LowRankState, problem: LowRankProblem) -> Iterator[Step]:
    """Learn segments of independent items first, then the interaction of items together with the segments.

    A start in the middle of the schedule continues it.
    """
    at = start.copy()
    while not at.Z.shape[1]:
        passes, _, seed = at.counts.tolist()
        weights, targets, value = problem.e_step(at)
        yield step_at(at, problem, value)
        if passes == EM_PASSES:
            if not len(problem.active):
                return
            Z = problem.random_Z(np.random.default_rng(seed))
            at = at._replace(Z=Z, mean=np.zeros_like(Z), square=np.zeros_like(Z))
            break
        if passes < TEMPERED_PASSES:
            temperature = MIN_TEMPERATURE + (1 - MIN_TEMPERATURE) * passes / TEMPERED_PASSES
            weights, targets, _ = problem.e_step(at, temperature)
        at.counts[0] += 1
        at = at._replace(weights=weights, log_odds=targets)
    inactive = np.setdiff1d(np.arange(problem.baskets.n_items), problem.active)
    rate = 0.0
    while True:
        weights, targets, value = problem.e_step(at)
        yield step_at(at, problem, value + problem.mean_log_minor(at), rate)
        if at.counts[1] == problem.n_batches:
            return
        at = at._replace(weights=weights)
        at.log_odds[:, inactive] = targets[:, inactive]
        for _ in range(BATCHES_PER_E_STEP):
            rate = change_by_batch(at, problem, targets)


def step_at(at: LowRankState, problem: LowRankProblem, log_likelihood: float, rate: float = 0.0) -> Step:
    """Return the step with a copy of the state."""
    now = at.copy()
    passes, batches, _ = now.counts.tolist()
    share = (passes + BATCH_COST * batches) / (EM_PASSES + BATCH_COST * problem.n_batches)
    schedule = {**now._asdict(), "columns": np.array([problem.repelling, problem.attracting])}
    return Step(partial(problem.kernel, now), log_likelihood, rate, 1, share=share, schedule=schedule)


def change_by_batch(at: LowRankState, problem: LowRankProblem, targets: Floats) -> float:
    """Change Z, and the log-odds of some segments, in place by one batch; return the learning rate."""
    _, done, seed = at.counts.tolist()
    at.counts[1] += 1
    epoch, number = divmod(done, BATCHES)
    batch = batch_weights(problem.baskets.weights, number, BATCHES, np.random.default_rng([seed, 0, epoch]))
    if not batch.any():  # few baskets leave some batches without one
        return 0.0
    turn = segments_of_batch(len(at.weights), done, seed)
    log_odds, weights = at.log_odds[np.ix_(turn, problem.active)], at.weights[turn] * (len(at.weights) / len(turn))
    gradient, marginals = problem.gradient(at.Z, batch, log_odds, weights)
    at.log_odds[np.ix_(turn, problem.active)] = damped_step(log_odds, marginals, targets[np.ix_(turn, problem.active)])
    return adam(at, gradient, RIDGE / problem.baskets.total_weight, done, problem.n_batches)


def batch_weights(weights: Floats, number: int, of: int, rng: np.random.Generator) -> Floats:
    """Return the weights in one of several batches, between which the weight of every basket is divided evenly.

    Each batch gets ⌊weight/of⌋; the remainder goes to batches drawn at random. `rng` must be in the same state for all
    batches of an epoch.
    """
    to_all = np.floor(weights / of)
    place = (number - rng.integers(of, size=len(weights))) % of
    return np.asarray(to_all + np.clip(weights - of * to_all - place, 0, 1))


def segments_of_batch(m: int, batch: int, seed: int) -> Ints:
    """Return the segments whose normalisers a batch computes; every segment gets its turn equally often."""
    at_a_time = min(SEGMENTS_PER_BATCH, m)
    round_, done = divmod(batch * at_a_time, m)
    order = [np.random.default_rng([seed, 1, each]).permutation(m) for each in (round_, round_ + 1)]
    return np.concatenate(order)[done : done + at_a_time]


def adam(at: LowRankState, gradient: Singles, ridge: float, step: int, steps: int) -> float:
    """Change Z in place by one step of Adam; return the learning rate."""
    rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
    of_mean, of_square = 1 - DECAY ** (step + 1), 1 - SQUARE_DECAY ** (step + 1)
    Z, mean, square = at.Z, at.mean, at.square  # changed in place
    slope = gradient - np.float32(ridge) * Z
    mean += np.float32(1 - DECAY) * (slope - mean)
    square += np.float32(1 - SQUARE_DECAY) * (slope**2 - square)
    Z += np.float32(rate / of_mean) * mean / (np.sqrt(square / np.float32(of_square)) + np.float32(1e-8))
    return float(rate)
