"""Compare the variance of basket sizes with the bounds that every single DPP satisfies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import effective_number

NONSYMMETRIC_BOUND = 2.0  # Var|Y| ≤ 2 E|Y| for every DPP with L + Lᵀ positive semidefinite
SYMMETRIC_BOUND = 1.0  # Var|Y| ≤ E|Y| for every symmetric DPP


class Bounds(NamedTuple):
    """Variance of the basket size divided by its mean.

    The ratio is at most 2 for a single nonsymmetric DPP and at most 1 for a symmetric one. Both bounds also hold if the
    distribution is conditioned on the set not being empty. Data above a bound need segments.
    """

    size_ratio: float  # NaN if all baskets are empty
    standard_error: float

    @property
    def sizes_beyond(self) -> bool:
        """Whether the ratio exceeds the bound of a nonsymmetric DPP by more than two standard errors."""
        return self.size_ratio > NONSYMMETRIC_BOUND + 2 * self.standard_error

    @property
    def sizes_beyond_symmetric(self) -> bool:
        """Whether the ratio exceeds the bound of a symmetric DPP by more than two standard errors."""
        return self.size_ratio > SYMMETRIC_BOUND + 2 * self.standard_error


def bounds(baskets: Baskets) -> Bounds:
    """Return the weighted variance of the basket size divided by its mean, with a standard error.

    Parameters
    ----------
    baskets : Baskets
        At least one basket of positive weight.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> rich, poor = [["tea", "milk", "bread", "jam", "eggs"]] * 50, [[]] * 100 + [["tea"]] * 10
    >>> found = bounds(Baskets.from_lists([*rich, *poor]))
    >>> round(found.size_ratio, 1), found.sizes_beyond
    (3.2, True)
    """
    kept = baskets.subset(baskets.weights > 0)
    share, sizes = kept.weights / kept.total_weight, kept.sizes
    mean = float(share @ sizes)
    if not mean:
        return Bounds(float("nan"), float("nan"))
    deviation = sizes - mean
    ratio = float(share @ deviation**2) / mean
    influence = deviation**2 / mean - ratio - ratio / mean * deviation  # first-order effect of each basket
    return Bounds(ratio, float(np.sqrt(share @ influence**2 / effective_number(kept.weights))))
