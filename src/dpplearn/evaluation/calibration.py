"""Calibration: predicted probabilities P(i ∈ Y | A ⊆ Y) compared with how often i was in the basket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
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
class CalibrationSums:
    """Sums over baskets from which a reliability table is computed. They add.

    For a basket of weight w: t predictions in a bin, their sum p, and o of them observed; v is the weight in a
    variance, w for counts and w² otherwise.
    """

    bins: Floats  # (7, N_BINS) Σwt Σwp Σwo Σvt Σvtt Σvto Σvoo
    weight: float  # of the questions answered
    left_out: float

    def __add__(self, other: CalibrationSums) -> CalibrationSums:
        return CalibrationSums(self.bins + other.bins, self.weight + other.weight, self.left_out + other.left_out)

    def reliability(self) -> Reliability:
        found = np.flatnonzero(self.bins[0] > 0)
        sums = self.bins[:, found]
        predicted, observed = sums[1] / sums[0], sums[2] / sums[0]
        low, high = wilson(observed, _effective(sums, observed))
        columns = (EDGES[found], EDGES[found + 1], predicted, observed, low, high, sums[0])
        rows = tuple(ReliabilityRow(*line) for line in np.column_stack(columns).tolist())
        error = float(np.average(np.abs(observed - predicted), weights=sums[0])) if len(found) else np.nan
        totals = self.bins[1:3].sum(axis=1) / self.weight if self.weight else np.full(2, np.nan)
        return Reliability(rows, error, float(totals[0]), float(totals[1]), self.left_out)


def calibration_sums(bins: Floats, baskets: Baskets, answered: Floats, copies: Floats) -> CalibrationSums:
    """Return the sums over baskets.

    Parameters
    ----------
    bins : (n_baskets, 3, N_BINS)
        t, p and o of each basket, zero where the model gave no answer.
    baskets : Baskets
        For their weights.
    answered : (n_baskets,)
        1 where the model gave probabilities, else 0.
    copies : (n_baskets,)
        How often the basket counts, in addition to its weight.
    """
    w, v = baskets.weights, in_variance(baskets.weights)
    t, p, o = (bins * copies[:, None, None]).transpose(1, 0, 2)
    sums = np.stack([w @ t, w @ p, w @ o, v @ (t * copies[:, None]), v @ t**2, v @ (t * o), v @ o**2])
    return CalibrationSums(sums, float(w @ (copies * answered)), float(w @ (copies * (1 - answered))))


def bin_predictions(probabilities: Floats, given: Ints, held: Ints) -> Floats:
    """Return t, p and o of one question, (3, N_BINS): all items but the given ones are predicted."""
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


def _effective(sums: Floats, observed: Floats) -> Floats:
    """Return the number of independent predictions with the same variance: those of one basket are correlated.

    It is p(1 − p) over the variance of the ratio p = Σwo/Σwt between baskets; without any variance, (Σwt)²/Σvt.
    """
    wt, _, _, vt, vtt, vto, voo = sums
    variance = (voo - 2 * observed * vto + observed**2 * vtt) / wt**2
    spread = observed * (1 - observed)
    usable = (variance > 0) & (spread > 0)
    return np.where(usable, spread / np.where(usable, variance, 1), wt**2 / vt)
