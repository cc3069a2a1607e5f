"""MixtureProblem: fitting a mixture with a dense interaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.segment_statistics import Normalisers, OfItems, normalisers, of_items
from dpplearn.learners.kernels import Segments
from dpplearn.learners.mixture.objective import Objective
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape, rescaled, scaled_for
from dpplearn.learners.mixture.starts import over_items, random_parameters, with_segments
from dpplearn.learners.problem import Learner, Problem
from dpplearn.learners.starts import positions_in
from dpplearn.models.mixture import Mixture

MATRICES_PER_SEGMENT = 2  # N×N matrices, in addition to those of the learner


class MixtureStart(NamedTuple):
    """Initial parameters, and whether they are random."""

    parameters: Parameters
    random: bool = False


@dataclass(frozen=True, eq=False)
class MixtureProblem(Problem):
    """The baskets and their distribution, the shape of the mixture, and the penalties."""

    segments: int = 10
    rank: int = 20
    attraction: bool = True
    penalty: Penalty = field(default_factory=Penalty)

    model_type: ClassVar[Any] = Mixture
    random_start: ClassVar[str] = "random"

    @cached_property
    def shape(self) -> Shape:
        n = self.baskets.n_items
        return Shape(n, self.segments, min(self.rank, n), self.attraction)

    @cached_property
    def at_shape(self) -> Objective:
        """The objective as a function of parameters of the shape."""
        return Objective(self.baskets, self.threads, self.nonempty, self.shape, self.penalty)

    @cached_property
    def scale(self) -> Parameters:
        """The scale of the search as long as nothing is known of the segments."""
        n = self.baskets.total_weight
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING)
        return scaled_for(p, n, self.shape, self.penalty)

    def scale_at(self, at: Parameters) -> Floats:
        """Return the scale of the search from these parameters on."""
        norms: Normalisers | OfItems = of_items(at.log_odds)
        if self.shape.interacts:
            norms = normalisers(at.interaction(self.shape), at.log_odds, self.threads)
        n, shares = self.baskets.total_weight, self._shares(at, norms.log_Z)
        return rescaled(self.scale, shares, norms.marginals, n, self.penalty).flat(self.shape)

    def _shares(self, at: Parameters, log_Z: Floats) -> Floats:
        """Return π_c over the probability of the sets that the distribution allows."""
        allowed = 1 - at.weights @ np.exp(-log_Z) if self.nonempty else 1.0
        return np.asarray(at.weights / allowed)

    def expected_pairs(self, at: Parameters) -> Floats:
        """Return the pair counts that the segments imply if items of a segment are independent."""
        items = of_items(at.log_odds)
        shares = self.baskets.total_weight * self._shares(at, items.log_Z)
        return np.asarray((shares[:, None] * items.marginals).T @ items.marginals)

    def baseline(self) -> Segments:
        n = self.baskets.n_items
        return Segments.dense(np.ones(1), independent_log_odds(self)[None], np.zeros((n, n)))

    def objective(self, kernel: Segments) -> float:
        n = self.baskets.n_items
        shape = Shape(n, kernel.n_segments, n, attraction=True)  # with room for any kernel
        objective = Objective(self.baskets, self.threads, self.nonempty, shape, self.penalty)
        return objective(Parameters.from_kernel(kernel, shape, self.penalty).flat(shape))[0]

    def initial(self, name: str, rng: np.random.Generator) -> MixtureStart:
        return MixtureStart(random_parameters(self.shape, independent_log_odds(self), rng), random=True)

    def adapted(self, model: Mixture, rng: np.random.Generator) -> Segments:
        kernel = Segments.of(model.distribution)
        here = positions_in(model.catalogue, self.baskets)
        return with_segments(over_items(kernel, here, independent_log_odds(self)), self.segments, rng)

    def start_from(self, kernel: Segments) -> MixtureStart:
        return MixtureStart(Parameters.from_kernel(kernel, self.shape, self.penalty))

    def memory(self, learner: Learner) -> float:
        return 8.0 * self.baskets.n_items**2 * (learner.matrices + MATRICES_PER_SEGMENT * self.segments)


def independent_log_odds(problem: Problem) -> Floats:
    """Return the log-odds of independent items with frequencies (count + ½)/(n + 1), under the distribution.

    Where a basket has little more than one item on average, the condition Y ≠ ∅ would make items arbitrarily rare; they
    are at least as frequent as one nonempty basket in n + 1 makes them.
    """
    n, m = problem.baskets.total_weight, problem.baskets.frequencies()
    p = chances(m, n, smoothing=SMOOTHING, nonempty=problem.nonempty)
    p = np.maximum(p, chances(m, n, smoothing=SMOOTHING) / (n + 1))
    return np.asarray(np.log(p / (1 - p)))
