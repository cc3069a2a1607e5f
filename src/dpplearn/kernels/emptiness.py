"""Whether sets can be empty is a property of the data: any law, with the empty set as likely as it is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import NO_ITEMS, Bools, Floats, Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.interaction import Interaction
from dpplearn.kernels.interface import Law, check_size
from dpplearn.kernels.ranking import Best, BestOfMany, best_of

NAME = "empty_share"  # in model files


@dataclass(frozen=True)
class WithEmptyShare:
    """A law whose empty set has the probability `share`, and all other sets what is left, in the old proportions.

    With a share of 0 it is P(Y given Y ≠ ∅). What some items show of such a law is one with another share.
    """

    law: Law
    share: float = 0.0

    @property
    def family(self) -> str:
        return self.law.family

    @property
    def n_items(self) -> int:
        return self.law.n_items

    @property
    def possible_sizes(self) -> range:
        sizes = self.law.possible_sizes
        return range(0 if self.share else max(sizes[0], 1), sizes[-1] + 1)

    @property
    def log_scale(self) -> float:
        """Of the probability of a set that is not empty; inf where the law has none, and then nothing is a number."""
        with np.errstate(divide="ignore"):
            return math.log1p(-self.share) - float(np.log(-math.expm1(self.law.log_empty())))

    def log_probabilities(self, baskets: Baskets, threads: int | None = None) -> Floats:
        with np.errstate(invalid="ignore"):
            values = self.law.log_probabilities(baskets, threads) + self.log_scale
        return np.where(baskets.sizes > 0, values, self.log_empty())

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        empty = baskets.totals.empty_weight / baskets.total_weight
        if empty and not self.share:
            return -math.inf
        of_empty = empty * (self.log_empty() - self.law.log_empty()) if empty else 0.0
        return self.law.mean_log_likelihood(baskets, threads) + (1 - empty) * self.log_scale + of_empty

    def log_empty(self) -> float:
        return math.log(self.share) if self.share else -math.inf

    @property
    def scale(self) -> float:
        return math.exp(self.log_scale)

    @property
    def expected_size(self) -> float:
        return self.scale * self.law.expected_size

    def marginals(self, k: int | None = None) -> Floats:
        if k is None:
            return np.minimum(self.scale * self.law.marginals(), 1)
        check_size(self.possible_sizes, k)
        return self.law.marginals(k)

    def pairs(self) -> Floats:
        return self.scale * self.law.pairs()

    def pairs_with(self, item: int) -> Floats:
        return self.scale * self.law.pairs_with(item)

    def inclusion(self, items: Ints) -> float:
        return self.scale * self.law.inclusion(items) if len(items) else 1.0

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        score, probability = self.law.next_item(basket)
        if len(basket):
            return score, probability
        return score * self._ratio_to_empty, self.marginals()

    def scores(self, basket: Ints) -> Floats:
        score = self.law.scores(basket)
        return score if len(basket) else score * self._ratio_to_empty

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        if len(basket):
            return self.law.best_next(basket, k, candidate)
        if not self.share:
            nothing = np.full(self.n_items, np.nan)
            return best_of(nothing, self.marginals(), basket, k, candidate)
        items, score, probability = self.law.best_next(basket, k, candidate)
        return items, score * self._ratio_to_empty, np.minimum(self.scale * probability, 1)

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        found = self.law.best_next_of_many(baskets, k, threads)
        empty = np.flatnonzero(baskets.sizes == 0)
        if len(empty):
            alone = BestOfMany.nothing(1, k)
            alone.put(0, self.best_next(NO_ITEMS, k))
            for to, values in zip(found, alone, strict=True):
                to[empty] = values
        return found

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        score, probability = self.law.next_of(item, baskets)
        empty = np.array([not len(basket) for basket in baskets], dtype=bool)
        score[empty] *= self._ratio_to_empty
        probability[empty] = np.minimum(self.scale * probability[empty], 1)
        return score, probability

    def given(self, include: Ints, exclude: Ints) -> tuple[Law, Ints]:
        law, remaining = self.law.given(include, exclude)
        if len(include):  # what is in says that the set is not empty
            return law, remaining
        of_rest = math.exp(self.law.log_empty() - law.log_empty()) - math.exp(self.law.log_empty())
        share = self.share / (self.share + self.scale * of_rest) if self.share else 0.0
        return WithEmptyShare(law, share), remaining

    def restricted(self, items: Ints) -> Law:
        law = self.law.restricted(items)
        return WithEmptyShare(law, max(1 + self.scale * math.expm1(law.log_empty()), 0.0))

    def log_sizes(self) -> Floats:
        sizes = self.law.log_sizes() + self.log_scale
        sizes[0] = self.log_empty()
        return sizes

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        if k is not None:
            check_size(self.possible_sizes, k)
            return self.law.sample(n, k, rng, threads)
        stream = np.random.default_rng(rng)
        empty = (stream.random(n) < (0.0 if nonempty else self.share)).tolist()
        wanted = empty.count(False)
        others = iter(self.law.sample(wanted, None, stream, threads, nonempty=True) if wanted else [])
        return [NO_ITEMS if none else next(others) for none in empty]

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        items, gains = self.law.greedy(k, include)
        if not len(items) and not self.share and k is None:  # any set is better than none, which is impossible
            items, gains = self.law.greedy(None, self.law.greedy(1, include)[0])
        if len(items):
            gains = np.concatenate([gains[:1] * self._ratio_to_empty, gains[1:]])
        if k is None and len(items) and not len(include) and gains[0] <= 1:
            return items[:0], gains[:0]
        return items, gains

    @property
    def _ratio_to_empty(self) -> float:
        """What ratios to P(∅) are multiplied by; NaN where there are none."""
        return self.scale * math.exp(self.law.log_empty()) / self.share if self.share else math.nan

    def interaction(self) -> Interaction:
        return self.law.interaction()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {**self.law.arrays(), NAME: np.array([self.share])}
