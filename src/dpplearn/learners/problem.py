"""Problem: all that a learner is told of what it learns from."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.data.baskets import Baskets
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.statistics import mean_log_likelihood


@dataclass(frozen=True, eq=False)
class Problem:
    """The baskets, how many threads may work on them, and the law that they follow."""

    baskets: Baskets
    threads: int | None = None  # None: all cores
    nonempty: bool = False  # whether the law is P(Y given Y ≠ ∅)

    def log_likelihood(self, kernel: Kernel) -> float:
        """The mean per basket, under the law."""
        return mean_log_likelihood(kernel, self.baskets, self.threads, nonempty=self.nonempty)

    def independent_items(self) -> Kernel:
        """The model of independent items with the frequencies of the baskets, under the law."""
        return independent(self.baskets, nonempty=self.nonempty)
