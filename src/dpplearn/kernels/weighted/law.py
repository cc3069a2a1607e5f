"""A mixture of laws by weights: what `kernels.interface.Law` asks, answered by the modules of this folder."""

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
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.interaction import JoinedInteraction
from dpplearn.kernels.interface import Arrays, Law, check_size
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.ranking import Best, BestOfMany, best_of, one_by_one
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.kernels.weighted.conditioning import conditioned, next_item, restricted
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.kernels.weighted.sampling import sample_sets
from dpplearn.kernels.weighted.selection import greedy_map
from dpplearn.kernels.weighted.sizes import inclusion_given_size, log_size_distribution
from dpplearn.kernels.weighted.statistics import log_probabilities, mean_log_likelihood

# The families of which it can be made, by an array that no other has.
TOLD_BY: dict[str, Any] = {"eigenvalues": SymmetricLaw, "interaction": MixtureLaw, "factors": FactoredLaw}


@dataclass(frozen=True)
class WeightedLaw:
    """P(Y) = Σ_c w_c P_c(Y)."""

    kernel: WeightedKernel

    family: ClassVar[str] = "weighted"

    @property
    def n_items(self) -> int:
        return self.kernel.n_items

    @property
    def possible_sizes(self) -> range:
        sizes = [law.possible_sizes for law in self.kernel.laws]
        return range(min(each[0] for each in sizes), max(each[-1] for each in sizes) + 1)

    def log_probabilities(self, baskets: Baskets, threads: int | None = None) -> Floats:
        return log_probabilities(self.kernel, baskets, threads)

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        return mean_log_likelihood(self.kernel, baskets, threads)

    def log_empty(self) -> float:
        return self.kernel.log_empty

    @property
    def expected_size(self) -> float:
        return float(self.marginals().sum())

    def marginals(self, k: int | None = None) -> Floats:
        if k is None:
            return np.asarray(self.kernel.weights @ self.kernel.marginals)
        check_size(self.possible_sizes, k)
        return inclusion_given_size(self.kernel, k)

    def pairs(self) -> Floats:
        both = np.zeros((self.n_items, self.n_items))
        for weight, law in zip(self.kernel.weights, self.kernel.laws, strict=True):
            both += weight * law.pairs()
        return both

    def pairs_with(self, item: int) -> Floats:
        return np.asarray(self.kernel.weights @ np.array([law.pairs_with(item) for law in self.kernel.laws]))

    def inclusion(self, items: Ints) -> float:
        return float(self.kernel.weights @ [law.inclusion(items) for law in self.kernel.laws])

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        return next_item(self.kernel, basket)

    def scores(self, basket: Ints) -> Floats:
        return self.next_item(basket)[0]

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        return best_of(*self.next_item(basket), basket, k, candidate)

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        return one_by_one(self.best_next, baskets, k)

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        found = np.array([[each[item] for each in self.next_item(basket)] for basket in baskets])
        return found[:, 0], found[:, 1]

    def given(self, include: Ints, exclude: Ints) -> tuple[WeightedLaw, Ints]:
        kernel, remaining = conditioned(self.kernel, include, exclude)
        return WeightedLaw(kernel), remaining

    def restricted(self, items: Ints) -> WeightedLaw:
        return WeightedLaw(restricted(self.kernel, items))

    def log_sizes(self) -> Floats:
        return log_size_distribution(self.kernel)

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        if k is not None:
            check_size(self.possible_sizes, k)
        return sample_sets(self.kernel, n, k, rng, threads, nonempty)

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        return greedy_map(self.kernel, k, include)

    def interaction(self) -> JoinedInteraction:
        return self._interaction

    @cached_property
    def _interaction(self) -> JoinedInteraction:
        return JoinedInteraction.of(self.kernel.weights, [law.interaction() for law in self.kernel.laws])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        found: dict[str, npt.NDArray[Any]] = {"law_weights": self.kernel.weights}
        for c, law in enumerate(self.kernel.laws):
            found |= {f"law.{c}.{name}": array for name, array in law.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> WeightedLaw:
        weights = arrays["law_weights"]
        return cls(WeightedKernel(weights, tuple(_law(arrays, f"law.{c}.") for c in range(len(weights)))))


def _law(arrays: Arrays, prefix: str) -> Law:
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    law: Law = next(law for name, law in TOLD_BY.items() if name in own).from_arrays(own)
    return law
