"""The learner of low-rank mixtures: a fixed schedule of passes over the baskets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.interaction import absorbed_core, weighted_gram
from dpplearn.distributions.passes import Share, over_threads
from dpplearn.learners.loop import Step
from dpplearn.learners.low_rank.e_step import EStep, e_step
from dpplearn.learners.low_rank.interaction import ALWAYS, RIDGE, Active, Batch, Segment, adam, damped_step, gradient
from dpplearn.learners.low_rank.problem import EM_PASSES, LowRankProblem, LowRankState

TEMPERED_PASSES, MIN_TEMPERATURE = 10, 0.3  # first passes, with responsibilities to a power that rises from this to 1
EPOCHS, BATCHES = 5, 40  # passes for the interaction, and batches in each
SEGMENTS_PER_BATCH = 5  # whose normalisers a batch computes, in turn
BATCHES_PER_E_STEP = 20
BATCH_COST = 5  # EM passes that take as long as a batch: on Belgian retail with 30 segments and 96 pairs of columns


def low_rank(start: LowRankState, problem: LowRankProblem) -> Iterator[Step]:
    """Learn segments of independent items first, then the interaction of items together with the segments.

    A start with `batches` or `passes` continues the schedule there.
    """
    schedule = Schedule(problem)
    at = start.copy()
    while at.factors is None:
        found = schedule.e_step(at)
        yield schedule.step(at, found.log_sum)
        if at.passes == EM_PASSES:
            break
        if at.passes < TEMPERED_PASSES:
            found = schedule.e_step(at, MIN_TEMPERATURE + (1 - MIN_TEMPERATURE) * at.passes / TEMPERED_PASSES)
        at = replace(at, passes=at.passes + 1, weights=found.weights, log_odds=found.targets)
    if not len(problem.active):
        return
    yield from schedule.interaction(at if at.factors is not None else at.with_factors(problem))


@dataclass(frozen=True)
class Schedule:
    """The parts of the schedule, for one problem."""

    problem: LowRankProblem

    @property
    def n_batches(self) -> int:
        return EPOCHS * BATCHES if len(self.problem.active) else 0

    @cached_property
    def active(self) -> Active:
        return Active.of(self.problem.baskets, self.problem.active)

    @cached_property
    def inactive(self) -> Ints:
        """The items that do not interact."""
        return np.setdiff1d(np.arange(self.problem.baskets.n_items), self.problem.active)

    def e_step(self, at: LowRankState, temperature: float = 1.0) -> EStep:
        problem = self.problem
        return e_step(
            at.log_odds,
            at.weights,
            self.log_normalisers(at),
            problem.baskets,
            problem.frequencies,
            nonempty=problem.nonempty,
            temperature=temperature,
            threads=problem.threads,
        )

    def log_normalisers(self, at: LowRankState) -> Floats:
        """Return log Z_c = Σ log(1 + e^l) + log det(I + S_c Ω) of every segment."""
        found = np.logaddexp(0, at.log_odds).sum(axis=1)
        if at.factors is None:
            return np.asarray(found)
        Z, active = at.factors.Z.astype(float), self.problem.active

        def part(share: Share) -> None:
            for c in range(share.thread, len(found), share.of):
                p = 1 / (1 + np.exp(-at.log_odds[c, active]))
                found[c] += absorbed_core(self.problem.core, weighted_gram(Z, p))[0]

        over_threads(part, ALWAYS, self.problem.threads, with_blas=True)
        return np.asarray(found)

    def mean_log_minor(self, at: LowRankState) -> float:
        """Return the mean of log det C_Y over the baskets."""
        baskets = self.problem.baskets
        interaction = self.problem.kernel(at).components.interaction
        each = interaction.log_minors(baskets, self.problem.threads)[:, 0]
        return float(each @ baskets.weights / baskets.total_weight)

    def step(self, at: LowRankState, log_likelihood: float, rate: float = 0.0) -> Step:
        now = at.copy()
        done, all_ = (p + BATCH_COST * b for p, b in ((at.passes, at.batches), (EM_PASSES, self.n_batches)))
        schedule = {**now.arrays, "columns": np.array([self.problem.repelling, self.problem.attracting])}
        kernel = partial(self.problem.kernel, now)
        return Step(kernel, log_likelihood, rate, 1, share=done / all_, schedule=schedule)

    def interaction(self, at: LowRankState) -> Iterator[Step]:
        """Yield the steps from a state whose segments have been learned; each is several batches."""
        rate = 0.0
        while True:
            found = self.e_step(at)
            yield self.step(at, found.log_sum + self.mean_log_minor(at), rate)
            if at.batches == self.n_batches:
                return
            at = replace(at, weights=found.weights)
            at.log_odds[:, self.inactive] = found.targets[:, self.inactive]
            targets = found.targets[:, self.problem.active]
            for _ in range(BATCHES_PER_E_STEP):
                rate = self.batch(at, targets)
                at = replace(at, batches=at.batches + 1)

    def batch(self, at: LowRankState, targets: Floats) -> float:
        """Change Z, and the log-odds of some segments, in place by one batch; return the learning rate."""
        problem, factors, chosen = self.problem, at.factors, self.baskets_of_batch(at)
        assert factors is not None
        if not len(chosen.chosen):  # few baskets leave some batches without one
            return 0.0
        turn = self.segments_of_batch(at)
        scale = len(at.weights) / len(turn)
        segments = [Segment(at.log_odds[c, problem.active], float(scale * at.weights[c])) for c in turn]
        found = gradient(factors.Z, problem.core, problem.repelling, self.active, chosen, segments, problem.threads)
        for c, segment, marginals in zip(turn, segments, found.marginals, strict=True):
            at.log_odds[c, problem.active] = damped_step(segment.log_odds, marginals, targets[c])
        return adam(factors, found, RIDGE / problem.baskets.total_weight, at.batches, self.n_batches)

    def baskets_of_batch(self, at: LowRankState) -> Batch:
        """Return the baskets of the batch: in an epoch, each as often as its weight says."""
        epoch, number = divmod(at.batches, BATCHES)
        return Batch.of(self.problem.baskets.weights, number, BATCHES, np.random.default_rng([at.seed, 0, epoch]))

    def segments_of_batch(self, at: LowRankState) -> list[int]:
        """Return the segments whose normalisers this batch computes; every segment gets its turn equally often."""
        m = len(at.weights)
        at_a_time = min(SEGMENTS_PER_BATCH, m)
        first = at.batches * at_a_time
        found = (
            int(c)
            for round_ in range(first // m, (first + at_a_time - 1) // m + 1)
            for c in np.random.default_rng([at.seed, 1, round_]).permutation(m)
        )
        return list(islice(found, first % m, first % m + at_a_time))
