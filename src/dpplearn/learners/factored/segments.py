"""Segments of independent items by EM, each pass in closed form; and the same step where items interact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.kernels.nonsymmetric.statistics import segment_sums

SMOOTHING = 0.5  # baskets with and without every item that are counted beside the data, as p has it
STRENGTH = 1.0  # baskets with an item, as frequent as in all segments together, that are counted beside each segment's


@dataclass(frozen=True)
class Division:
    """How the baskets divide among segments, and what follows: their weights, and how often each should have an item.

    `log_sum` is the mean of log Σ_c π_c exp(log_odds_c·x_Y)/Z_c, under the law: what remains of a log-likelihood
    without the minors of the interaction.
    """

    weights: Floats  # (n_segments,)
    targets: Floats  # log-odds, (n_segments, n_items)
    log_sum: float


def divide(
    log_odds: Floats,
    weights: Floats,
    log_normalisers: Floats,
    baskets: Baskets,
    p: Floats,
    *,
    nonempty: bool,
    temper: float = 1.0,
    threads: int | None = None,
) -> Division:
    """One pass over the baskets. `p` are the frequencies of the items over all segments, none of them 0 or 1.

    Where sets cannot be empty, those that would have been are counted as well, each to its segment. Responsibilities
    are taken to the power `temper`, and each segment's frequencies are shrunk towards p times how much it takes.
    """
    n = baskets.total_weight
    bias = np.log(np.maximum(weights, np.finfo(float).tiny)) - log_normalisers
    sums = segment_sums(temper * log_odds, temper * bias, baskets, threads)
    of_empty = np.exp(bias)
    log_sum, missing = sums.log_sum / n, np.zeros(len(weights))
    if nonempty:
        log_sum -= float(np.log1p(-of_empty.sum()))
        missing = n * of_empty / (1 - of_empty.sum())
    shares = (sums.shares + missing) * (n + 2 * SMOOTHING) / n
    counts = sums.counts + SMOOTHING * sums.shares[:, None] / n
    return Division(shares / shares.sum(), shrunk_log_odds(counts, shares, p), log_sum)


def shrunk_log_odds(counts: Floats, shares: Floats, p: Floats) -> Floats:
    """Of t_ci = p_i (N_ci + s)/(n_c p_i + s/m_c), m_c how much segment c takes against all."""
    takes = np.maximum(counts.sum(axis=1) / np.maximum(shares * p.sum(), np.finfo(float).tiny), 1e-6)
    at = counts + STRENGTH
    out = shares[:, None] + STRENGTH / (takes[:, None] * p) - at  # of baskets without the item
    return np.asarray(np.log(at) - np.log(np.maximum(out, STRENGTH)))
