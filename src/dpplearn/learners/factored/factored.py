"""The learner of mixtures in factors: as many passes over the baskets as are planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.kernels.factored.kernel import FactoredKernel, coupled, weighted_gram
from dpplearn.kernels.factored.statistics import log_minors
from dpplearn.kernels.passes import Share, over_threads
from dpplearn.learners.factored.interaction import ALWAYS, RIDGE, Active, Batch, Segment, climb, gradient, towards
from dpplearn.learners.factored.place import Place
from dpplearn.learners.factored.plan import BATCHES, BETWEEN, PASSES, SEGMENTS, Plan
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.learners.factored.segments import Division, divide
from dpplearn.learners.loop import Step

TEMPERED, COLDEST = 10, 0.3  # the first of them, with responsibilities taken to a power that rises from this to 1
WATCHED = 100_000  # baskets whose minors are looked at when the likelihood is told on the way; at the end it is all


def factored(start: FactoredKernel | Place, problem: FactoredProblem) -> Iterator[Step]:
    """Learn segments of independent items first, then the interaction of items together with the segments.

    From a kernel the schedule begins anew; from the state in a checkpoint it continues.
    """
    learning = Learning(problem)
    at = start.copy() if isinstance(start, Place) else Place.first(start, problem)
    while at.factors is None:
        division = learning.division(at)
        yield learning.step(at, division.log_sum)
        if at.passes == PASSES:
            break
        if at.passes < TEMPERED:
            division = learning.division(at, COLDEST + (1 - COLDEST) * at.passes / TEMPERED)
        at = replace(at, passes=at.passes + 1, weights=division.weights, log_odds=division.targets)
    if not len(problem.active):
        return
    if at.factors is None:
        at = at.with_factors(problem)
    yield from learning.interaction(at)


@dataclass(frozen=True)
class Learning:
    """What stays the same while a mixture is learned."""

    problem: FactoredProblem

    @cached_property
    def active(self) -> Active:
        return Active.of(self.problem.baskets, self.problem.active)

    @cached_property
    def others(self) -> Ints:
        """The items that do not interact."""
        return np.setdiff1d(np.arange(self.problem.baskets.n_items), self.problem.active)

    @cached_property
    def watched(self) -> Baskets:
        baskets = self.problem.baskets
        step = -(-len(baskets) // WATCHED)
        return baskets if step == 1 else baskets.subset(np.arange(0, len(baskets), step))

    @cached_property
    def plan(self) -> Plan:
        return Plan.of(self.problem)

    def division(self, at: Place, temper: float = 1.0) -> Division:
        problem = self.problem
        return divide(
            at.log_odds,
            at.weights,
            self.log_normalisers(at),
            problem.baskets,
            problem.frequencies,
            nonempty=problem.nonempty,
            temper=temper,
            threads=problem.threads,
        )

    def log_normalisers(self, at: Place) -> Floats:
        found = np.logaddexp(0, at.log_odds).sum(axis=1)
        if at.factors is None:
            return np.asarray(found)
        Z, active = at.factors.Z.astype(float), self.problem.active

        def part(share: Share) -> None:
            for c in range(share.thread, len(found), share.of):
                p = 1 / (1 + np.exp(-at.log_odds[c, active]))
                found[c] += coupled(self.problem.coupling, weighted_gram(Z, p))[0]

        over_threads(part, ALWAYS, self.problem.threads, with_blas=True)
        return np.asarray(found)

    def mean_log_minor(self, at: Place, baskets: Baskets) -> float:
        each = log_minors(at.kernel(self.problem), 0, baskets, self.problem.threads)
        return float(each @ baskets.weights / baskets.total_weight)

    def step(self, at: Place, log_likelihood: float, rate: float = 0.0) -> Step:
        now = at.copy()
        share = self.plan.share(now.passes, now.batches)
        schedule = {**now.arrays, "columns": np.array([self.problem.repelling, self.problem.attracting])}
        return Step(partial(now.kernel, self.problem), log_likelihood, rate, 1, share=share, schedule=schedule)

    def interaction(self, at: Place) -> Iterator[Step]:
        """From a place whose segments have been learned."""
        rate = 0.0
        while True:
            division = self.division(at)
            done = at.batches == self.plan.batches
            baskets = self.problem.baskets if done else self.watched
            yield self.step(at, division.log_sum + self.mean_log_minor(at, baskets), rate)
            if done:
                return
            at = replace(at, weights=division.weights)
            at.log_odds[:, self.others] = division.targets[:, self.others]
            targets = division.targets[:, self.problem.active]
            for _ in range(BETWEEN):
                rate = self.batch(at, targets)
                at = replace(at, batches=at.batches + 1)

    def batch(self, at: Place, targets: Floats) -> float:
        """One step of Z, and of the log-odds of the segments whose turn it is, in place; its rate."""
        problem, factors, chosen = self.problem, at.factors, self.chosen(at)
        assert factors is not None
        if not len(chosen.chosen):  # few baskets leave some batches without one
            return 0.0
        turn = self.turn(at)
        scale = len(at.weights) / len(turn)
        segments = [Segment(at.log_odds[c, problem.active], float(scale * at.weights[c])) for c in turn]
        found = gradient(factors.Z, problem.coupling, problem.repelling, self.active, chosen, segments, problem.threads)
        for c, segment, marginals in zip(turn, segments, found.marginals, strict=True):
            at.log_odds[c, problem.active] = towards(segment.log_odds, marginals, targets[c])
        return climb(factors, found, RIDGE / problem.baskets.total_weight, at.batches, self.plan.batches)

    def chosen(self, at: Place) -> Batch:
        """The baskets of the batch: in an epoch, each as often as its weight says."""
        epoch, number = divmod(at.batches, BATCHES)
        return Batch.of(self.problem.baskets.weights, number, BATCHES, np.random.default_rng([at.seed, 0, epoch]))

    def turn(self, at: Place) -> list[int]:
        """The segments of the batch: all come equally often, in orders at random."""
        m = len(at.weights)
        at_a_time = min(SEGMENTS, m)
        first = at.batches * at_a_time
        found = (
            int(c)
            for round_ in range(first // m, (first + at_a_time - 1) // m + 1)
            for c in np.random.default_rng([at.seed, 1, round_]).permutation(m)
        )
        return list(islice(found, first % m, first % m + at_a_time))
