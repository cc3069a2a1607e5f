"""A mixture of DPPs as a law of sets: what `kernels.interface.Law` asks, answered by the modules of this folder."""

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
from dpplearn.errors import InputError
from dpplearn.kernels.interaction import DenseInteraction
from dpplearn.kernels.interface import Arrays, check_size
from dpplearn.kernels.nonsymmetric.conditioning import (
    IMPOSSIBLE,
    best_next,
    conditioned,
    inclusion_probability,
    next_item,
    next_of,
    restricted,
)
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.sampling import sample_sets
from dpplearn.kernels.nonsymmetric.selection import greedy_map
from dpplearn.kernels.nonsymmetric.sizes import inclusion_given_size, log_size_distribution
from dpplearn.kernels.nonsymmetric.statistics import log_probabilities, mean_log_likelihood
from dpplearn.kernels.passes import check_items
from dpplearn.kernels.ranking import Best, BestOfMany


@dataclass(frozen=True)
class MixtureLaw:
    """P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c), L_c = D_c C D_c."""

    kernel: MixtureKernel

    family: ClassVar[str] = "nonsymmetric"

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
        return np.asarray(self.kernel.weights @ np.diagonal(self.kernel.K, axis1=1, axis2=2))

    def marginals(self, k: int | None = None) -> Floats:
        if k is None:
            return self._marginals.copy()
        check_size(self.possible_sizes, k)
        if k in (0, self.n_items):
            return np.full(self.n_items, float(k > 0))
        return inclusion_given_size(self.kernel, k)

    def pairs(self) -> Floats:
        both = np.zeros((self.n_items, self.n_items))
        for weight, K in zip(self.kernel.weights, self.kernel.K, strict=True):
            both += weight * (np.outer(K.diagonal(), K.diagonal()) - K * K.T)
        return both

    def pairs_with(self, item: int) -> Floats:
        both = np.zeros(self.n_items)
        for weight, K in zip(self.kernel.weights, self.kernel.K, strict=True):
            both += weight * (K[item, item] * K.diagonal() - K[item] * K[:, item])
        return both

    def inclusion(self, items: Ints) -> float:
        return inclusion_probability(self.kernel, items)

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        return next_item(self.kernel, basket)

    def scores(self, basket: Ints) -> Floats:
        return self.next_item(basket)[0]

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        offsets = np.array([0, len(basket)])
        found = best_next(self.kernel, basket, offsets, min(k, self.n_items), candidate)
        if not found.possible[0]:
            raise InputError(IMPOSSIBLE)
        n = int((found.items[0] >= 0).sum())
        return found.items[0, :n], found.scores[0, :n], found.probabilities[0, :n]

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        check_items(self.n_items, baskets)
        return best_next(self.kernel, baskets.indices, baskets.offsets, k, None, threads)

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        return next_of(self.kernel, item, baskets)

    def given(self, include: Ints, exclude: Ints) -> tuple[MixtureLaw, Ints]:
        kernel, remaining = conditioned(self.kernel, include, exclude)
        return MixtureLaw(kernel), remaining

    def restricted(self, items: Ints) -> MixtureLaw:
        return MixtureLaw(restricted(self.kernel, items))

    def log_sizes(self) -> Floats:
        return log_size_distribution(self.kernel)

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        return sample_sets(self.kernel, n, k, rng, threads, nonempty)

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        return greedy_map(self.kernel, k, include)

    def interaction(self) -> DenseInteraction:
        return self._interaction

    @cached_property
    def _interaction(self) -> DenseInteraction:
        return DenseInteraction.of(self.kernel.weights, self.kernel.interaction)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        kernel = self.kernel
        return {"weights": kernel.weights, "log_odds": kernel.log_odds, "interaction": kernel.interaction}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> MixtureLaw:
        return cls(MixtureKernel(arrays["weights"], arrays["log_odds"], arrays["interaction"]))
