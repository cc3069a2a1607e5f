"""Pairs of items: how many baskets contain both, compared with the number expected under independence.

With m_i the share of baskets that contain item i, independent items co-occur in a share s m_i m_j of the baskets, with
s = 1 if baskets can be empty. If empty baskets are excluded, items are independent with probabilities s m_i before the
exclusion, and s solves s = 1 − Π(1 − s m_i): then P(i, j | Y ≠ ∅) = (s m_i)(s m_j)/s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, Items
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.data.weights import incidence
from dpplearn.errors import InputError

FDR_LEVEL = 0.05
COVERAGE = 0.95  # of intervals
BATCH_SIZE = 4_000_000  # co-occurrences in memory
MAX_PAIRS = 5_000_000  # co-occurring pairs that are counted, 12 bytes each
MAX_FREQUENT_ITEMS = 2000  # all pairs of these are tested, also those that never co-occurred
MIN_EXPECTED = 3.0  # P(no co-occurrence) = e⁻³ ≈ 0.05: with fewer expected, none observed is never significant
MIN_SCALE = 0.05  # of s; with fewer items per basket, no co-occurrence can be expected
CONVERGED = 1e-12  # step of Newton's method at which it stops
MAX_STEPS = 100


class Pair(NamedTuple):
    """Two items and how often they co-occur.

    `lift` is P(both) divided by its value expected under independence: of the model if the pair describes a model,
    otherwise observed/expected. `observed` and `expected` are numbers of baskets, `low` and `high` the 95 % interval of
    observed/expected, and `p` the two-sided p-value of the test of independence; NaN if there are no counts.
    """

    first: Label
    second: Label
    lift: float
    observed: float
    expected: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """Observed numbers of baskets with two items, and those expected under independence; NaN if unknown.

    For a model, `observed` is its P(i, j ∈ Y), and `expected` the probability under independence.

    Counts are compared with a Poisson distribution. Its variance is larger than that of counts given the frequency of
    each item, so p-values and intervals are conservative.
    """

    observed: Floats
    expected: Floats  # same shape
    missed: float = 0.0  # baskets that a pair with an observed count of 0 may have, because rare pairs are not stored

    @property
    def lift(self) -> Floats:
        """observed/expected, 1 where nothing is expected."""
        out = np.ones_like(self.observed)
        return np.divide(self.observed, self.expected, out=out, where=self.expected > 0)

    @property
    def _at_most(self) -> Floats:
        return np.where(self.observed == 0, self.missed, self.observed)

    def take(self, rows: Ints) -> Cooccurrence:
        """Return the counts of some pairs."""
        return Cooccurrence(self.observed[rows], self.expected[rows], self.missed)

    def interval(self) -> tuple[Floats, Floats]:
        """Return the confidence interval of observed/expected."""
        from scipy.special import gammaincinv

        tail = (1 - COVERAGE) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(self.observed > 0, gammaincinv(self.observed, tail) / self.expected, 0)
            high = gammaincinv(self._at_most + 1, 1 - tail) / self.expected
        return np.where(np.isnan(self.observed), np.nan, low), high

    def p(self) -> Floats:
        """Return the p-value of the test of independence: twice the smaller tail of the Poisson distribution."""
        from scipy.special import gammainc, gammaincc

        never = self.observed == 0
        fewer = gammaincc(self._at_most + 1, self.expected)  # P(X ≤ x) = Q(x + 1, e)
        more = np.where(never, 1.0, gammainc(np.where(never, 1.0, self.observed), self.expected))  # P(X ≥ x) = P(x, e)
        return np.asarray(np.minimum(2 * np.minimum(fewer, more), 1))


def significant(p: Floats, level: float = FDR_LEVEL, n_tests: int = 0) -> Bools:
    """Return which hypotheses are rejected at a false discovery rate (Benjamini–Hochberg) [BH95].

    Parameters
    ----------
    p : array
        p-values. Where p is NaN there is nothing to test, and the hypothesis counts as rejected.
    level : float, default 0.05
        False discovery rate.
    n_tests : int, optional
        Number of hypotheses, if p-values that cannot be significant are left out of `p`.

    Examples
    --------
    >>> significant(np.array([0.001, 0.04, 0.5])).tolist()
    [True, False, False]
    """
    from scipy.stats import false_discovery_control

    if isinstance(level, bool | str) or not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, or None for no test, got {level!r}")
    rejected = np.isnan(p)
    known = ~rejected
    if known.any():
        rejected[known] = false_discovery_control(p[known]) * max(n_tests / known.sum(), 1) <= level
    return rejected


def independence_scale(frequencies: Floats, empty_ratio: float = 0.0, least: float = MIN_SCALE) -> float:
    """Return s of the module documentation, by Newton's method, which decreases from s = 1 to the root.

    Parameters
    ----------
    frequencies : (n_items,)
    empty_ratio : float, default 0
        Probability of the empty basket relative to independent items: 0 if it is excluded, 1 for s = 1. In between, s
        solves s (1 − e) = 1 − Π(1 − s m_i) with e = empty_ratio Π(1 − m_i).
    least : float
        Smallest s. If the frequencies sum to 1 or less, as in data of single items, the root is 0.
    """
    if empty_ratio >= 1 or not len(frequencies):
        return 1.0
    nonempty = 1 - empty_ratio * float(np.prod(1 - frequencies))
    s = 1 - CONVERGED
    for _ in range(MAX_STEPS):
        out = 1 - frequencies * s
        none = float(np.prod(out))
        slope = nonempty - none * float((frequencies / out).sum())
        step = (s * nonempty - 1 + none) / slope if slope > 0 else s
        s = max(s - step, least)
        if abs(step) < CONVERGED or s == least:
            break
    return s


class PairCounts(NamedTuple):
    """Pairs of items that co-occur, ordered by the first and then the second item."""

    pairs: Items  # (n_pairs, 2) the first before the second
    weights: Floats  # (n_pairs,) of the baskets that contain both
    least: float  # pairs of less weight are left out; 0 if none is


@dataclass(frozen=True, eq=False, repr=False)
class PairTests:
    """Tests of independence of pairs of items.

    Pairs that are not listed never co-occurred and were expected in fewer than three baskets, so that they cannot be
    significant. They are counted in `n_possible`.
    """

    pairs: Ints  # (n_pairs, 2) positions of items
    counts: Cooccurrence  # (n_pairs,)
    significant: Bools  # (n_pairs,)
    n_possible: int  # pairs of items that occur
    nonempty: bool = False  # whether independence is conditional on the basket not being empty

    @property
    def fewer(self) -> Bools:
        """Pairs that co-occur significantly less often than expected under independence."""
        return np.asarray(self.significant & (self.counts.observed < self.counts.expected))

    @property
    def more(self) -> Bools:
        """Pairs that co-occur significantly more often than expected under independence."""
        return np.asarray(self.significant & (self.counts.observed > self.counts.expected))

    def most_certain(self, above: bool) -> Ints:
        """Return the rows of significant pairs on one side of 1, by the end of the interval that is nearer to 1."""
        rows = np.flatnonzero(self.more if above else self.fewer)
        low, high = self.counts.take(rows).interval()
        return rows[np.argsort(-low if above else high, kind="stable")]

    def records(self, rows: Ints, labels: tuple[Label, ...], lift: Floats | None = None) -> list[Pair]:
        """Return rows as records; `lift` of each row replaces observed/expected."""
        chosen = self.counts.take(rows)
        lift = chosen.lift if lift is None else lift
        numbers = np.column_stack([lift, chosen.observed, chosen.expected, *chosen.interval(), chosen.p()]).tolist()
        pairs = self.pairs[rows].tolist()
        return [Pair(labels[i], labels[j], *row) for (i, j), row in zip(pairs, numbers, strict=True)]


def pair_tests(baskets: Baskets, level: float = FDR_LEVEL, max_pairs: int = MAX_PAIRS) -> PairTests:
    """Test pairs of items for independence, given the frequency of each item.

    If no basket is empty, expected counts are conditional on that. Weights that are not counts are scaled to their
    effective number of baskets [Kish65].

    Parameters
    ----------
    baskets : Baskets
        At least one of positive weight.
    level : float, default 0.05
        False discovery rate.
    max_pairs : int
        Number of co-occurring pairs that are counted. If there are more, the rarest are left out.

    Examples
    --------
    >>> baskets = Baskets.from_lists([["cot"], ["crib"], ["bib", "cot"], ["bib", "crib"]] * 30)
    >>> tests = pair_tests(baskets)
    >>> [(pair.first, pair.second) for pair in tests.records(np.flatnonzero(tests.fewer), baskets.items)]
    [('cot', 'crib')]
    """
    if not baskets.total_weight > 0:
        raise InputError(f"no basket has a positive weight, in {len(baskets)} baskets")
    baskets = baskets.as_counts()
    nonempty = bool(baskets.sizes[baskets.weights > 0].min() > 0)
    m, n = baskets.frequencies(), baskets.total_weight
    scale = independence_scale(m) if nonempty else 1.0
    return count_tests(m * n, n, pair_counts(baskets, max_pairs), scale, level=level, nonempty=nonempty)


def count_tests(
    item_weights: Floats,
    weight: float,
    counts: PairCounts,
    scale: float,
    *,
    level: float = FDR_LEVEL,
    nonempty: bool = False,
) -> PairTests:
    """Test pairs for independence from the counts of items and pairs; `scale` is s."""
    n_items = len(item_weights)
    n_occurring = int(np.count_nonzero(item_weights))

    def expected(keys: Ints) -> Floats:
        first, second = np.divmod(keys, n_items)
        return np.asarray(scale * item_weights[first] * item_weights[second] / weight)

    observed_keys = counts.pairs.astype(np.int64) @ [n_items, 1]
    frequent = np.sort(np.argsort(-item_weights, kind="stable")[: min(MAX_FREQUENT_ITEMS, n_occurring)])
    first, second = np.triu_indices(len(frequent), 1)
    frequent_keys = frequent[first] * n_items + frequent[second]
    keys = np.union1d(observed_keys, frequent_keys[expected(frequent_keys) >= MIN_EXPECTED]).astype(np.int64)
    observed = np.zeros(len(keys))
    observed[np.searchsorted(keys, observed_keys)] = counts.weights
    found = Cooccurrence(observed, expected(keys), max(counts.least - 1, 0.0))
    n_possible = n_occurring * (n_occurring - 1) // 2
    rejected = significant(found.p(), level, n_possible)
    return PairTests(np.stack(np.divmod(keys, n_items), axis=1), found, rejected, n_possible, nonempty)


def pair_counts(baskets: AnyBaskets, most: int, batch_size: int = BATCH_SIZE) -> PairCounts:
    """Return the pairs that occur in baskets of positive weight, and the weight of these baskets.

    Parameters
    ----------
    baskets : Baskets or Parts
        For parts, a table of all pairs of items is needed.
    most : int
        Maximum number of pairs. If there are more, pairs that co-occurred once are left out, then twice, and so on.
    batch_size : int, optional
        Co-occurrences to hold in memory at a time, about.

    Examples
    --------
    >>> found = pair_counts(Baskets.from_lists([["bib", "crib"], ["crib"], ["bib", "cot", "crib"]]), 10)
    >>> found.pairs.tolist(), found.weights.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1.0, 2.0, 1.0])
    """
    keys, weights, least = np.zeros(0, np.int64), np.zeros(0), 0.0
    for batch in _counted(baskets, batch_size):
        keys, weights = (np.concatenate(each) for each in zip((keys, weights), batch, strict=True))
        kept = (weights > 0) & (weights >= least)
        while np.count_nonzero(kept) > most:
            least = max(2.0, least + 1)
            kept = weights >= least
        keys, weights = keys[kept], weights[kept]
    pairs = np.empty((len(keys), 2), np.int32)
    np.divmod(keys, baskets.n_items, out=(pairs[:, 0], pairs[:, 1]), casting="unsafe")
    return PairCounts(pairs, weights, least)


def _counted(baskets: AnyBaskets, batch_size: int) -> Iterator[tuple[Ints, Floats]]:
    """Yield keys first · n_items + second of pairs and the weight of each, for one range of first items at a time."""
    from scipy.sparse import triu

    n = baskets.n_items
    if isinstance(baskets, Parts):
        keys = np.flatnonzero(np.triu(baskets.pair_weights, 1))
        yield keys, baskets.pair_weights.ravel()[keys]
        return
    holders, weighted = incidence(baskets).T.tocsr(), incidence(baskets, weighted=True)
    work = np.cumsum(holders @ baskets.sizes)  # co-occurrences of the items up to each
    starts = np.unique(np.searchsorted(work, np.arange(0, work[-1], batch_size)))
    for start, stop in pairwise([*starts.tolist(), n]):
        found = triu(holders[start:stop] @ weighted, start + 1, format="csr")
        found.sort_indices()
        found = found.tocoo()
        yield (found.row + start).astype(np.int64) * n + found.col, found.data
