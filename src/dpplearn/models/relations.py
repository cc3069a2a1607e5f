"""Pairs of items: how often both are in a set under a model, compared with what independence predicts.

Expected under independence: items are independent with probabilities p_i, and the empty set is removed to the extent
that the model excludes it. With m_i = P(i ∈ Y) and s the solution of s (1 − e) = 1 − Π(1 − s m_i), p_i = s m_i and

    P(i, j ∈ Y) = s m_i m_j.

e is the probability of the empty set: Π(1 − m_i) for plain independence, which gives s = 1, and 0 if the empty set is
excluded. In between it is proportional to P(∅) under the model: symmetric DPPs learned from nonempty baskets reduce
P(∅) a little by repelling all items, and that part of the repulsion belongs to no pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError
from dpplearn.models.record import Training

FDR_LEVEL = 0.05
COVERAGE = 0.9  # of intervals
FULL_EMPTY_RATIO = 0.25  # P(∅) relative to independent items, above which the empty set counts as not excluded
MIN_SCALE = 0.05  # of s: with fewer items per basket, nothing can be expected to co-occur
MAX_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Independence:
    """Co-occurrence expected under independence."""

    marginals: Floats  # (n_items,)
    empty_ratio: float  # e relative to plain independence, from 0 to 1

    @classmethod
    def of(cls, distribution: SetDistribution) -> Independence:
        """Return what independence predicts for the marginals and P(∅) of a distribution."""
        m = distribution.marginals()
        none = float(np.prod(1 - m))
        if distribution.p_empty >= FULL_EMPTY_RATIO * none:
            return cls(m, 1.0)
        return cls(m, distribution.p_empty / (FULL_EMPTY_RATIO * none))

    @cached_property
    def scale(self) -> float:
        """s for the marginals of the model."""
        return self.scale_of(self.marginals)

    def scale_of(self, m: Floats) -> float:
        """Return s for other frequencies, as those of the training baskets, by bisection."""
        if self.empty_ratio == 1 or not len(m):
            return 1.0
        nonempty = 1 - self.empty_ratio * float(np.prod(1 - m))
        low, high = MIN_SCALE, 1.0
        for _ in range(MAX_BISECTIONS):
            s = (low + high) / 2
            if -np.expm1(np.log1p(-np.minimum(s * m, 1 - 1e-15)).sum()) > s * nonempty:
                low = s
            else:
                high = s
        return high

    def expected(self, rows: Ints, columns: Ints) -> Floats:
        """Return P(i, j ∈ Y) under independence."""
        return np.asarray(self.scale * np.outer(self.marginals[rows], self.marginals[columns]))


class PairTable(NamedTuple):
    """Probabilities of pairs (rows, columns): under the model, and expected under independence."""

    both: Floats
    expected: Floats

    @property
    def lift(self) -> Floats:
        """both/expected, 1 where nothing is expected."""
        return np.divide(self.both, self.expected, out=np.ones_like(self.both), where=self.expected > 0)


def pair_table(distribution: SetDistribution, rows: Ints | None = None, columns: Ints | None = None) -> PairTable:
    """Return the pairs of items in rows with items in columns, by default all. The lift of an item with itself is 1."""
    rows, columns = (np.arange(distribution.n_items) if each is None else each for each in (rows, columns))
    expected = Independence.of(distribution).expected(rows, columns)
    both = distribution.pair_marginals(rows, columns)
    return PairTable(np.where(rows[:, None] == columns, expected, both), expected)


class Evidence(NamedTuple):
    """Observed and expected numbers of training baskets that contain pairs of items; NaN where not known.

    Counts are compared with a Poisson distribution. Its variance is larger than that of counts given the frequency of
    each item, so p-values are conservative.
    """

    met: Floats
    expected: Floats
    missed: float = 0.0  # baskets that a pair may have that counts as never observed

    def interval(self) -> tuple[Floats, Floats]:
        """Return the confidence interval of observed/expected."""
        from scipy.special import gammaincinv

        met, expected = self.met, self.expected
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(met > 0, gammaincinv(met, (1 - COVERAGE) / 2) / expected, 0)
            high = gammaincinv(self._most + 1, (1 + COVERAGE) / 2) / expected
        return np.where(np.isnan(met), np.nan, low), high

    @property
    def _most(self) -> Floats:
        return np.where(self.met == 0, self.missed, self.met)

    def fewer(self) -> Floats:
        """Return the p-value of so few or fewer co-occurrences."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self._most + 1, self.expected))

    def more(self) -> Floats:
        """Return the p-value of so many or more co-occurrences."""
        from scipy.special import gammainc

        never = self.met == 0
        return np.asarray(np.where(never, 1.0, gammainc(np.where(never, 1.0, self.met), self.expected)))


def evidence(training: Training | None, independence: Independence, rows: Ints, columns: Ints) -> Evidence:
    """Return the evidence of the training baskets on pairs of items in rows with items in columns."""
    if training is None:
        unknown = np.full((len(rows), len(columns)), np.nan)
        return Evidence(unknown, unknown)
    scale = independence.scale_of(training.frequencies)
    expected = scale * np.outer(training.item_weights[rows], training.frequencies[columns])
    if len(rows) == 1:
        met = training.pair_counts_of(int(rows[0]))[None, columns]
    else:
        items = np.union1d(rows, columns)
        places = np.ix_(np.searchsorted(items, rows), np.searchsorted(items, columns))
        met = training.pair_counts_among(items)[places]
    return Evidence(met, expected, missed(training))


def missed(training: Training) -> float:
    """Return how often two items may have co-occurred whose pair was too rare to be stored."""
    return max(training.least - 1, 0.0)


def benjamini_hochberg(p: Floats, level: float, tests: int | None = None) -> Bools:
    """Return which hypotheses are rejected at a false discovery rate [BH95]. Where p is NaN, there is
    nothing to test, and the hypothesis counts as rejected.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.001, 0.04, 0.5]), 0.05).tolist()
    [True, False, False]
    """
    if isinstance(level, bool | str) or not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, or None for no test, got {level!r}")
    known = np.sort(p[~np.isnan(p)])
    ranks = np.arange(1, len(known) + 1)
    enough = known[known <= level * ranks / max(tests or 0, len(known), 1)]
    return np.asarray(np.isnan(p) | (p <= (enough[-1] if len(enough) else -1.0)))


def significant_pairs(found: Evidence, level: float = FDR_LEVEL, fewer_only: bool = False) -> Bools:
    """Return which pairs of a square table co-occur less often than expected, or less or more often."""
    first, second = np.triu_indices(len(found.met), 1)
    upper = Evidence(found.met[first, second], found.expected[first, second], found.missed)
    p = upper.fewer() if fewer_only else np.minimum(2 * np.minimum(upper.fewer(), upper.more()), 1)
    square = np.zeros(found.met.shape, bool)
    square[first, second] = benjamini_hochberg(p, level)
    return np.asarray(square | square.T)
