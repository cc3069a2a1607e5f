"""What a law says of some of its items, whatever the others do: as dense as these few are."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.interface import Law
from dpplearn.kernels.nonsymmetric.law import MixtureLaw


def pairs_among(law: Law, items: Ints) -> Floats:
    """P(i, j ∈ Y) of every two of some items; what stands on the diagonal means nothing."""
    if isinstance(law, WithEmptyShare):
        return law.scale * pairs_among(law.law, items)
    if not isinstance(law, FactoredLaw):
        return np.asarray(law.pairs()[np.ix_(items, items)])
    kernel, both = law.kernel, np.zeros((len(items), len(items)))
    Z, log_odds = kernel.factors[items].astype(float), kernel.log_odds[:, items].astype(float)
    for weight, marginal, T, each in zip(
        kernel.weights, kernel.marginals[:, items], kernel.cores, log_odds, strict=True
    ):
        p = 1 / (1 + np.exp(-each))
        K = (Z @ T @ Z.T) * np.sqrt(np.outer(p * (1 - p), p * (1 - p)))
        both += weight * (np.outer(marginal, marginal) - K * K.T)
    return both


def seen_of(law: Law, items: Ints) -> Law:
    """The law of Y ∩ S, dense."""
    return _dense(law.restricted(items))


def alone_with(law: Law, items: Ints) -> tuple[Law, Ints]:
    """The law of Y given that it holds none but some of these, dense; and the order in which it has them."""
    others = np.setdiff1d(np.arange(law.n_items), items)
    given, remaining = law.given(NO_ITEMS, others)
    return _dense(given), remaining


def _dense(law: Law) -> Law:
    if isinstance(law, WithEmptyShare):
        return WithEmptyShare(_dense(law.law), law.share)
    return MixtureLaw(law.kernel.dense()) if isinstance(law, FactoredLaw) else law
