"""Weights of baskets: counts if they are whole numbers, importances otherwise; and weighted sums over baskets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError

if TYPE_CHECKING:
    from dpplearn.data.baskets import Baskets

MAX_EXACT = 2**53  # the largest sum of counts that is exact
MAX_DIVIDED = 10**9  # the limit of numpy's multivariate hypergeometric distribution


def are_counts(weights: Floats) -> bool:
    """Return whether the weights are numbers of baskets."""
    return bool(np.all(weights == np.round(weights)) and weights.sum() < MAX_EXACT)


def effective_number(weights: Floats) -> float:
    """Return the number of baskets that weights are worth: their sum if counts, else (Σw)²/Σw². [Kish65]"""
    weights = weights[weights > 0]
    if are_counts(weights):
        return float(weights.sum())
    weights = weights / weights.max()  # squares may underflow or overflow
    return float(weights.sum() ** 2 / (weights**2).sum())


def in_variance(weights: Floats) -> Floats:
    """Return the factor of a squared deviation in the variance of Σ w x: w for counts, else w²."""
    return weights if are_counts(weights) else weights**2


def can_be_divided(weights: Floats) -> bool:
    """Return whether some weight is a count above 1, so that a split can divide it."""
    return are_counts(weights) and bool(np.any(weights > 1)) and weights.sum() < MAX_DIVIDED


def without_replacement(counts: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return how many of each kind are among n baskets drawn at random."""
    return np.asarray(rng.multivariate_hypergeometric(counts.astype(np.int64), n, method="marginals"))


@dataclass(frozen=True)
class Totals:
    """Sums over baskets, which add up over parts. Baskets of weight 0 count only in `n_baskets` and `largest`."""

    n_baskets: int
    n_empty: int
    largest: int  # items of one basket
    weight: float
    empty_weight: float
    whole: bool  # whether every weight is a whole number
    log_squares: float  # log Σ w²: squares may underflow or overflow

    @classmethod
    def of(cls, sets: Baskets) -> Totals:
        weights, empty = sets.weights, sets.sizes == 0
        return cls(
            n_baskets=len(weights),
            n_empty=int((empty & (weights > 0)).sum()),
            largest=int(sets.sizes.max(initial=0)),
            weight=sets.total_weight,
            empty_weight=float(weights[empty].sum()),
            whole=bool(np.all(weights == np.round(weights))),
            log_squares=float(np.logaddexp.reduce(2 * np.log(weights[weights > 0]), initial=-np.inf)),
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.n_baskets + other.n_baskets,
            self.n_empty + other.n_empty,
            max(self.largest, other.largest),
            self.weight + other.weight,
            self.empty_weight + other.empty_weight,
            self.whole and other.whole,
            float(np.logaddexp(self.log_squares, other.log_squares)),
        )

    @property
    def positive_weight(self) -> float:
        """The total weight, if it is positive."""
        if not self.weight > 0:
            raise InputError(f"{self.n_baskets} baskets with a total weight of {self.weight:g}: nothing to count")
        return self.weight

    @property
    def are_counts(self) -> bool:
        """Whether the weights are numbers of baskets."""
        return self.whole and self.weight < MAX_EXACT

    @property
    def effective_number(self) -> float:
        """The number of baskets that the weights are worth: their sum if they are counts, else (Σw)²/Σw². [Kish65]"""
        return self.weight if self.are_counts else float(np.exp(2 * np.log(self.weight) - self.log_squares))

    @property
    def count_scale(self) -> float:
        """The factor that makes the weights numbers of baskets: 1 if they are, else to the effective number."""
        return 1.0 if self.are_counts else self.effective_number / self.weight


def item_weights(sets: Baskets) -> Floats:
    """Return the weight of the baskets with each item."""
    return np.bincount(sets.indices, np.repeat(sets.weights, sets.sizes), sets.n_items).astype(float)


def pair_weights(sets: Baskets) -> Floats:
    """Return the weight of the baskets with both of every two items, (n_items, n_items)."""
    pairs: Floats = (incidence(sets).T @ incidence(sets, weighted=True)).toarray()
    return pairs


def incidence(sets: Baskets, *, weighted: bool = False) -> Any:
    """Return a sparse matrix with 1, or the weight of the basket, for each item of a basket, (n_baskets, n_items)."""
    from scipy.sparse import csr_array

    values = np.repeat(sets.weights, sets.sizes) if weighted else np.ones(len(sets.indices))
    return csr_array((values, sets.indices, sets.offsets), shape=(len(sets), sets.n_items))
