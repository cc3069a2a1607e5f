"""What a mixture by weights says once some items are known to be in, or out: each of its laws says its own, and how
likely each law is says what that counts."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.kernels.interface import Law
from dpplearn.kernels.weighted.kernel import WeightedKernel

IMPOSSIBLE = "under every law of this mixture that has probability zero, so nothing follows from it"

SMALLEST = float(np.finfo(float).tiny)  # below, numbers lose their digits


def conditioned(kernel: WeightedKernel, include: Ints, exclude: Ints) -> tuple[WeightedKernel, Ints]:
    """The law of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain.

    Laws under which that is impossible are left out; the others get the weights w_c P_c(A ⊆ Y, B ∩ Y = ∅).
    """
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    likely = _shares(kernel, [_log_event(law, include, exclude) for law in kernel.laws])
    kept = np.flatnonzero(likely)
    laws = tuple(kernel.laws[c].given(include, exclude)[0] for c in kept)
    return WeightedKernel(likely[kept], laws), remaining


def _log_event(law: Law, include: Ints, exclude: Ints) -> float:
    """P(A ⊆ Y, B ∩ Y = ∅) = P(A ⊆ Y) · P(B ∩ Y = ∅ given A ⊆ Y)."""
    inside = _log_inclusion(law, include)
    if inside == -np.inf or not len(exclude):
        return inside
    if len(include):
        law, remaining = law.given(include, NO_ITEMS)
        exclude = np.searchsorted(remaining, exclude)
    return inside + law.restricted(exclude).log_empty()


def _log_inclusion(law: Law, items: Ints) -> float:
    """log P(A ⊆ Y). What is too small for a number goes by halves: P(A₁ ⊆ Y) · P(A₂ ⊆ Y given A₁ ⊆ Y)."""
    found = law.inclusion(items) if len(items) else 1.0
    if found > SMALLEST:
        return float(np.log(found))
    half = len(items) // 2
    first = _log_inclusion(law, items[:half]) if half else -np.inf
    if first == -np.inf:
        return -np.inf
    rest, remaining = law.given(items[:half], NO_ITEMS)
    return first + _log_inclusion(rest, np.searchsorted(remaining, items[half:]))


def restricted(kernel: WeightedKernel, items: Ints) -> WeightedKernel:
    """The law of Y ∩ S."""
    return WeightedKernel(kernel.weights, tuple(law.restricted(items) for law in kernel.laws))


def segment_probabilities(kernel: WeightedKernel, basket: Ints) -> Floats:
    """How likely each law is given that Y holds all of the basket."""
    return _shares(kernel, [_log_inclusion(law, basket) for law in kernel.laws])


def next_item(kernel: WeightedKernel, basket: Ints) -> tuple[Floats, Floats]:
    """For every item i the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A.

    Both are averages of what the laws say: the score by how likely each is given Y = A, the probability by how likely
    it is given A ⊆ Y. A law that has Y ⊋ A alone adds P_c(A ∪ i)/P(A).
    """
    likely = segment_probabilities(kernel, basket)
    alone = kernel.log_weights + [law.log_probabilities(_sets([basket], kernel.n_items))[0] for law in kernel.laws]
    total = np.logaddexp.reduce(alone)
    score, probability = np.zeros((2, kernel.n_items))
    for c in np.flatnonzero(likely):
        by_law, chance = kernel.laws[c].next_item(basket)
        probability += likely[c] * chance
        if alone[c] > -np.inf:
            score += np.exp(alone[c] - total) * by_law
        elif total > -np.inf:
            score += np.exp(kernel.log_weights[c] + _with_one_more(kernel.laws[c], basket) - total)
    return (score if total > -np.inf else np.full(kernel.n_items, np.nan)), probability


def _with_one_more(law: Law, basket: Ints) -> Floats:
    """log P(A ∪ i) of every item i that is not in A; −inf of the others."""
    others = np.setdiff1d(np.arange(law.n_items), basket)
    found = np.full(law.n_items, -np.inf)
    found[others] = law.log_probabilities(_sets([np.append(basket, item) for item in others], law.n_items))
    return found


def _sets(sets: list[Ints], n_items: int) -> Baskets:
    return Baskets.from_lists([each.tolist() for each in sets], n_items=n_items)


def _shares(kernel: WeightedKernel, log_probabilities: list[float]) -> Floats:
    """How likely each law is given what has these probabilities under them."""
    log_shares = kernel.log_weights + log_probabilities
    if not log_shares.max() > -np.inf:
        raise InputError(IMPOSSIBLE)
    shares = np.exp(log_shares - log_shares.max())
    return np.asarray(shares / shares.sum())
