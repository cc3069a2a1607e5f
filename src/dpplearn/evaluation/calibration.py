"""Whether probabilities come true: P(i ∈ Y given a ∈ Y) against how many of the baskets with a held i as well.

A probability given a partial basket can be checked only where what is given was not chosen by looking at the rest. An
item left out of a basket is surely in it, so that leaving one out will not do; here every item of a basket is given
in its turn, alone, and every other item of the catalogue is predicted. And whether baskets are as large as predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance

EDGES = np.array([0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])  # most probabilities are small
N_BINS = len(EDGES) - 1
Z = 1.959964  # of a normal distribution, 95 % lie within
AT_ONCE = 1 << 21  # pairs
LARGE = 5000  # items, beyond which some are given, and not all
MOST_GIVEN = 100  # of these


class SizeLaw(Protocol):
    """What is asked of a law about sizes."""

    def log_sizes(self) -> Floats: ...


@dataclass(frozen=True)
class ReliabilityRow:
    """The predictions from `start` to `stop`: their mean, the share that came true, and its 95 % interval."""

    start: float
    stop: float
    predicted: float
    observed: float
    low: float
    high: float
    weight: float  # how many predictions, by the weight of their baskets


@dataclass(frozen=True)
class Reliability:
    """A reliability table, and the expected calibration error, `error`: `Σ weight·|observed − predicted| / Σ weight`.

    `left_out` is the weight of predictions that the model does not make, given an item impossible under it.
    """

    rows: tuple[ReliabilityRow, ...]
    error: float
    left_out: float = 0.0

    def __str__(self) -> str:
        lines = ["   predicted   observed  95% interval            predictions"]
        for row in self.rows:
            interval = f"[{row.low:.4f}, {row.high:.4f}]"
            lines.append(f"{row.predicted:12.4f} {row.observed:10.4f}  {interval:18} {row.weight:16,.0f}")
        return "\n".join([*lines, f"expected calibration error {self.error:.5f}"])


@dataclass(frozen=True)
class PairSums:
    """What a reliability table is made of, one entry per bin. Sums over baskets, so they add.

    With t, p and o the number of a basket's predictions in a bin, their sum, and how many came true; w its weight, and
    v the weight in a variance: w for counts, w² otherwise.
    """

    sums: Floats  # (7, n_bins) Σwt Σwp Σwo Σvt Σvtt Σvto Σvoo
    left_out: float

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(self.sums + other.sums, self.left_out + other.left_out)

    def reliability(self) -> Reliability:
        found = np.flatnonzero(self.sums[0] > 0)
        sums = self.sums[:, found]
        predicted, observed = sums[1] / sums[0], sums[2] / sums[0]
        low, high = wilson(observed, _effective(sums, observed))
        columns = (EDGES[found], EDGES[found + 1], predicted, observed, low, high, sums[0])
        rows = tuple(ReliabilityRow(*line) for line in np.column_stack(columns).tolist())
        gaps = np.abs(observed - predicted)
        error = float(np.average(gaps, weights=sums[0])) if len(found) else np.nan
        return Reliability(rows, error, self.left_out)


@dataclass(frozen=True)
class SizeSums:
    """The weight of the baskets that a law expects to hold 0..N items, and of those that do. They add."""

    expected: Floats  # (n_items + 1,)
    observed: Floats  # (n_items + 1,)

    def __add__(self, other: SizeSums) -> SizeSums:
        return SizeSums(self.expected + other.expected, self.observed + other.observed)

    def distance(self) -> float:
        """½ Σ_k |P(|Y| = k) − share of the baskets of k items|, the distance in total variation."""
        return float(np.abs(self.expected - self.observed).sum() / (2 * self.observed.sum()))


def size_sums(law: SizeLaw, baskets: Baskets) -> SizeSums:
    """The sizes that a law gives to baskets, and those that they have."""
    observed = np.bincount(baskets.sizes, baskets.weights, baskets.n_items + 1).astype(float)
    return SizeSums(baskets.total_weight * np.exp(law.log_sizes()), observed)


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of Wilson for a share of n."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)


def _effective(sums: Floats, observed: Floats) -> Floats:
    """How many independent predictions would vary as much: those of one basket come true together.

    p(1 − p) over the variance of the ratio p = Σwo/Σwt between baskets; without any variance, as if independent.
    """
    wt, _, _, vt, vtt, vto, voo = sums
    variance = (voo - 2 * observed * vto + observed**2 * vtt) / wt**2
    spread = observed * (1 - observed)
    usable = (variance > 0) & (spread > 0)
    return np.where(usable, spread / np.where(usable, variance, 1), wt**2 / vt)


def items_given(baskets: Baskets, rng: np.random.Generator) -> Ints:
    """The items that are given, one at a time: all, or of a large catalogue some, by how often they occur."""
    n, frequency = baskets.n_items, baskets.frequencies()
    if n <= LARGE:
        return np.arange(n)
    most = min(MOST_GIVEN, int((frequency > 0).sum()))
    return np.sort(rng.choice(n, most, replace=False, p=frequency / frequency.sum()))


def pair_sums(probabilities: Floats, baskets: Baskets, items: Ints | None = None) -> PairSums:
    """Of `probabilities`, P(i ∈ Y given a ∈ Y) in row a and column i, on the baskets; NaN is not predicted.

    With `items`, the rows are those of these items alone, and what others tell is not predicted either.
    """
    n = baskets.n_items
    items = np.arange(n) if items is None else items
    place, rows = np.full(n, len(items)), len(items) + 1  # the last row is that of items that are not given
    place[items] = np.arange(len(items))
    known = ~np.isnan(probabilities)
    known[np.arange(len(items)), items] = False
    above = np.searchsorted(EDGES, probabilities, side="right") - 1
    bins = np.where(known, np.clip(above, 0, N_BINS - 1), N_BINS).astype(np.int8)  # the last is not counted
    cells = (np.arange(len(items))[:, None] * (N_BINS + 1) + bins).ravel()
    of_item = np.bincount(cells, minlength=rows * (N_BINS + 1)).reshape(rows, -1)[:, :N_BINS].astype(float)
    predicted = np.bincount(cells, np.where(known, probabilities, 0).ravel(), rows * (N_BINS + 1))
    given = baskets.blocks.item_weights[items]  # the weight of the baskets that hold each item
    sums = np.zeros((7, N_BINS))
    sums[1] = given @ predicted.reshape(rows, -1)[:-1, :N_BINS]
    bins = np.concatenate([bins, np.full((1, n), N_BINS, np.int8)])
    in_variances = in_variance(baskets.weights)
    for chosen, sets in _batches(baskets):
        w, v = baskets.weights[chosen], in_variances[chosen]
        t = of_item[place[sets]].sum(axis=1)  # (len(chosen), n_bins)
        o = _came_true(bins, place[sets], sets)
        sums[[0, 2, 3, 4, 5, 6]] += [w @ t, w @ o, v @ t, v @ t**2, v @ (t * o), v @ o**2]
    return PairSums(sums, float(given @ (n - 1 - of_item[:-1].sum(axis=1))))


def _came_true(bins: npt.NDArray[np.int8], given: Ints, sets: Ints) -> Floats:
    """For sets of one size, how many ordered pairs of different items of each have their prediction in each bin."""
    among = bins[given[:, :, None], sets[:, None, :]].reshape(len(sets), -1)
    return np.stack([(among == each).sum(axis=1) for each in range(N_BINS)], axis=1).astype(float)


def _batches(baskets: Baskets) -> Iterator[tuple[Ints, Ints]]:
    """Baskets of one size at a time, their numbers and their items, and not too many."""
    for group in baskets.by_size:
        size = group.sets.shape[1]
        step = max(1, AT_ONCE // max(size * max(size, N_BINS), 1))
        for first in range(0, len(group.rows) if size else 0, step):
            part = slice(first, first + step)
            yield group.rows[part], group.sets[part].astype(np.int64)
