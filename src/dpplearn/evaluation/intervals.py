"""Weighted means with normal 95 % confidence intervals, and paired differences between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.weights import effective_number, in_variance
from dpplearn.evaluation.metrics import weighted_mean

Z = 1.959964  # 95 % of a normal distribution lie within Z standard deviations of its mean


@dataclass(frozen=True)
class Estimate:
    """A mean over baskets with its 95 % confidence interval.

    The interval is value ± 1.96 standard errors. It is NaN for fewer than two baskets. If the mean is −inf, so are both
    ends: a basket that the model rules out has occurred.
    """

    value: float
    low: float
    high: float
    standard_error: float = math.nan

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class Difference(Estimate):
    """The mean of one model minus the mean of another, on the same baskets.

    It is infinite if one mean is −inf, and NaN if both are.
    """

    @property
    def verdict(self) -> str:
        """ "better" or "worse" if the interval excludes zero, else "undecided"."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "undecided"

    def __str__(self) -> str:
        return f"{self.value:+.4f} [{self.low:+.4f}, {self.high:+.4f}], {self.verdict}"


def estimate(values: Floats, weights: Floats) -> Estimate:
    """Return the weighted mean of the values that are not NaN, with its interval.

    Weights that are whole numbers are counts: a basket of weight 2 counts as two baskets. Others are importances.
    """
    mean = weighted_mean(values, weights)
    if not math.isfinite(mean):
        return Estimate(mean, mean, mean)
    error = _standard_error(values, weights, mean)
    return Estimate(mean, mean - Z * error, mean + Z * error, error)


def difference(values: Floats, others: Floats, weights: Floats) -> Difference:
    """Return the weighted mean of `values` minus that of `others`, with the interval of the paired differences."""
    gap = weighted_mean(values, weights) - weighted_mean(others, weights)
    if not math.isfinite(gap):
        return Difference(gap, gap, gap)
    found = estimate(values - others, weights)
    return Difference(found.value, found.low, found.high, found.standard_error)


def _standard_error(values: Floats, weights: Floats, mean: float) -> float:
    """√(Σ v (x − mean)² · n/(n − 1)) / Σ w, with v = w for counts and w² otherwise, and n the effective sample size."""
    counted = (weights > 0) & ~np.isnan(values)
    n = effective_number(weights[counted])
    if not n > 1:
        return math.nan
    squares = float(in_variance(weights)[counted] @ (values[counted] - mean) ** 2)
    return math.sqrt(squares * n / (n - 1)) / float(weights[counted].sum())
