"""Place: the complete state of the low-rank learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.learners.factored.interaction import Moments
from dpplearn.learners.factored.plan import PASSES
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.learners.factored.starts import random_rows
from dpplearn.learners.loop import Arrays


@dataclass(frozen=True)
class Place:
    """The segments and, once these have been learned alone, Z. Arrays change as learning goes on."""

    passes: int  # of EM, done
    batches: int  # done, of the interaction
    seed: int  # of the order of baskets and segments
    weights: Floats  # (n_segments,)
    log_odds: Floats  # (n_segments, n_items)
    factors: Moments | None = None  # of the active items; None during EM

    @classmethod
    def first(cls, kernel: FactoredKernel, problem: FactoredProblem) -> Place:
        """The segments of a kernel, and its Z if it has columns."""
        seed = crc32(kernel.log_odds.tobytes())
        at = cls(0, 0, seed, kernel.weights, kernel.log_odds.astype(float))
        if not kernel.n_columns:
            return at
        Z = kernel.factors[problem.active]
        return replace(at, passes=PASSES, factors=Moments(Z.copy(), np.zeros_like(Z), np.zeros_like(Z)))

    def with_factors(self, problem: FactoredProblem) -> Place:
        """With small random numbers for Z."""
        Z = random_rows(len(problem.active), problem.columns, np.random.default_rng(self.seed))
        return replace(self, factors=Moments(Z, np.zeros_like(Z), np.zeros_like(Z)))

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Place:
        passes, batches, seed = arrays["place"].tolist()
        factors = Moments(*(np.array(arrays[name]) for name in Moments.NAMES)) if "Z" in arrays else None
        return cls(passes, batches, seed, arrays["weights"], np.array(arrays["log_odds"]), factors)

    @property
    def arrays(self) -> Arrays:
        place = np.array([self.passes, self.batches, self.seed])
        kept = {"place": place, "weights": self.weights, "log_odds": self.log_odds}
        return kept if self.factors is None else {**kept, **self.factors.arrays}

    def copy(self) -> Place:
        return self.from_arrays(self.arrays)

    def kernel(self, problem: FactoredProblem) -> FactoredKernel:
        columns = 0 if self.factors is None else problem.columns
        Z = np.zeros((self.log_odds.shape[1], columns), dtype=np.float32)
        if self.factors is not None:
            Z[problem.active] = self.factors.Z
        return FactoredKernel(self.weights, self.log_odds, Z, problem.coupling[None, :columns, :columns])
