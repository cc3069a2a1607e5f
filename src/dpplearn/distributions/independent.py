"""Independent items: the baseline of every model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.pairs import independence_scale
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.components import log1mexp
from dpplearn.distributions.minors import weighted_sum
from dpplearn.distributions.sampling import log_size_table
from dpplearn.distributions.spectral import SpectralDPP

SMOOTHING = 0.5  # pseudo-count of baskets with, and of baskets without, each item (Jeffreys prior)
RAREST = 1e-6  # smallest P(Y ≠ ∅) allowed
FAR = 12  # standard deviations above the mean, plus 40 items: larger sizes have a probability below rounding


@dataclass(frozen=True, eq=False)
class IndependentItems:
    """The distribution of independent items with given probabilities, 0 and 1 included; no matrix is formed.

    Examples
    --------
    >>> items = IndependentItems(np.array([0.5, 0.25]), nonempty=True)
    >>> np.exp(items.log_prob(Baskets.from_lists([[0], [1], [0, 1]]))).round(2).tolist()
    [0.6, 0.2, 0.2]
    """

    p: Floats
    nonempty: bool = False  # whether the distribution is conditioned on Y ≠ ∅

    @cached_property
    def _log_none(self) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log1p(-self.p).sum())

    @property
    def _log_scale(self) -> float:
        return -float(log1mexp(np.array(self._log_none))) if self.nonempty else 0.0

    def log_prob(self, baskets: Baskets) -> Floats:
        """Return log P(Y) of each basket; −inf where the probability is 0."""
        sure = self.p == 1
        with np.errstate(divide="ignore"):
            log_odds = np.where(sure, 0, np.log(self.p) - np.log1p(-np.where(sure, 0, self.p)))
        row = np.repeat(np.arange(len(baskets)), baskets.sizes)
        found = np.bincount(row, log_odds[baskets.indices], len(baskets)) + np.log1p(-self.p[~sure]).sum()
        found[np.bincount(row, sure[baskets.indices], len(baskets)) < sure.sum()] = -np.inf
        return np.where((baskets.sizes == 0) & self.nonempty, -np.inf, found + self._log_scale)

    def mean_log_likelihood(self, baskets: Baskets) -> float:
        """Return the weighted mean of log P(Y)."""
        return weighted_sum(baskets.weights, self.log_prob(baskets)) / baskets.total_weight

    def mean_under(self, frequencies: Floats) -> float:
        """Return the mean of log P(Y) over baskets in which the items have these frequencies."""
        m, p = frequencies, self.p
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(m > 0, m * np.log(p), 0) + np.where(m < 1, (1 - m) * np.log1p(-p), 0)
        return float(each.sum()) + self._log_scale

    def log_sizes(self) -> Floats:
        """Return log P(|Y| = k) for k = 0..N; −inf also for sizes whose probability is below rounding."""
        mean, found = float(self.p.sum()), np.full(len(self.p) + 1, -np.inf)
        largest = min(int(mean + FAR * mean**0.5) + 40, len(self.p))
        found[: largest + 1] = log_size_table(self.p, largest)[-1] + self._log_scale
        found[0] = -np.inf if self.nonempty else self._log_none
        return found


def independent(baskets: AnyBaskets, *, smoothing: float = 0.0, nonempty: bool = False) -> SpectralDPP:
    """Return the model of independent items with the frequencies of the data, a diagonal K."""
    p = chances(baskets.frequencies(), baskets.total_weight, smoothing=smoothing, nonempty=nonempty)
    return SpectralDPP(p, np.eye(baskets.n_items))


def independent_log_likelihood(baskets: AnyBaskets, *, nonempty: bool = False) -> float:
    """Return the mean log-likelihood of baskets under independent items with the frequencies of these baskets."""
    m = baskets.frequencies()
    return IndependentItems(chances(m, baskets.total_weight, nonempty=nonempty), nonempty).mean_under(m)


def chances(frequencies: Floats, weight: float, *, smoothing: float = 0.0, nonempty: bool = False) -> Floats:
    """Return the probabilities of independent items from their frequencies in baskets of some total weight.

    `smoothing` is a pseudo-count: with ½ the result is (count + ½)/(n + 1). With `nonempty`, frequencies are those of
    nonempty sets.
    """
    m = np.minimum((frequencies * weight + smoothing) / (weight + 2 * smoothing), 1)
    return before_truncation(m) if nonempty else m


def before_truncation(frequencies: Floats) -> Floats:
    """Return the probabilities p of independent items whose nonempty sets have the frequencies m.

    p_i = m_i q with q = P(Y ≠ ∅) = 1 − Π(1 − m_i q), at least RAREST.
    """
    return frequencies * independence_scale(frequencies, least=RAREST)
