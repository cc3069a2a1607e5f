"""LowRankProblem and LowRankState: fitting a mixture with a low-rank interaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.interaction import LowRank, Singles, repelling_and_attracting
from dpplearn.learners.kernels import Segments
from dpplearn.learners.loop import Arrays
from dpplearn.learners.low_rank.interaction import Moments
from dpplearn.learners.mixture.problem import independent_log_odds
from dpplearn.learners.problem import Learner, Problem
from dpplearn.learners.starts import positions_in
from dpplearn.models.mixture import Mixture
from dpplearn.tools.threads import thread_count

MIN_COUNT = 20  # baskets with an item, from which on it interacts with others
EM_PASSES = 60  # over the baskets, for the segments alone
NOISE, SPREAD = 0.5, 0.8  # of random log-odds: standard deviation, and range over the segments
ROW_LENGTH = 0.1  # of a random row of Z, about
VARIANT_NOISE = 0.3  # standard deviation by which the copy of a segment differs from it


@dataclass(frozen=True)
class LowRankState:
    """The complete state of the learner, which checkpoints keep. Arrays change as learning goes on."""

    passes: int  # of EM, done
    batches: int  # of the interaction, done
    seed: int  # of the order of baskets and segments
    weights: Floats  # (n_segments,)
    log_odds: Floats  # (n_segments, n_items)
    factors: Moments | None = None  # Z of the active items; None while segments are learned alone

    def with_factors(self, problem: LowRankProblem) -> LowRankState:
        """Return the state with small random numbers for Z."""
        Z = random_rows(len(problem.active), problem.columns, np.random.default_rng(self.seed))
        return replace(self, factors=Moments.first(Z))

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LowRankState:
        passes, batches, seed = arrays["place"].tolist()
        factors = Moments(*(np.array(arrays[name]) for name in Moments.NAMES)) if "Z" in arrays else None
        return cls(passes, batches, seed, arrays["weights"], np.array(arrays["log_odds"]), factors)

    @property
    def arrays(self) -> Arrays:
        place = np.array([self.passes, self.batches, self.seed])
        kept = {"place": place, "weights": self.weights, "log_odds": self.log_odds}
        return kept if self.factors is None else {**kept, **self.factors.arrays}

    def copy(self) -> LowRankState:
        return self.from_arrays(self.arrays)


@dataclass(frozen=True, eq=False)
class LowRankProblem(Problem):
    """The baskets and their distribution, and the numbers of segments and columns of Z."""

    baskets: Baskets
    segments: int = 30
    repelling: int = 8  # columns
    attracting: int = 96  # pairs of columns

    model_type: ClassVar[Any] = Mixture
    random_start: ClassVar[str] = "random"
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
        counts = self.baskets.frequencies() * self.baskets.total_weight
        found = np.flatnonzero(counts >= MIN_COUNT)
        return found if len(found) > 1 and self.columns else found[:0]

    def baseline(self) -> Segments:
        return _of_segments(np.ones(1), independent_log_odds(self)[None])

    def initial(self, name: str, rng: np.random.Generator) -> LowRankState:
        log_odds = np.tile(_logit(self.frequencies), (self.segments, 1))
        if self.segments > 1:
            spread = np.linspace(-SPREAD, SPREAD, self.segments)[:, None]
            log_odds += NOISE * rng.standard_normal(log_odds.shape) + spread
        return self.start_from(_of_segments(np.full(self.segments, 1 / self.segments), log_odds))

    def adapted(self, model: Mixture, rng: np.random.Generator) -> Segments:
        here = positions_in(model.catalogue, self.baskets)
        return self._reshaped(over_items(Segments.of(model.distribution), here, self.frequencies), rng)

    def _reshaped(self, kernel: Segments, rng: np.random.Generator) -> Segments:
        """Return the kernel with the segments of largest weight, or additional variants of its segments.

        Where it has other columns, Z is random.
        """
        n = self.segments
        order = np.arange(n) if kernel.n_segments == n else np.argsort(-kernel.weights, kind="stable")
        chosen = order[np.arange(n) % len(order)]
        log_odds = kernel.log_odds[chosen].astype(float)
        new = np.arange(n) >= len(order)
        log_odds[new] += VARIANT_NOISE * rng.standard_normal((np.count_nonzero(new), kernel.n_items))
        share = kernel.weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
        known = kernel.factors
        if known is not None and np.array_equal(known.core[0], self.core):
            Z = known.Z
        else:
            Z = np.zeros((kernel.n_items, self.columns), dtype=np.float32)
            Z[self.active] = random_rows(len(self.active), self.columns, rng)
        return Segments.low_rank(share / share.sum(), log_odds, Z, self.core)

    def start_from(self, kernel: Segments) -> LowRankState:
        """Return the state with the segments of a kernel; if it has columns, its segments are not learned alone."""
        seed = crc32(kernel.log_odds.tobytes())
        at = LowRankState(0, 0, seed, kernel.weights, kernel.log_odds.astype(float))
        known = kernel.factors
        if known is None or not known.rank:
            return at
        return replace(at, passes=EM_PASSES, factors=Moments.first(known.Z[self.active].copy()))

    def can_continue(self, schedule: Arrays) -> bool:
        same_columns = schedule["columns"].tolist() == [self.repelling, self.attracting]
        return same_columns and schedule["log_odds"].shape == (self.segments, self.baskets.n_items)

    def continued(self, schedule: Arrays) -> LowRankState:
        return LowRankState.from_arrays(schedule)

    def kernel(self, at: LowRankState) -> Segments:
        """Return the kernel of a state."""
        columns = 0 if at.factors is None else self.columns
        Z = np.zeros((at.log_odds.shape[1], columns), dtype=np.float32)
        if at.factors is not None:
            Z[self.active] = at.factors.Z
        return Segments.low_rank(at.weights, at.log_odds, Z, self.core[:columns, :columns])

    def memory(self, learner: Learner) -> float:
        """Z, its moments and a copy of both; per thread a gradient and a normaliser; some tables per segment."""
        threads = thread_count(self.threads)
        of_Z = 4 * len(self.active) * self.columns * (3 + 3 + 2 * threads + 2)
        tables = 8 * self.segments * self.baskets.n_items * (5 + threads)
        return float(of_Z + tables + 3 * self.baskets.indices.nbytes)


def random_rows(n: int, columns: int, rng: np.random.Generator) -> Singles:
    """Return small random rows of Z."""
    small = ROW_LENGTH / np.sqrt(max(columns / 2, 1))
    return np.asarray(small * rng.standard_normal((n, columns)), dtype=np.float32)


def columns_of(model: Mixture) -> tuple[int, int] | None:
    """Return the numbers of repelling columns and of attracting pairs of a low-rank mixture that was learned."""
    if model.training is not None and model.training.schedule is not None:  # the kernel may not have its columns yet
        repelling, attracting = model.training.schedule["columns"].tolist()
        return repelling, attracting
    interaction = getattr(model.distribution.components, "interaction", None)
    if not isinstance(interaction, LowRank):
        return None
    repelling = int(np.count_nonzero(interaction.core[0].diagonal()))
    attracting = (interaction.rank - repelling) // 2
    usual = repelling_and_attracting(repelling, attracting)
    return (repelling, attracting) if np.array_equal(interaction.core, usual[None]) else None


def over_items(kernel: Segments, here: Ints, p: Floats) -> Segments:
    """Return the kernel over other items; `here` is the position of each in the kernel, or −1 where it is new.

    New items start independent of all others, with frequencies p in every segment.
    """
    known = here >= 0
    log_odds = np.tile(_logit(p), (kernel.n_segments, 1))
    log_odds[:, known] = kernel.log_odds[:, here[known]]
    factors = kernel.factors
    if factors is None:
        return _of_segments(kernel.weights, log_odds)
    Z = np.zeros((len(here), factors.rank), dtype=np.float32)
    Z[known] = factors.Z[here[known]]
    return Segments.low_rank(kernel.weights, log_odds, Z, factors.core[0])


def _of_segments(weights: Floats, log_odds: Floats) -> Segments:
    """Return segments of independent items."""
    return Segments.low_rank(weights, log_odds, np.zeros((log_odds.shape[1], 0)), np.zeros((0, 0)))


def _logit(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1 - p)))
