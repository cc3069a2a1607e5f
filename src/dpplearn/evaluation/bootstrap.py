"""Means with intervals: baskets drawn again and again from those there are, the same draws for every model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.weights import are_counts
from dpplearn.evaluation.metrics import weighted_mean

LEVEL = 0.95
MOST_RESAMPLES = 1_000_000
MOST_UNITS = 10_000  # beyond, baskets are drawn in random groups, which costs less and gives the same intervals
AT_ONCE = 1 << 22  # counts in memory


@dataclass(frozen=True)
class Estimate:
    """A mean, and the interval in which 95 % of the resampled means lie."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class Difference(Estimate):
    """A mean minus another, on the same baskets; `better` is the share of resamples in which the first was larger.

    Where a mean is −inf the difference is infinite, and where both are it is NaN.
    """

    better: float
    standard_error: float = math.nan

    @property
    def verdict(self) -> str:
        """By whether the interval leaves out zero. A set that occurred although a model rules it out settles it."""
        if math.isinf(self.value):
            return "better" if self.value > 0 else "worse"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "undecided"

    def __str__(self) -> str:
        return f"{self.value:+.4f} [{self.low:+.4f}, {self.high:+.4f}], {self.verdict}"


def resampled_means(values: Floats, weights: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The weighted means of the columns in every resample of the rows; the same resamples for all columns.

    NaN is not counted; a mean over −inf is −inf. Weights that are whole numbers are counts: a row of weight 2 is drawn
    as two rows would be. Others are importances, and rows are drawn alike whatever their weight.
    """
    counts, unit_weights, group = _units(weights, resamples, rng)
    n_units, n = int(group.max(initial=-1)) + 1, values.shape[1]
    summed = np.empty((n_units, 3 * n))  # of finite values, of the weight counted, of the weight of −inf
    for column in range(n):
        each = values[:, column]
        parts = (np.where(np.isfinite(each), each, 0), ~np.isnan(each), np.isneginf(each))
        for number, part in enumerate(parts):
            summed[:, column + number * n] = np.bincount(group, part * unit_weights, n_units)
    total, counted, impossible = np.split(np.concatenate([drawn @ summed for drawn in counts]), 3, axis=1)
    means = np.divide(total, counted, out=np.full_like(total, np.nan), where=counted > 0)
    return np.where(impossible > 0, -np.inf, means)


def estimate(values: Floats, weights: Floats, resampled: Floats) -> Estimate:
    return Estimate(weighted_mean(values, weights), *_interval(resampled))


def difference(value: float, resampled: Floats, other: float, other_resampled: Floats) -> Difference:
    """`resampled` and `other_resampled` come from the same resamples."""
    there = ~(np.isnan(resampled) | np.isnan(other_resampled))
    first, second = resampled[there], other_resampled[there]
    if not len(first):
        return Difference(value - other, math.nan, math.nan, math.nan)
    with np.errstate(invalid="ignore"):  # −inf less −inf is no number
        differences = first - second
    low, high = (math.nan, math.nan) if np.isnan(differences).any() else _interval(differences)
    better = (first > second).mean() + (first == second).mean() / 2
    error = math.nan if math.isnan(low) or np.isinf(differences).any() else float(differences.std())
    return Difference(value - other, low, high, float(better), error)


def _interval(resampled: Floats) -> tuple[float, float]:
    """Values that occur, as nothing lies between a number and −inf. Resamples without a mean are left out."""
    there = resampled[~np.isnan(resampled)]
    if not len(there):
        return math.nan, math.nan
    low, high = np.quantile(there, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
    return float(low), float(high)


def _units(weights: Floats, resamples: int, rng: np.random.Generator) -> tuple[Iterator[Floats], Floats, Ints]:
    """What is drawn: how often each unit was in each resample, the weights of rows, and the unit of each row."""
    n = len(weights)
    if are_counts(weights) and not np.all(weights == 1):
        total = int(weights.sum())
        drawn = _in_parts(lambda size: rng.multinomial(total, weights / total, size), n, resamples)
        return drawn, np.ones(n), np.arange(n)
    n_units = min(n, MOST_UNITS)
    group = np.arange(n) if n == n_units else rng.permutation(n) * n_units // n

    def uniform(size: int) -> Ints:
        return np.stack([np.bincount(rng.integers(n_units, size=n_units), minlength=n_units) for _ in range(size)])

    return _in_parts(uniform, n_units, resamples), weights, group


def _in_parts(draw: Callable[[int], Ints], n_units: int, resamples: int) -> Iterator[Floats]:
    step = max(1, AT_ONCE // n_units)
    return (draw(min(step, resamples - first)).astype(float) for first in range(0, resamples, step))
