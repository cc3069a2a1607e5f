"""MixtureProblem: what a mixture is learned from, and what it may be like."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.independent import chances
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape, scaled_for
from dpplearn.learners.problem import Problem

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
        """With frequencies (count + ½)/(n + 1), under the law."""
        n = self.baskets.total_weight
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING, nonempty=self.nonempty)
        return MixtureKernel.of_items(np.log(p / (1 - p)))

    def log_likelihood(self, kernel: MixtureKernel) -> float:
        """Less the penalties, per basket: what learning maximises."""
        shape = Shape(self.baskets.n_items, kernel.n_segments, self.shape.n_items, True)
        at = Parameters.from_kernel(kernel, shape)
        return Objective(self, shape, self.penalty)(at.flat(shape))[0]
