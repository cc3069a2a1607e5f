"""What learning a mixture in factors takes: known beforehand, as the passes are planned."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.tools.threads import thread_count

PASSES = 60  # of EM over the baskets, for the segments alone
EPOCHS, BATCHES = 5, 40  # passes for the interaction, each in so many batches
SEGMENTS = 5  # whose normalisers a batch looks at, in turn
BETWEEN = 20  # batches, between dividing the baskets among the segments and doing it again

# seconds on one core of our machine
OF_ITEM, OF_BASKET = 1.2e-9, 1.5e-8  # of a pass of EM: per segment and item of a basket, and per segment and basket
OF_PAIR = 3e-10  # of a minor and its gradient: per column and pair of items of a basket
OF_SQUARE = 5e-11  # of a segment's normaliser and its gradient: per item that interacts and square of the columns
OF_NUMBER = 8e-9  # of a step: per number in Z
SINGLES = 4  # bytes


@dataclass(frozen=True)
class Plan:
    """Seconds on our machine with all threads, and bytes at the peak."""

    of_pass: float
    of_batch: float
    batches: int
    memory: float

    @classmethod
    def of(cls, problem: FactoredProblem) -> Plan:
        baskets, m, r, n_active = problem.baskets, problem.segments, problem.columns, len(problem.active)
        threads = thread_count(problem.threads)
        of_pass = m * (OF_ITEM * len(baskets.indices) + OF_BASKET * len(baskets))
        minors = OF_PAIR * r * float((baskets.sizes**2).sum()) / BATCHES
        normalisers = OF_SQUARE * min(SEGMENTS, m) * n_active * r**2
        division = (of_pass + m * n_active * OF_SQUARE * r**2) / BETWEEN
        of_batch = minors + normalisers + division + OF_NUMBER * n_active * r
        return cls(
            of_pass / threads, of_batch / threads, EPOCHS * BATCHES if n_active else 0, _memory(problem, threads)
        )

    @property
    def seconds(self) -> float:
        return PASSES * self.of_pass + self.batches * self.of_batch

    def share(self, passes: int, batches: int) -> float:
        """Of the work, that is done by then."""
        return (passes * self.of_pass + batches * self.of_batch) / self.seconds


def _memory(problem: FactoredProblem, threads: int) -> float:
    """Z, what Adam keeps and a copy of both; of every thread a gradient and what a normaliser takes; and of the
    segments some tables in double precision."""
    numbers = len(problem.active) * problem.columns
    of_Z = SINGLES * numbers * (3 + 3 + 2 * threads + 2)
    tables = 8 * problem.segments * problem.baskets.n_items * (5 + threads)
    return float(of_Z + tables + 3 * problem.baskets.indices.nbytes)
