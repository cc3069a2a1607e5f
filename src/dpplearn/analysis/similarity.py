"""Lift by similarity: whether similar items co-occur less or more often than expected under independence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.pairs import Cooccurrence, independence_scale
from dpplearn.data.similarity import read_similarity
from dpplearn.data.weights import in_variance
from dpplearn.errors import InputError
from dpplearn.evaluation.metrics import Z
from dpplearn.utils.memory import NUMBER, check_memory
from dpplearn.utils.text import TextTable, count, number

EDGES = (-1.0, 0.0, 0.1, 0.3, 0.5, 0.7, 1.0)  # a bin is (low, high]; the first holds pairs without similarity
ROUNDING = 1e-9  # similarities that are closer are equal
MIN_EXPECTED = 5.0  # co-occurrences in a bin that the verdict may use
SENTENCES = {
    "repel": "Similar items repel each other, as a DPP with this similarity can express",
    "attract": "Similar items attract each other, which a DPP with this similarity cannot express",
    "neither": "Similar items neither repel nor attract each other",
}
BATCH_SIZE = 4_000_000  # pairs of items in baskets, in memory


@dataclass(frozen=True)
class SimilarityBin:
    """Pairs of items with a similarity above `low` and at most `high`; `ratio` is observed/expected, NaN if unknown."""

    low: float
    high: float
    n_pairs: int
    observed: float
    expected: float
    ratio: float
    ratio_low: float  # 95 % interval
    ratio_high: float

    @property
    def interval(self) -> str:
        return f"{number(self.ratio_low, 2)} to {number(self.ratio_high, 2)}"


@dataclass(frozen=True)
class LiftBySimilarity:
    """Lift of pairs of items by their similarity, the least similar first.

    Examples
    --------
    >>> types = {"cot": "bed", "crib": "bed", "bib": "meal"}
    >>> baskets = Baskets.from_lists([["cot", "bib"], ["crib", "bib"], ["cot"], ["crib"]] * 30)
    >>> found = lift_by_similarity(baskets, types)
    >>> found.verdict
    'repel'
    >>> [round(each.ratio, 2) for each in found.bins]
    [1.31, 0.0]
    """

    bins: tuple[SimilarityBin, ...]

    @property
    def most_similar(self) -> SimilarityBin | None:
        """The bin of the most similar pairs with at least five expected co-occurrences."""
        return next((each for each in reversed(self.bins) if each.low >= 0 and each.expected >= MIN_EXPECTED), None)

    @property
    def verdict(self) -> str:
        """Whether similar items "repel", "attract", do "neither", or there is "too little data"."""
        each = self.most_similar
        if each is None:
            return "too little data"
        return "repel" if each.ratio_high < 1 else "attract" if each.ratio_low > 1 else "neither"

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        each = self.most_similar
        if each is None:
            return f"Fewer than {MIN_EXPECTED:g} co-occurrences of similar items are expected: too few for a verdict."
        lift = f"{number(each.ratio, 2)} (95% interval {each.interval})"
        return f"{SENTENCES[self.verdict]}: the lift of pairs with similarity above {each.low:g} is {lift}."

    def table(self) -> TextTable:
        """Return the bins as a table."""
        rows = []
        for each in self.bins:
            similarity = "none" if each.low < 0 else f"above {each.low:g}, to {each.high:g}"
            counts = count(each.n_pairs), count(each.observed), number(each.expected, 1)
            rows.append((similarity, *counts, number(each.ratio, 2), each.interval))
        columns = ["similarity", "pairs>", "observed>", "expected>", "lift>", "95% interval>"]
        return TextTable("Lift by similarity", self.sentence, columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "verdict": self.verdict, "sentence": self.sentence}


def lift_by_similarity(baskets: Baskets, similarity: Any) -> LiftBySimilarity:
    """Return how often pairs co-occur compared with independence, by similarity.

    Parameters
    ----------
    baskets : Baskets
        If no basket is empty, expected counts are conditional on that.
    similarity : array, table, mapping or path
        As in `read_similarity`: one value per pair, or one value per item (items with the same value are similar).
    """
    if not baskets.total_weight > 0:
        raise InputError(f"no basket has a positive weight, in {len(baskets)} baskets")
    baskets = baskets.subset(baskets.weights > 0).as_counts()
    n = baskets.n_items
    check_memory(3 * NUMBER * n**2, f"similarities of {n:,} items", "use the most frequent items (most_frequent)")
    S = read_similarity(similarity, baskets)
    bins = np.searchsorted(np.array(EDGES[1:-1]) + ROUNDING, S, side="right")  # (n_items, n_items)
    np.fill_diagonal(bins, -1)
    within = _pairs_in_baskets(baskets, bins, len(EDGES) - 1)  # (n_baskets, n_bins)
    frequencies = baskets.frequencies()
    scale = independence_scale(frequencies) if baskets.sizes.min() > 0 else 1.0
    found = [_bin(baskets, bins == b, within[:, b], scale, *EDGES[b : b + 2]) for b in range(len(EDGES) - 1)]
    return LiftBySimilarity(tuple(each for each in found if each.n_pairs))


def _bin(baskets: Baskets, similar: Any, within: Floats, scale: float, low: float, high: float) -> SimilarityBin:
    """Return one bin. The interval is that of the delta method, or of the Poisson distribution where that is wider.

    With c the item counts, n the number of baskets and A the 0/1 matrix of similar pairs, E = s cᵀAc/(2n). The effect
    of basket Y on log(O/E) is O_Y/O − (s 1_YᵀAc/n − E/n)/E.
    """
    n, counts = baskets.total_weight, baskets.frequencies() * baskets.total_weight
    neighbours = similar @ counts  # (n_items,) A c
    observed, expected = float(baskets.weights @ within), float(scale * counts @ neighbours / (2 * n))
    count_low, count_high = (float(end) for end in Cooccurrence(np.array(observed), np.array(expected)).interval())
    ratio = observed / expected if expected > 0 else float("nan")
    if observed > 0 and expected > 0:
        row = np.repeat(np.arange(len(baskets)), baskets.sizes)
        change = scale * np.bincount(row, neighbours[baskets.indices], len(baskets)) / n - expected / n
        effect = within / observed - change / expected
        half = Z * float(np.sqrt(in_variance(baskets.weights) @ effect**2))
        count_low, count_high = min(count_low, ratio * np.exp(-half)), max(count_high, ratio * np.exp(half))
    return SimilarityBin(low, high, int(similar.sum()) // 2, observed, expected, ratio, count_low, count_high)


def _pairs_in_baskets(baskets: Baskets, bins: Ints, n_bins: int) -> Floats:
    """Return how many pairs of each bin each basket contains, (n_baskets, n_bins)."""
    found = np.zeros((len(baskets), n_bins))
    for size in np.unique(baskets.sizes[baskets.sizes >= 2]).tolist():
        first, second = np.triu_indices(size, 1)
        rows = np.flatnonzero(baskets.sizes == size)
        for part in np.array_split(rows, -(-len(rows) * len(first) // BATCH_SIZE)):
            items = baskets.indices[baskets.offsets[part][:, None] + np.arange(size)]
            keys = bins[items[:, first], items[:, second]] + n_bins * np.arange(len(part))[:, None]
            found[part] = np.bincount(keys.ravel(), minlength=n_bins * len(part)).reshape(len(part), n_bins)
    return found
