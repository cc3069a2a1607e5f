"""Medians, correlations and exponents, with NaN for what does not exist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np


def quartiles(values: Iterable[float]) -> list[float]:
    """First quartile, median and third of the finite ones; NaN where there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return [float(each) for each in np.percentile(finite, [25, 50, 75])] if finite else [math.nan] * 3


def median(values: Iterable[float]) -> float:
    return quartiles(values)[1]


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.mean(found)) if found else math.nan


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's; NaN where one of the two does not vary."""
    from scipy.stats import spearmanr

    if len(set(one)) == 1 or len(set(other)) == 1:
        return math.nan
    return float(spearmanr(one, other).statistic)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
