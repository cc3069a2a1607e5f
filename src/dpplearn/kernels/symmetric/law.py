"""The symmetric DPP as a law of sets: what `kernels.interface.Law` asks, answered by the modules of this folder."""

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
from dpplearn.kernels.interaction import DenseInteraction
from dpplearn.kernels.interface import Arrays, check_size
from dpplearn.kernels.ranking import Best, BestOfMany, best_of, one_by_one
from dpplearn.kernels.symmetric.conditioning import conditioned, inclusion_probability, next_item
from dpplearn.kernels.symmetric.decomposition import symmetric_product
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel
from dpplearn.kernels.symmetric.sampling import sample_sets
from dpplearn.kernels.symmetric.selection import greedy_map
from dpplearn.kernels.symmetric.sizes import inclusion_given_size, log_size_distribution
from dpplearn.kernels.symmetric.statistics import log_probabilities, mean_log_likelihood


@dataclass(frozen=True)
class SymmetricLaw:
    """P(Y) = det L_Y / det(L + I), with L symmetric."""

    kernel: Kernel

    family: ClassVar[str] = "symmetric"

    @property
    def n_items(self) -> int:
        return self.kernel.n_items

    @property
    def possible_sizes(self) -> range:
        return self.kernel.possible_sizes

    def log_probabilities(self, baskets: Baskets, threads: int | None = None) -> Floats:
        return log_probabilities(self.kernel, baskets, threads)

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        return mean_log_likelihood(self.kernel, baskets, threads)

    def log_empty(self) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log1p(-self.kernel.eigenvalues).sum())

    @property
    def expected_size(self) -> float:
        return float(self.kernel.eigenvalues.sum())

    def marginals(self, k: int | None = None) -> Floats:
        if k is None:
            return self.kernel.K.diagonal().copy()
        check_size(self.possible_sizes, k)
        return inclusion_given_size(self.kernel, k) @ self.kernel.squared_eigenvectors

    def pairs(self) -> Floats:
        K = self.kernel.K.diagonal()
        return (1 - self.kernel.repulsion) * np.outer(K, K)

    def pairs_with(self, item: int) -> Floats:
        K = self.kernel.K
        return np.asarray((1 - self.kernel.repulsion[item]) * (K.diagonal() * K[item, item]))

    def inclusion(self, items: Ints) -> float:
        return inclusion_probability(self.kernel, items)

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        return next_item(self.kernel, basket)

    def scores(self, basket: Ints) -> Floats:
        return self.next_item(basket)[0]

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        return best_of(*self.next_item(basket), basket, k, candidate)

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        return one_by_one(self.best_next, baskets, k)

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        found = np.array([[each[item] for each in next_item(self.kernel, basket)] for basket in baskets])
        return found[:, 0], found[:, 1]

    def given(self, include: Ints, exclude: Ints) -> tuple[SymmetricLaw, Ints]:
        kernel, remaining = conditioned(self.kernel, include, exclude)
        return SymmetricLaw(kernel), remaining

    def restricted(self, items: Ints) -> SymmetricLaw:
        return SymmetricLaw(Kernel.from_K(self.kernel.K[np.ix_(items, items)]))

    def log_sizes(self) -> Floats:
        return log_size_distribution(self.kernel)

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        return sample_sets(self.kernel, n, k, rng, threads, nonempty)

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        found = greedy_map(self.kernel, k, include)
        return found.positions, found.gains

    def interaction(self) -> DenseInteraction:
        return self._interaction

    @cached_property
    def _interaction(self) -> DenseInteraction:
        """L, with eigenvalues too near to 1 for it taken as near as it can have them."""
        lam = np.minimum(self.kernel.eigenvalues, 1 - BORDER)
        L = symmetric_product(self.kernel.eigenvectors, lam / (1 - lam))
        return DenseInteraction.of(np.ones(1), L[None])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"eigenvalues": self.kernel.eigenvalues, "eigenvectors": self.kernel.eigenvectors}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> SymmetricLaw:
        return cls(Kernel(arrays["eigenvalues"], arrays["eigenvectors"]))
