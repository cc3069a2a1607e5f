"""The E-step of a low-rank mixture: responsibilities of the segments, and what follows from them in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.independent import SMOOTHING
from dpplearn.distributions.segment_statistics import segment_sums

PRIOR_COUNT = 1.0  # baskets with an item, as frequent as in all segments together, added to those of each segment


@dataclass(frozen=True)
class EStep:
    """New weights of the segments, and target log-odds of their marginals.

    `log_sum` is the mean of log Σ_c π_c exp(log_odds_c·x_Y)/Z_c, under the distribution: the log-likelihood without the
    minors of the interaction.
    """

    weights: Floats  # (n_segments,)
    targets: Floats  # log-odds, (n_segments, n_items)
    log_sum: float


def e_step(
    log_odds: Floats,
    weights: Floats,
    log_normalisers: Floats,
    baskets: Baskets,
    p: Floats,
    *,
    nonempty: bool,
    temperature: float = 1.0,
    threads: int | None = None,
) -> EStep:
    """Pass once over the baskets. `p` are the frequencies of the items over all segments, none of them 0 or 1.

    Where sets cannot be empty, the expected number of empty sets of each segment is added. Responsibilities are taken
    to the power `temperature`, and the frequencies of each segment are shrunk towards p times its relative basket size.
    """
    n = baskets.total_weight
    bias = np.log(np.maximum(weights, np.finfo(float).tiny)) - log_normalisers
    sums = segment_sums(temperature * log_odds, temperature * bias, baskets, threads)
    of_empty = np.exp(bias)
    log_sum, missing = sums.log_sum / n, np.zeros(len(weights))
    if nonempty:
        log_sum -= float(np.log1p(-of_empty.sum()))
        missing = n * of_empty / (1 - of_empty.sum())
    shares = (sums.shares + missing) * (n + 2 * SMOOTHING) / n
    counts = sums.counts + SMOOTHING * sums.shares[:, None] / n
    return EStep(shares / shares.sum(), shrunk_log_odds(counts, shares, p), log_sum)


def shrunk_log_odds(counts: Floats, shares: Floats, p: Floats) -> Floats:
    """Return the log-odds of t_ci = p_i (N_ci + s)/(n_c p_i + s/m_c), m_c the relative basket size of segment c."""
    size = np.maximum(counts.sum(axis=1) / np.maximum(shares * p.sum(), np.finfo(float).tiny), 1e-6)
    with_item = counts + PRIOR_COUNT
    without = shares[:, None] + PRIOR_COUNT / (size[:, None] * p) - with_item
    return np.asarray(np.log(with_item) - np.log(np.maximum(without, PRIOR_COUNT)))
