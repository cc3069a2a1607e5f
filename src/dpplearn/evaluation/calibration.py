"""Calibration: predicted probabilities P(i ∈ Y | A ⊆ Y) compared with how often i was in the basket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.evaluation.metrics import Z

EDGES = np.array([0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])  # most probabilities are small
N_BINS = len(EDGES) - 1


@dataclass(frozen=True)
class ReliabilityRow:
    """The predictions from `start` to `stop`: their mean, the observed frequency, and its 95 % interval."""

    start: float
    stop: float
    predicted: float
    observed: float
    low: float
    high: float
    weight: float  # number of predictions, weighted as their baskets


@dataclass(frozen=True)
class Reliability:
    """Reliability table for one ranking task.

    `error` is the expected calibration error: the mean absolute difference of `observed` and `predicted` over the rows,
    weighted by `weight`.
    `predicted_items` and `observed_items` are the mean number of further items of a basket: the sum of the predicted
    probabilities, and how many were held out.
    """

    rows: tuple[ReliabilityRow, ...]
    error: float
    predicted_items: float
    observed_items: float
    left_out: float = 0.0  # weight of the questions that the model cannot answer because P(A ⊆ Y) = 0


@dataclass(frozen=True)
class Calibration:
    """Predictions for one ranking task, by basket."""

    bins: Floats  # (n, 3, N_BINS) t predictions in a bin, their sum p, and o of them observed; NaN where P(A ⊆ Y) = 0
    weights: Floats  # (n,)
    variances: Floats  # (n,) factors of squared deviations, w for counts and w² otherwise

    @classmethod
    def joined(cls, parts: Sequence[Calibration]) -> Calibration:
        return cls(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))

    def reliability(self) -> Reliability:
        answered = ~np.isnan(self.bins).any(axis=(1, 2))
        w, v = self.weights[answered], self.variances[answered]
        t, p, o = self.bins[answered].transpose(1, 0, 2)  # (n, N_BINS) each
        n_questions = w.sum() or np.nan
        predicted_items, observed_items = (float((w @ each).sum() / n_questions) for each in (p, o))
        found = np.flatnonzero(w @ t)
        t, p, o = t[:, found], p[:, found], o[:, found]
        total = w @ t
        predicted, observed = w @ p / total, w @ o / total
        # The number of independent predictions with the same variance, because those of one basket are correlated:
        # p(1 − p) over the variance of the ratio p = Σwo/Σwt between baskets; without any variance, (Σwt)²/Σvt.
        variance, spread = v @ (o - observed * t) ** 2 / total**2, observed * (1 - observed)
        usable = (variance > 0) & (spread > 0)
        low, high = wilson(observed, np.where(usable, spread / np.where(usable, variance, 1), total**2 / (v @ t)))
        columns = (EDGES[found], EDGES[found + 1], predicted, observed, low, high, total)
        rows = tuple(ReliabilityRow(*line) for line in np.column_stack(columns).tolist())
        error = float(np.average(np.abs(observed - predicted), weights=total)) if rows else np.nan
        return Reliability(rows, error, predicted_items, observed_items, float(self.weights[~answered].sum()))


def bin_predictions(probabilities: Floats, given: Ints, held: Ints) -> Floats:
    """Return t, p and o of one question, (3, N_BINS): all items but the given ones are predicted."""
    if np.isnan(probabilities).any():
        return np.full((3, N_BINS), np.nan)
    p = np.delete(probabilities, given)
    bins = _bins(p)
    t, total = np.bincount(bins, minlength=N_BINS), np.bincount(bins, p, N_BINS)
    return np.stack([t, total, np.bincount(_bins(probabilities[held]), minlength=N_BINS)]).astype(float)


def _bins(p: Floats) -> Ints:
    return np.minimum(np.searchsorted(EDGES, p, side="right") - 1, N_BINS - 1)


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % interval for a share of n."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
