"""Independent items: the yardstick of every model, and what chance alone would bring."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.kernels.symmetric.kernel import Kernel

RAREST = 1e-6  # the least share of sets that are not empty
CONVERGED = 1e-12  # of Newton's method, on a share


def independent(baskets: Baskets, *, smoothing: float = 0.0, nonempty: bool = False) -> Kernel:
    """The model of independent items with the data's frequencies: a diagonal K. A yardstick, not a start."""
    p = chances(baskets.frequencies(), baskets.total_weight, smoothing=smoothing, nonempty=nonempty)
    return Kernel(p, np.eye(baskets.n_items))


def independent_log_likelihood(baskets: Baskets, *, nonempty: bool = False) -> float:
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
