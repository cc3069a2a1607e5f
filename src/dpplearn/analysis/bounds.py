"""What baskets do that no single DPP can: go together, and differ in size, beyond its bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import effective_number

SINGLE, SYMMETRIC = 2.0, 1.0  # Var|Y| / E|Y| is at most this of a nonsymmetric DPP, and of a symmetric one


class Bounds(NamedTuple):
    """How baskets stand to what every single DPP obeys, given that sets are not empty or not.

    In a DPP an item i brings at most 1 − P(i) others along, on average: E[others | i] − E[others] ≤ 1 − P(i), and none
    at all if the DPP is symmetric; and Var|Y| ≤ 2 E|Y|, or E|Y| if it is symmetric. Items count as beyond where it is
    clear, the number of items allowed for.
    """

    n_items: int  # that occur in two baskets or more, but not in all
    n_beyond: int  # of these, items that bring more others than any DPP allows
    n_beyond_symmetric: int  # more than a symmetric DPP allows
    size_ratio: float  # variance of the size over its mean; NaN where all baskets are empty
    standard_error: float  # of that ratio

    @property
    def sizes_beyond(self) -> bool:
        """Whether sizes clearly vary more than those of any single DPP: by more than two standard errors."""
        return self.size_ratio > SINGLE + 2 * self.standard_error

    @property
    def sizes_beyond_symmetric(self) -> bool:
        """Whether sizes clearly vary more than those of any symmetric DPP."""
        return self.size_ratio > SYMMETRIC + 2 * self.standard_error

    @property
    def passed(self) -> bool:
        """Whether any bound of a single DPP is clearly passed."""
        return self.sizes_beyond or self.n_beyond > 0


def bounds(baskets: Baskets, level: float, *, nonempty: bool) -> Bounds:
    """Compare baskets with the bounds of a single DPP.

    Given Y ≠ ∅, E[others | i] is that of the DPP itself, and all that is not given i is q = P(Y ≠ ∅) times as large:
    the bound is E[others | i] ≤ 1 + q (E[others] − P(i)) with an unknown q in [0, 1]. It is passed for all q if it is
    for q = 0 and 1. The other bounds are loosest at q = 1, where they are as above.

    Parameters
    ----------
    baskets
        At least one of positive weight.
    level
        Of the items called beyond a bound, the share that may be by mistake [BH95].
    nonempty
        Whether the law is that of sets given that they are not empty.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> rich, poor = [["tea", "milk", "bread", "jam", "eggs"]] * 50, [[]] * 100 + [["tea"]] * 10
    >>> found = bounds(Baskets.from_lists([*rich, *poor]), 0.05, nonempty=False)
    >>> found.n_beyond, found.n_items, round(found.size_ratio, 1)
    (5, 5, 3.2)
    """
    kept = baskets.subset(baskets.weights > 0)
    moments = _moments(kept)
    together = moments.p_value(1.0, SINGLE)
    if nonempty:
        together = np.maximum(together, moments.p_value(0.0, SINGLE))
    beyond, beyond_symmetric = (_told(p, level) for p in (together, moments.p_value(1.0, SYMMETRIC)))
    return Bounds(len(together), int(beyond.sum()), int(beyond_symmetric.sum()), *_size_ratio(kept, moments.n))


class _Moments(NamedTuple):
    """Of the items that can be judged; sizes S are taken from their mean."""

    n: float  # baskets
    mean_size: float
    variance: float
    m: Floats  # E[x_i]
    S: Floats  # E[x_i S]
    SS: Floats  # E[x_i S²]

    def p_value(self, q: float, most: float) -> Floats:
        """Of E[others | i] ≤ most − 1 + q (E[others] − (most − 1) P(i)), item by item: one-sided, by Student's law.

        The excess is E[S | i] + (1 − q) μ + q most m_i − most, of sizes about their mean μ, and a basket moves it by
        x_i (S − E[S | i])/m_i − q S + q most (x_i − m_i), of which the mean square is taken apart by x_i.
        """
        from scipy.stats import t

        m, brings = self.m, self.S / self.m
        excess = brings + (1 - q) * self.mean_size + q * most * m - most
        slope, with_item, without = 1 / m - q, q * most * (1 - m) - brings / m, -q * most * m
        held = slope**2 * self.SS + 2 * slope * with_item * self.S + with_item**2 * m
        lacking = q**2 * (self.variance - self.SS) + 2 * q * without * self.S + without**2 * (1 - m)
        error = np.sqrt(np.maximum(held + lacking, 0) / self.n)
        z = np.divide(excess, error, out=np.zeros_like(error), where=error > 0)
        return np.asarray(t.sf(z, np.maximum(self.n * m - 1, 1)))


def _moments(baskets: Baskets) -> _Moments:
    share, sizes = baskets.weights / baskets.total_weight, baskets.sizes
    mean_size, n = float(share @ sizes), effective_number(baskets.weights)
    away = np.asarray(sizes - mean_size, float)

    def per_item(values: Floats) -> Floats:
        return np.asarray(np.bincount(baskets.indices, np.repeat(share * values, sizes), baskets.n_items), float)

    m = per_item(np.ones(len(sizes)))
    rows = np.bincount(baskets.indices, minlength=baskets.n_items)
    judged = (n * m > 1.5) & (rows < len(sizes))
    columns = (m, per_item(away), per_item(away**2))
    return _Moments(n, mean_size, float(share @ away**2), *(column[judged] for column in columns))


def _told(p: Floats, level: float) -> Bools:
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p) <= level) if len(p) else np.zeros(0, bool)


def _size_ratio(baskets: Baskets, n: float) -> tuple[float, float]:
    share, sizes = baskets.weights / baskets.total_weight, baskets.sizes
    mean = float(share @ sizes)
    if not mean:
        return float("nan"), float("nan")
    away = sizes - mean
    ratio = float(share @ away**2) / mean
    moves = away**2 / mean - ratio - ratio / mean * away  # what a basket adds to it, to first order
    return ratio, float(np.sqrt(share @ moves**2 / n))
