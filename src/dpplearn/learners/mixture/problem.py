"""MixtureProblem: what a mixture is learned from, and what it may be like."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.families import AnyKernel
from dpplearn.kernels.independent import chances
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.statistics import normalisers, of_items
from dpplearn.learners.mixture.climbing import climb, numbers_at
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape, rescaled, scaled_for
from dpplearn.learners.mixture.starts import over_items, random_numbers, with_pairs, with_segments
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import check_known

STEPS_ALONE = (10, 110)  # before and after the scale knows of the segments
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
    def scale(self) -> Parameters:
        """By which the free numbers are multiplied for the search, as long as nothing is known of the segments."""
        n = self.baskets.total_weight
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING)
        return scaled_for(p, n, self.shape, self.penalty)

    def scale_at(self, at: Parameters) -> Floats:
        """By which they are multiplied from there on."""
        norms = (
            normalisers(at.interaction(self.shape), at.log_odds, self.threads)
            if self.shape.interacts
            else of_items(at.log_odds)
        )
        n, shares = self.baskets.total_weight, self._shares(at, norms.log_Z)
        return rescaled(self.scale, shares, norms.marginals, n, self.penalty).flat(self.shape)

    def _shares(self, at: Parameters, log_Z: Floats) -> Floats:
        """How many sets of a segment there are for each that the law allows."""
        allowed = 1 - at.weights @ np.exp(-log_Z) if self.nonempty else 1.0
        return np.asarray(at.weights / allowed)

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
        """Segments of independent items, learned from random numbers, and what the pairs say beside them."""
        at = random_numbers(self.shape, self.independent_items(), rng)
        alone = self.segments_alone(at) if self.segments > 1 else at
        items = of_items(alone.log_odds)
        shares = self.baskets.total_weight * self._shares(alone, items.log_Z)
        expected = (shares[:, None] * items.marginals).T @ items.marginals
        return with_pairs(replace(alone, U=at.U, A=at.A), self.baskets, expected).kernel(self.shape)

    def segments_alone(self, at: Parameters) -> Parameters:
        """What learning finds from the given numbers as long as items do not interact: a step takes a fraction of the
        time that one with the interaction does, and leaves little to do for those."""
        alone = replace(self, rank=0, attraction=False)
        at, scale = replace(at, U=at.U[:, :0], A=at.A[:0]), alone.scale.flat(alone.shape)
        for steps in STEPS_ALONE:
            *_, last = islice(climb(alone.objective, at.flat(alone.shape) * scale, scale), steps + 1)
            at = numbers_at(last, alone.shape)
            scale = alone.scale_at(at)
        return at

    def adapted(self, kernel: AnyKernel, catalogue: Catalogue, rng: np.random.Generator) -> MixtureKernel:
        kernel = kernel.dense() if isinstance(kernel, FactoredKernel) else kernel
        assert isinstance(kernel, MixtureKernel)
        here = catalogue.translation(self.baskets.catalogue)
        check_known(here, catalogue, self.baskets)
        return with_segments(over_items(kernel, here, self.independent_items()), self.segments, rng)
