"""Items that a law does not have yet: independent of all others, or like one that is there."""

from __future__ import annotations

import math

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.families import kernel_of, law_of
from dpplearn.kernels.interface import Law
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.symmetric.independence import ALIKE
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.weighted.kernel import WeightedKernel


def with_independent(law: Law, p: Floats) -> Law:
    """With further items at the end, independent of all others and of each other, of these chances from 0 to 1.

    Where something is said of the empty set, as that there is none, sets may now hold new items alone, as often as the
    law without that says. Given that they hold an item that was there before, nothing changes.
    """
    if isinstance(law, WithEmptyShare):
        return _emptied(law, with_independent(law.law, p))
    kernel = kernel_of(law)
    if isinstance(kernel, WeightedKernel):
        return law_of(WeightedKernel(kernel.weights, tuple(with_independent(each, p) for each in kernel.laws)))
    if isinstance(kernel, Kernel):
        return law_of(Kernel(np.append(kernel.eigenvalues, p), _block(kernel.eigenvectors, np.eye(len(p)))))
    log_odds = np.hstack([kernel.log_odds, np.tile(np.log(p) - np.log1p(-p), (kernel.n_segments, 1))])
    if isinstance(kernel, FactoredKernel):
        factors = np.vstack([kernel.factors, np.zeros((len(p), kernel.n_columns), kernel.factors.dtype)])
        return law_of(FactoredKernel(kernel.weights, log_odds, factors, kernel.coupling))
    interaction = np.array([_block(each, np.eye(len(p))) for each in kernel.interaction])
    return law_of(MixtureKernel(kernel.weights, log_odds, interaction))


def with_copy(law: Law, item: int) -> Law:
    """With one item more at the end, which is to all others as the named one is, and as likely as that.

    What the item has of its own, the copy has of its own as well: of L, the part that no others explain; of a mixture,
    the 1 in C = I + U Uᵀ + A. The two repel each other by what both share with others, and are independent where the
    item is independent of all others.
    """
    if isinstance(law, WithEmptyShare):
        return _emptied(law, with_copy(law.law, item))
    kernel = kernel_of(law)
    if isinstance(kernel, WeightedKernel):
        return law_of(WeightedKernel(kernel.weights, tuple(with_copy(each, item) for each in kernel.laws)))
    if isinstance(kernel, Kernel):
        return law_of(_symmetric_copy(kernel, item))
    log_odds = np.hstack([kernel.log_odds, kernel.log_odds[:, [item]]])
    if isinstance(kernel, FactoredKernel):
        factors = np.vstack([kernel.factors, kernel.factors[[item]]])
        return law_of(FactoredKernel(kernel.weights, log_odds, factors, kernel.coupling))
    places = np.append(np.arange(kernel.n_items), item)
    shared = kernel.interaction - np.eye(kernel.n_items)  # U Uᵀ + A
    return law_of(
        MixtureKernel(kernel.weights, log_odds, shared[:, places[:, None], places] + np.eye(kernel.n_items + 1))
    )


def _symmetric_copy(kernel: Kernel, item: int) -> Kernel:
    """L = B Bᵀ; the row of the copy is what of the item's lies in the span of the others, and as much beside it."""
    if kernel.at_one.any():
        raise InputError(
            "some items are certain under this model (eigenvalues of K are 1), so that none can be copied; leave like "
            "out, or fit the model with shrinkage or given that sets are not empty"
        )
    B = kernel.eigenvectors * np.sqrt(kernel.odds)
    others = np.delete(B, item, axis=0)
    explained = others.T @ np.linalg.lstsq(others.T, B[item], rcond=ALIKE)[0]
    own = float(np.linalg.norm(B[item] - explained))
    if own <= ALIKE * float(np.linalg.norm(B[item])):
        own = 0.0
    return Kernel.from_factor(_row_added(B, explained, own))


def _row_added(B: Floats, row: Floats, own: float) -> Floats:
    """Of one row and one column more."""
    wider = np.hstack([B, np.zeros((len(B), 1))])
    return np.vstack([wider, np.append(row, own)])


def _block(one: Floats, other: Floats) -> Floats:
    """One matrix and another along a diagonal."""
    n = len(one)
    both = np.zeros((n + len(other), n + len(other)))
    both[:n, :n], both[n:, n:] = one, other
    return both


def _emptied(before: WithEmptyShare, law: Law) -> WithEmptyShare:
    """The share of the empty set falls as it does where nothing is said of it."""
    share = before.share * math.exp(law.log_empty() - before.law.log_empty()) if before.share else 0.0
    return WithEmptyShare(law, share)
