"""Lift by similarity: whether items that are alike avoid each other or go together, before anything is built on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.similarity import read_similarity
from dpplearn.data.weights import are_counts
from dpplearn.distributions.independent import before_truncation
from dpplearn.errors import InputError
from dpplearn.learners.data import units_of
from dpplearn.models.relations import COVERAGE, Evidence
from dpplearn.utils.text import number

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7)  # a bin reaches from above one of them to the next, the last to 1; below is unlike
EXACT = 1e-9  # similarities nearer than this are the same
FEWEST = 5.0  # meetings by chance, for a bin to be judged by
RESAMPLES = 300
AT_ONCE = 4_000_000  # pairs of baskets that are looked at together


@dataclass(frozen=True)
class SimilarityBin:
    """Pairs of items that are alike to some degree: how often they meet, and would by chance."""

    low: float  # similarity, above this
    high: float  # up to this
    n_pairs: int
    observed: float
    expected: float
    ratio: float  # of the two; NaN where nothing was expected
    ratio_low: float  # a 90% interval of it, over baskets
    ratio_high: float


@dataclass(frozen=True)
class LiftBySimilarity:
    """How often pairs meet over how often they would by chance, by how alike they are. The least alike come first.

    Examples
    --------
    >>> kinds = {"cot": "bed", "crib": "bed", "bib": "meal"}
    >>> found = lift_by_similarity([["cot", "bib"], ["crib", "bib"], ["cot"], ["crib"]] * 30, kinds)
    >>> found.verdict
    'repel'
    >>> [round(each.ratio, 2) for each in found.bins]
    [1.31, 0.0]
    """

    bins: tuple[SimilarityBin, ...]

    @property
    def alike(self) -> SimilarityBin | None:
        """The most alike pairs of which enough were to be expected to judge by."""
        return next((each for each in reversed(self.bins) if each.low >= 0 and each.expected >= FEWEST), None)

    @property
    def verdict(self) -> str:
        """What items that are alike do: "repel", "attract", "neither", or "too little data" to tell."""
        if self.alike is None:
            return "too little data"
        return "repel" if self.alike.ratio_high < 1 else "attract" if self.alike.ratio_low > 1 else "neither"

    @property
    def sentence(self) -> str:
        """The verdict in plain words, with the numbers it rests on."""
        alike = self.alike
        if alike is None:
            return (
                f"Of items that are alike too few pairs would meet by chance (less than {FEWEST:g}) to tell anything."
            )
        meets = (
            f"pairs of {_span(alike)} meet {number(alike.ratio, 2)} times as often as by chance "
            f"({number(alike.ratio_low, 2)} to {number(alike.ratio_high, 2)})"
        )
        if self.bins[0] is not alike and self.bins[0].expected >= FEWEST:
            meets += f", and those of {_span(self.bins[0])} {number(self.bins[0].ratio, 2)} times"
        return {
            "repel": f"Items that are alike avoid each other: {meets}. A kernel of this similarity can say so.",
            "attract": f"Items that are alike go together: {meets}. A DPP of this similarity would say the opposite.",
            "neither": f"Items that are alike neither avoid each other nor go together: {meets}.",
        }[self.verdict]


def lift_by_similarity(
    baskets: Baskets | Iterable[Iterable[Any]], similarity: Any, *, rng: Seed = 0
) -> LiftBySimilarity:
    """How often pairs of items meet, over how often they would by chance, by how alike they are.

    Chance is that of independent items with the same frequencies; where no basket is empty, given that. Intervals come
    from drawing the baskets again, or from the count alone where that leaves more open. Whole-numbered weights are
    counts; other weights stand for their effective number of baskets [Kish65].

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists.
    similarity
        A square array or table, or one value per item, of which those of the same value are alike; or a path to a CSV
        or Parquet file of the one (a row and a column per item) or the other (two columns, the item and its kind).
    rng
        Seed or generator of the draws.

    Returns
    -------
    LiftBySimilarity

    Examples
    --------
    See `LiftBySimilarity`.
    """
    baskets = as_baskets(baskets)
    if not baskets.total_weight > 0:
        raise InputError("there is nothing to count: no basket has a positive weight")
    baskets = units_of(baskets)
    S = read_similarity(similarity, baskets)
    levels = _levels(S)
    met = _met(baskets, levels, len(EDGES) + 1)
    chance = _Chance(baskets, levels)
    draws = [chance.ratios(met, weights) for weights in _redrawn(baskets, np.random.default_rng(rng))]
    observed, expected = baskets.weights @ met, chance.expected(baskets.weights)
    above = np.triu(np.ones_like(levels, bool), 1)
    n_pairs = np.bincount(levels[above], minlength=len(EDGES) + 1)
    spread = _interval(np.array(draws), observed, expected)
    edges = [-1.0, *EDGES, 1.0]
    return LiftBySimilarity(
        tuple(
            SimilarityBin(
                *(low, high, int(n_pairs[b])),
                *(float(observed[b]), float(expected[b])),
                float(observed[b] / expected[b]) if expected[b] > 0 else float("nan"),
                *map(float, spread[:, b]),
            )
            for b, (low, high) in enumerate(pairwise(edges))
            if n_pairs[b]
        )
    )


def _levels(S: Floats) -> Ints:
    """The number of the bin of every two items: 0 for those that are not alike at all."""
    return np.searchsorted(np.array(EDGES) + EXACT, S.clip(max=1.0), side="right").astype(np.int64)


def _met(baskets: Baskets, levels: Ints, n_bins: int) -> Floats:
    """How many pairs of each bin each basket holds, (n_baskets, n_bins)."""
    found = np.zeros((len(baskets), n_bins))
    for size in np.unique(baskets.sizes[baskets.sizes >= 2]).tolist():
        first, second = np.triu_indices(size, 1)
        rows = np.flatnonzero(baskets.sizes == size)
        for part in np.array_split(rows, -(-len(rows) * len(first) // AT_ONCE)):
            items = baskets.indices[baskets.offsets[part][:, None] + np.arange(size)]
            bins = levels[items[:, first], items[:, second]] + n_bins * np.arange(len(part))[:, None]
            found[part] = np.bincount(bins.ravel(), minlength=n_bins * len(part)).reshape(len(part), n_bins)
    return found


class _Chance:
    """What independent items of the same frequencies would do."""

    def __init__(self, baskets: Baskets, levels: Ints) -> None:
        self.row = np.repeat(np.arange(len(baskets)), baskets.sizes)
        self.indices, self.n_items = baskets.indices, baskets.n_items
        self.nonempty = bool(baskets.sizes[baskets.weights > 0].min(initial=1) > 0)
        self.levels = [np.triu(levels == b, 1).astype(float) for b in range(len(EDGES) + 1)]

    def expected(self, weights: Floats) -> Floats:
        """How often pairs of each bin would meet: n m_i p_j, with p the chances before it was known that sets are not
        empty, which are in proportion to the frequencies m."""
        n = weights.sum()
        m = np.bincount(self.indices, weights[self.row], self.n_items) / n
        p = before_truncation(m) if self.nonempty else m
        return np.array([n * float(m @ (level @ p)) for level in self.levels])

    def ratios(self, met: Floats, weights: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((weights @ met) / self.expected(weights))


def _redrawn(baskets: Baskets, rng: np.random.Generator) -> Iterable[Floats]:
    """The weights of baskets drawn again, time after time."""
    counts = are_counts(baskets.weights)
    for _ in range(RESAMPLES):
        drawn = rng.poisson(baskets.weights if counts else np.ones(len(baskets))).astype(float)
        weights = drawn if counts else drawn * baskets.weights
        if weights.sum() > 0:
            yield weights


def _interval(draws: Floats, observed: Floats, expected: Floats) -> Floats:
    """The lower and the upper ends, (2, n_bins)."""
    tail = (1 - COVERAGE) / 2
    ends = np.full((2, len(observed)), np.nan)
    for b, column in enumerate(draws.T):
        if np.isfinite(column).any():
            ends[:, b] = np.quantile(column[np.isfinite(column)], [tail, 1 - tail])
    low, high = Evidence(observed, expected).interval()
    return np.array([np.fmin(ends[0], low), np.fmax(ends[1], high)])


def _span(each: SimilarityBin) -> str:
    if each.low < 0:
        return "no similarity"
    return f"similarity above {each.low:g}" if each.high == 1 else f"similarity {each.low:g} to {each.high:g}"
