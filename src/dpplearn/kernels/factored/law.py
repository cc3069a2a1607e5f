"""A factored kernel as a law of sets: what `kernels.interface.Law` asks, answered by the modules of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.factored.conditioning import (
    conditioned,
    inclusion_probability,
    next_of,
    pairs_with,
    probabilities,
    restricted,
    scores,
)
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.sampling import Segments, sample_sets
from dpplearn.kernels.factored.selection import Bounds, best_next, greedy_map
from dpplearn.kernels.factored.sizes import inclusion_given_size, log_size_distribution
from dpplearn.kernels.factored.statistics import log_probabilities, mean_log_likelihood
from dpplearn.kernels.interaction import FactoredInteraction
from dpplearn.kernels.interface import Arrays, check_size
from dpplearn.kernels.ranking import Best, BestOfMany, one_by_one


@dataclass(frozen=True)
class FactoredLaw:
    """P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c), L_c = D_c (I + Z Ω Zᵀ) D_c."""

    kernel: FactoredKernel

    family: ClassVar[str] = "factored"

    @property
    def n_items(self) -> int:
        return self.kernel.n_items

    @property
    def possible_sizes(self) -> range:
        return range(self.n_items + 1)

    def log_probabilities(self, baskets: Baskets, threads: int | None = None) -> Floats:
        return log_probabilities(self.kernel, baskets, threads)

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        return mean_log_likelihood(self.kernel, baskets, threads)

    def log_empty(self) -> float:
        return self.kernel.log_empty

    @property
    def expected_size(self) -> float:
        return float(self._marginals.sum())

    @cached_property
    def _marginals(self) -> Floats:
        return np.asarray(self.kernel.weights @ self.kernel.marginals)

    def marginals(self, k: int | None = None) -> Floats:
        if k is None:
            return self._marginals.copy()
        check_size(self.possible_sizes, k)
        if k in (0, self.n_items):
            return np.full(self.n_items, float(k > 0))
        return inclusion_given_size(self.kernel, k)

    def pairs(self) -> Floats:
        return np.array([self.pairs_with(item) for item in range(self.n_items)])

    def pairs_with(self, item: int) -> Floats:
        return pairs_with(self.kernel, item)

    def inclusion(self, items: Ints) -> float:
        return inclusion_probability(self.kernel, items)

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        return scores(self.kernel, basket), probabilities(self.kernel, basket, np.arange(self.n_items))

    def scores(self, basket: Ints) -> Floats:
        return scores(self.kernel, basket)

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        return best_next(self.kernel, self._bounds, basket, k, candidate)

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        return one_by_one(self.best_next, baskets, k)

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds.of(self.kernel)

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        return next_of(self.kernel, item, baskets)

    def given(self, include: Ints, exclude: Ints) -> tuple[FactoredLaw, Ints]:
        kernel, remaining = conditioned(self.kernel, include, exclude)
        return FactoredLaw(kernel), remaining

    def restricted(self, items: Ints) -> FactoredLaw:
        return FactoredLaw(restricted(self.kernel, items))

    def log_sizes(self) -> Floats:
        return log_size_distribution(self.kernel)

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        return sample_sets(self.kernel, self._drawn_from, n, k, rng, threads, nonempty)

    @cached_property
    def _drawn_from(self) -> Segments:
        return {}

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        return greedy_map(self.kernel, self._bounds, k, include)

    def interaction(self) -> FactoredInteraction:
        weights = self.kernel.weights if len(self.kernel.coupling) > 1 else np.ones(1)
        return FactoredInteraction(weights, self.kernel.factors, self.kernel.coupling)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Rows of Z that are 0 are left out."""
        kernel = self.kernel
        return {
            "weights": kernel.weights,
            "log_odds": kernel.log_odds,
            "factors": kernel.factors[kernel.active],
            "active": kernel.active.astype(np.int32),
            "coupling": kernel.coupling,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FactoredLaw:
        log_odds, rows = arrays["log_odds"], arrays["factors"]
        factors = np.zeros((log_odds.shape[1], rows.shape[1]), dtype=np.float32)
        factors[arrays["active"]] = rows
        return cls(FactoredKernel(arrays["weights"], log_odds, factors, arrays["coupling"]))
