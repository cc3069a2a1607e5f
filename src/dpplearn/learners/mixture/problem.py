"""MixtureProblem: what a mixture is learned from, and what it may be like."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue
from dpplearn.kernels.families import AnyKernel
from dpplearn.kernels.independent import chances
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape, scaled_for
from dpplearn.learners.mixture.starts import (
    over_items,
    random_numbers,
    with_segments,
)
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import check_known

SMOOTHING = 0.5  # baskets with and without every item, counted beside the data


@dataclass(frozen=True, eq=False)
class MixtureProblem(Problem):
    """The baskets and their law, the shape of the mixture, and how much its parts are shrunk."""

    segments: int = 10
    rank: int = 20
    attraction: bool = True
    penalty: Penalty = field(default_factory=Penalty)

    @cached_property
    def shape(self) -> Shape:
        n = self.baskets.n_items
        return Shape(n, self.segments, min(self.rank, n), self.attraction)

    @cached_property
    def objective(self) -> Objective:
        return Objective(self, self.shape, self.penalty)

    @cached_property
    def scale(self) -> Floats:
        """By which the free numbers are multiplied for the search."""
        n = self.baskets.total_weight
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING)
        return scaled_for(p, n, self.shape, self.penalty).flat(self.shape)

    def independent_items(self) -> MixtureKernel:
        """With frequencies (count + ½)/(n + 1), under the law. Where single items would have them ever rarer, they are
        as rare as one basket in n + 1 that is not empty makes them."""
        n, m = self.baskets.total_weight, self.baskets.frequencies()
        p = chances(m, n, smoothing=SMOOTHING, nonempty=self.nonempty)
        p = np.maximum(p, chances(m, n, smoothing=SMOOTHING) / (n + 1))
        return MixtureKernel.of_items(np.log(p / (1 - p)))

    def yardstick(self) -> MixtureKernel:
        return self.independent_items()

    def log_likelihood(self, kernel: AnyKernel) -> float:
        """Less the penalties, per basket: what learning maximises."""
        assert isinstance(kernel, MixtureKernel)
        n = self.baskets.n_items
        shape = Shape(n, kernel.n_segments, n, attraction=True)  # with room for any kernel
        return Objective(self, shape, self.penalty)(Parameters.from_kernel(kernel, shape, self.penalty).flat(shape))[0]

    def start(self, name: str, rng: np.random.Generator) -> MixtureKernel:
        """Beside independent items."""
        return random_numbers(self.shape, self.independent_items(), rng).kernel(self.shape)

    def adapted(self, kernel: AnyKernel, catalogue: Catalogue, rng: np.random.Generator) -> MixtureKernel:
        assert isinstance(kernel, MixtureKernel)
        here = catalogue.translation(self.baskets.catalogue)
        check_known(here, catalogue, self.baskets)
        return with_segments(over_items(kernel, here, self.independent_items()), self.segments, rng)

    def off_saddle(self, kernel: AnyKernel) -> None:
        return None
