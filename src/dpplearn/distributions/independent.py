"""Independent items: the yardstick of every model, and what chance alone would bring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.spectral import SpectralDPP

SMOOTHING = 0.5  # pseudo-count of baskets with, and of baskets without, each item
RAREST = 1e-6  # the least share of sets that are not empty
CONVERGED = 1e-12  # of Newton's method, on a share
FAR = 12  # standard deviations, and 40 items more: further above the mean, double precision sees no chance of a size


@dataclass(frozen=True, eq=False)
class IndependentItems:
    """The law of independent items by their chances alone, whatever their number; 0 and 1 are chances, too.

    Examples
    --------
    >>> law = IndependentItems(np.array([0.5, 0.25]), nonempty=True)
    >>> np.exp(law.log_prob(Baskets.from_lists([[0], [1], [0, 1]]))).round(2).tolist()
    [0.6, 0.2, 0.2]
    """

    p: Floats
    nonempty: bool = False  # whether the law is that of sets given that they are not empty

    @cached_property
    def _log_none(self) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log1p(-self.p).sum())

    @property
    def _log_scale(self) -> float:
        with np.errstate(divide="ignore"):
            return -float(np.log(-np.expm1(self._log_none))) if self.nonempty else 0.0

    def log_empty(self) -> float:
        """log P(∅).

        Returns
        -------
        float

        Examples
        --------
        >>> IndependentItems(np.array([0.5]), nonempty=True).log_empty()
        -inf
        """
        return -np.inf if self.nonempty else self._log_none

    def marginals(self) -> Floats:
        """P(i ∈ Y) of every item.

        Returns
        -------
        array of float

        Examples
        --------
        >>> IndependentItems(np.array([0.5, 0.25]), nonempty=True).marginals().round(2).tolist()
        [0.8, 0.4]
        """
        return np.asarray(np.minimum(self.p * np.exp(self._log_scale), 1))

    def log_prob(self, baskets: Baskets) -> Floats:
        """log P(Y) of every basket; −inf where it is zero.

        Parameters
        ----------
        baskets
            Over as many items.

        Returns
        -------
        array of float
            One per basket.

        Examples
        --------
        >>> IndependentItems(np.array([1.0, 0.0])).log_prob(Baskets.from_lists([[0], [0, 1]])).tolist()
        [0.0, -inf]
        """
        sure = self.p == 1
        with np.errstate(divide="ignore"):
            log_odds = np.where(sure, 0, np.log(self.p) - np.log1p(-np.where(sure, 0, self.p)))
        row = np.repeat(np.arange(len(baskets)), baskets.sizes)
        found = np.bincount(row, log_odds[baskets.indices], len(baskets)) + np.log1p(-self.p[~sure]).sum()
        found[np.bincount(row, sure[baskets.indices], len(baskets)) < sure.sum()] = -np.inf
        return np.where((baskets.sizes == 0) & self.nonempty, -np.inf, found + self._log_scale)

    def mean_log_likelihood(self, baskets: Baskets) -> float:
        """The weighted mean of log P(Y).

        Parameters
        ----------
        baskets
            Over as many items.

        Returns
        -------
        float

        Examples
        --------
        >>> round(IndependentItems(np.array([0.5])).mean_log_likelihood(Baskets.from_lists([[0]])), 3)
        -0.693
        """
        counted = baskets.weights > 0  # a weight of 0 silences even −inf
        return float(self.log_prob(baskets)[counted] @ baskets.weights[counted] / baskets.total_weight)

    def log_sizes(self) -> Floats:
        """log P(|Y| = k) for k = 0..N.

        Returns
        -------
        array of float
            −inf as well for sizes so far above the mean that they make no difference to any other number.

        Examples
        --------
        >>> np.exp(IndependentItems(np.array([0.5, 0.5])).log_sizes()).tolist()
        [0.25, 0.5, 0.25]
        """
        mean = float(self.p.sum())
        largest = min(int(mean + FAR * mean**0.5) + 40, len(self.p))
        law = np.zeros(largest + 1)
        law[0] = 1
        for p in self.p.tolist():
            law[1:] = law[1:] * (1 - p) + law[:-1] * p  # all of it adds up to 1, so that nothing that counts underflows
            law[0] *= 1 - p
        found = np.full(len(self.p) + 1, -np.inf)
        with np.errstate(divide="ignore"):
            found[: largest + 1] = np.log(law) + self._log_scale
        found[0] = -np.inf if self.nonempty else found[0]
        return found


def independent(baskets: AnyBaskets, *, smoothing: float = 0.0, nonempty: bool = False) -> SpectralDPP:
    """The model of independent items with the data's frequencies: a diagonal K. A yardstick, not a start."""
    p = chances(baskets.frequencies(), baskets.total_weight, smoothing=smoothing, nonempty=nonempty)
    return SpectralDPP(p, np.eye(baskets.n_items))


def independent_log_likelihood(baskets: AnyBaskets, *, nonempty: bool = False) -> float:
    """The mean log-likelihood of independent items with the data's frequencies, of the baskets themselves."""
    m = baskets.frequencies()
    p = chances(m, baskets.total_weight, nonempty=nonempty)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(m > 0, m * np.log(p), 0) + np.where(m < 1, (1 - m) * np.log1p(-p), 0)
        not_empty = float(np.log(-np.expm1(np.log1p(-p).sum()))) if nonempty else 0.0
    return float(each.sum()) - not_empty


def chances(frequencies: Floats, weight: float, *, smoothing: float = 0.0, nonempty: bool = False) -> Floats:
    """Of each item, were it independent of the others, from its frequency in baskets of some weight.

    `smoothing` is how many baskets with and how many without each item are counted beside the data: with ½, it is
    (count + ½)/(n + 1). With `nonempty`, the frequencies are those of the sets that are not empty.
    """
    m = np.minimum((frequencies * weight + smoothing) / (weight + 2 * smoothing), 1)
    return before_truncation(m) if nonempty else m


def before_truncation(frequencies: Floats) -> Floats:
    """The chances p of independent items whose sets, given that they are not empty, have these frequencies m.

    p_i = m_i q with q = P(Y ≠ ∅) = 1 − Π(1 − m_i q), by Newton's method from q = 1, from where it falls to the root.
    That is 0 for frequencies that add up to 1 or less, as in data of single items: ever rarer items fit ever better.
    """
    q = 1 - CONVERGED
    for _ in range(100):
        out = 1 - frequencies * q
        none = float(np.prod(out))
        slope = 1 - none * float((frequencies / out).sum())
        step = (q - 1 + none) / slope if slope > 0 else q
        q = max(q - step, RAREST)
        if abs(step) < CONVERGED or q == RAREST:
            break
    return np.asarray(frequencies * q)
