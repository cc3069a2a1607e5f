"""Measures of how good a model is; docs/guide/evaluation.md has the formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints


def relative_gain(better: float, base: float) -> float:
    """100·(better − base)/|base|, as [GKFT14] reports log-likelihoods; NaN where that is no number."""
    if not (math.isfinite(better) and math.isfinite(base) and base):
        return math.nan
    return 100 * (better - base) / abs(base)


@dataclass(frozen=True)
class Ranks:
    """How many candidates scored above the item that was held out, and how many others the same as it.

    Ties are broken at random, and what is given is the expectation: with t others tied, the rank is each of
    above + 1, ..., above + 1 + t equally often.
    """

    above: Ints
    tied: Ints
    candidates: Ints  # the held-out item among them

    def percentile(self) -> Floats:
        """100 times the share of the other candidates that scored below, ties counted half; NaN without others."""
        others = self.candidates - 1
        below = others - self.above - self.tied
        return 100 * _divided(below + self.tied / 2, others)

    def recall(self, k: int) -> Floats:
        """P(rank ≤ k)."""
        return np.clip((k - self.above) / (self.tied + 1), 0, 1)

    def ndcg(self, k: int) -> Floats:
        """The expectation of 1/log2(1 + rank) where rank ≤ k, else 0: with one item to find, the ideal is 1."""
        k = min(k, int(self.candidates.max(initial=0)))
        discounts = np.concatenate(
            [[0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))]
        )  # of the first 0, 1, ..., k ranks
        first, last = np.minimum(self.above, k), np.minimum(self.above + self.tied + 1, k)
        return np.asarray((discounts[last] - discounts[first]) / (self.tied + 1))


def ranks(scores: Floats, candidate: npt.NDArray[np.bool_], held: Ints) -> Ranks:
    """Of items held out, among the candidates, by their scores; scores that are NaN are all tied."""
    theirs = np.sort(scores[candidate])  # in which NaN is the largest number, equal to itself
    left, right = (np.searchsorted(theirs, scores[held], side=side) for side in ("left", "right"))
    return Ranks(len(theirs) - right, right - left - 1, np.full(len(held), len(theirs)))


def share_beaten(true: Floats, others: Floats) -> Floats:
    """For every true value the share of its others (a row each) that are below it, ties counted half."""
    true = true[:, None]
    return np.asarray((others < true).mean(axis=1) + (others == true).mean(axis=1) / 2)


def weighted_mean(values: Floats, weights: Floats) -> float:
    """The mean of the values that are not NaN and have a weight; −inf where one of them is, NaN without any."""
    counted = (weights > 0) & ~np.isnan(values)
    return float(np.average(values[counted], weights=weights[counted])) if counted.any() else math.nan


def _divided(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Floats:
    found = np.full(len(denominator), np.nan)
    np.divide(numerator, denominator, out=found, where=denominator > 0)
    return found
