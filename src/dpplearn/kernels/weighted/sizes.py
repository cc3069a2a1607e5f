"""The law of |Y| under a mixture by weights."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.kernels.weighted.conditioning import IMPOSSIBLE
from dpplearn.kernels.weighted.kernel import WeightedKernel


def log_size_distribution(kernel: WeightedKernel) -> Floats:
    """log P(|Y| = k) for k = 0..N."""
    return np.asarray(np.logaddexp.reduce(_log_sizes(kernel), axis=0))


def shares_given_size(kernel: WeightedKernel, k: int) -> Floats:
    """How likely each law is given that |Y| = k."""
    log_shares = _log_sizes(kernel)[:, k]
    if not log_shares.max() > -np.inf:
        raise InputError(f"k is {k}: {IMPOSSIBLE}")
    shares = np.exp(log_shares - log_shares.max())
    return np.asarray(shares / shares.sum())


def inclusion_given_size(kernel: WeightedKernel, k: int) -> Floats:
    """P(i ∈ Y given |Y| = k) for every item."""
    shares = shares_given_size(kernel, k)
    return sum((shares[c] * kernel.laws[c].marginals(k) for c in np.flatnonzero(shares)), np.zeros(kernel.n_items))


def _log_sizes(kernel: WeightedKernel) -> Floats:
    return np.asarray(kernel.log_weights[:, None] + np.array([law.log_sizes() for law in kernel.laws]))
