"""Ranking metrics of one question, and weighted means over baskets with normal confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.weights import effective_number, in_variance

LOG_LIKELIHOOD, PERCENTILE_RANK = "log_likelihood", "percentile_rank"
Z = 1.959964  # 95 % of a normal distribution lie within Z standard deviations of its mean


def ranking_measures(ks: Sequence[int]) -> list[str]:
    """Return the names of the ranking measures, in the order of the columns of `measure_ranks`."""
    return [PERCENTILE_RANK, *(f"recall@{k}" for k in ks), *(f"ndcg@{k}" for k in ks)]


def rank(scores: Floats, given: Ints, held: Ints) -> Ints:
    """Compare each held-out item with the other items that are not given.

    Returns
    -------
    (4, len(held))
        Number of candidates with a higher score and with the same score, and the same for the candidates that are not
        held out. All candidates are tied if a score is NaN.
    """
    candidates, theirs = np.delete(scores, given), scores[held]
    if np.isnan(candidates).any():
        candidates, theirs = np.zeros_like(candidates), np.zeros_like(theirs)
    above, tied = (candidates > theirs[:, None]).sum(axis=1), (candidates == theirs[:, None]).sum(axis=1) - 1
    held_above, held_tied = (theirs > theirs[:, None]).sum(axis=1), (theirs == theirs[:, None]).sum(axis=1) - 1
    return np.stack([above, tied, above - held_above, tied - held_tied])


def measure_ranks(ranks: Ints, question: Ints, n_negative: Ints, ks: Sequence[int]) -> Floats:
    """Return the measures of each question, (n_questions, n_measures).

    Ties are broken at random, and the measures are expectations: an item with a candidates above it and t others of the
    same score has each of the ranks a + 1, ..., a + 1 + t with probability 1/(t + 1).

    Parameters
    ----------
    ranks : (4, n)
        From `rank`, for all held-out items of all questions.
    question : (n,)
        The question of each held-out item.
    n_negative : (n_questions,)
        Number of items that are neither given nor held out.
    ks : sequence of int
        Lengths of the lists of recommendations.
    """
    above, tied, negative_above, negative_tied = ranks
    n_held = np.bincount(question, minlength=len(n_negative))

    def total(values: Floats) -> Floats:
        return np.bincount(question, values, len(n_negative)).astype(np.float64)

    with np.errstate(invalid="ignore"):  # a question without negatives has no percentile rank
        below = total(n_negative[question] - negative_above - negative_tied / 2)
        columns = [100 * below / (n_held * n_negative)]
    columns += [total(np.clip((k - above) / (tied + 1), 0, 1)) / n_held for k in ks]
    for k in ks:
        # Sums of 1/log2(1 + rank) over the first 0, 1, ..., k ranks; the best list has all held-out items first.
        discounts = np.concatenate([[0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
        first, last = np.minimum(above, k), np.minimum(above + tied + 1, k)
        gains = (discounts[last] - discounts[first]) / (tied + 1)
        columns.append(total(gains) / discounts[np.minimum(n_held, k)])
    return np.column_stack(columns)


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


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Return the mean of the values that are not NaN; −inf if one of positive weight is, NaN if there are none."""
    counted = (weights > 0) & ~np.isnan(values)
    return float(np.average(values[counted], weights=weights[counted])) if counted.any() else math.nan


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
