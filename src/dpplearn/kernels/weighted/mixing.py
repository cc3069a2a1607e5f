"""Laws of any kind as one by weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.interface import Law
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.kernels.weighted.law import WeightedLaw


def mixed(laws: Sequence[Law], weights: Floats) -> Law:
    """Σ_c w_c P_c, of laws that say nothing of the empty set themselves: what is known of that is said once for all.

    P_c(Y) is (1 − s_c)/(1 − P⁰_c(∅)) P⁰_c(Y) for sets that are not empty, s_c the share of the empty set and P⁰ the law
    before anything was said of it: that factor goes into the weight. Mixtures by weights become their parts.
    """
    plain = [law.law if isinstance(law, WithEmptyShare) else law for law in laws]
    scale = np.array([law.scale if isinstance(law, WithEmptyShare) else 1.0 for law in laws])
    parts: list[Law] = []
    shares: list[float] = []
    for law, share in zip(plain, weights * scale / (weights @ scale), strict=True):
        inside = law.kernel if isinstance(law, WeightedLaw) else WeightedKernel(np.ones(1), (law,))
        parts += inside.laws
        shares += (share * inside.weights).tolist()
    law = WeightedLaw(WeightedKernel(np.array(shares), tuple(parts)))
    if not any(isinstance(each, WithEmptyShare) for each in laws):
        return law
    return WithEmptyShare(law, float(weights @ np.exp([each.log_empty() for each in laws])))
