"""FactoredProblem: what a mixture in factors is learned from, and what it may be like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.kernel import coupling as coupling_of
from dpplearn.kernels.families import AnyKernel
from dpplearn.kernels.independent import chances
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.factored.starts import fitted, over_items, random_segments
from dpplearn.learners.mixture.problem import SMOOTHING
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import check_known

FEWEST = 20  # baskets with an item, from which on it interacts with others


@dataclass(frozen=True, eq=False)
class FactoredProblem(Problem):
    """The baskets and their law, how many segments, and of how many columns the parts that repel and attract are."""

    baskets: Baskets
    segments: int = 30
    repelling: int = 8
    attracting: int = 96

    @property
    def columns(self) -> int:
        return self.repelling + 2 * self.attracting

    @cached_property
    def coupling(self) -> Floats:
        return coupling_of(self.repelling, self.attracting)

    @cached_property
    def frequencies(self) -> Floats:
        """Of the items, none of them 0 or 1."""
        return chances(self.baskets.frequencies(), self.baskets.total_weight, smoothing=SMOOTHING)

    @cached_property
    def active(self) -> Ints:
        """The items that interact with others; where there are less than two, none."""
        counts = self.baskets.frequencies() * self.baskets.total_weight
        found = np.flatnonzero(counts >= FEWEST)
        return found if len(found) > 1 and self.columns else found[:0]

    def independent_items(self) -> FactoredKernel:
        """With frequencies (count + ½)/(n + 1), under the law; where single items would have them ever rarer, as rare
        as one basket in n + 1 that is not empty makes them."""
        n, m = self.baskets.total_weight, self.baskets.frequencies()
        p = chances(m, n, smoothing=SMOOTHING, nonempty=self.nonempty)
        p = np.maximum(p, chances(m, n, smoothing=SMOOTHING) / (n + 1))
        return FactoredKernel.of_items(np.log(p / (1 - p)))

    def yardstick(self) -> FactoredKernel:
        return self.independent_items()

    def start(self, name: str, rng: np.random.Generator) -> FactoredKernel:
        """Segments at random beside independent items, which are to be learned first."""
        return random_segments(self.frequencies, self.segments, rng)

    def adapted(self, kernel: AnyKernel, catalogue: Catalogue, rng: np.random.Generator) -> FactoredKernel:
        assert isinstance(kernel, MixtureKernel | FactoredKernel)
        here = catalogue.translation(self.baskets.catalogue)
        check_known(here, catalogue, self.baskets)
        known = over_items(kernel, here, self.frequencies)
        return fitted(known, self.segments, self.coupling, self.active, rng)
