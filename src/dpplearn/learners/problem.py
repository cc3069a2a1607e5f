"""Problem: all that a learner is told of what it learns from, and what a fit asks of it whatever the learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel
from dpplearn.learners.starts import INITIALISERS, adapted


@dataclass(frozen=True, eq=False)
class Problem:
    """The baskets, how many threads may work on them, and the law that they follow. Kernels are symmetric ones."""

    baskets: AnyBaskets
    threads: int | None = None  # None: all cores
    nonempty: bool = False  # whether the law is P(Y given Y ≠ ∅)

    def log_likelihood(self, kernel: AnyKernel) -> float:
        """What is maximised: the mean per basket, under the law."""
        return law_of(kernel, nonempty=self.nonempty).mean_log_likelihood(self.baskets, self.threads)

    def independent_items(self) -> AnyKernel:
        """The model of independent items with the frequencies of the baskets, under the law."""
        return independent(self.baskets, nonempty=self.nonempty)

    def yardstick(self) -> AnyKernel:
        """Independent items, of which none is certain, as none is where learning starts: for 1e-5 nats, no set
        need be impossible without it."""
        kernel = independent(self.baskets, nonempty=self.nonempty)
        return Kernel(np.minimum(kernel.eigenvalues, 1 - BORDER), kernel.eigenvectors)

    def start(self, name: str, rng: np.random.Generator) -> AnyKernel:
        """One of the starts that have names."""
        return INITIALISERS[name](self.baskets, rng)

    def adapted(self, kernel: AnyKernel, catalogue: Catalogue, rng: np.random.Generator) -> AnyKernel:
        """A kernel over another catalogue as a start, its items found by label."""
        assert isinstance(kernel, Kernel)
        return adapted(kernel, catalogue, self.baskets, rng)
