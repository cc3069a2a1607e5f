"""Why a basket makes an item more or less likely: which of its items push it up or down, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, log
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.distributions.components import PlainSets
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.tools.words import likelier, shortened, shown, without_middle

NAME = 40  # columns of a name in a line
ALL_SUBSETS = 10  # items of a basket up to which every subset is looked at: 1024
N_ORDERS = 200  # random orders for larger ones

Values = Callable[[Sequence[Ints]], Floats]  # of parts of the basket: logs of the probability and of the score


class Influence(NamedTuple):
    """An item of the basket, and what it multiplies the candidate's probability and score by.

    Examples
    --------
    >>> why = Influence("crib", factor=0.5, score_factor=0.2)
    >>> f"beside a {why.item}, {why.factor:.0%} of its probability is left"
    'beside a crib, 50% of its probability is left'
    """

    item: Label
    factor: float
    score_factor: float


@dataclass(frozen=True)
class Explanation:
    """What a basket does to a candidate: alone · Π factors = given, and the same of the scores.

    The factors are exp of Shapley values [Shapley53] of the logarithms: what an item takes away when the items of
    the basket come in one after another, averaged over all orders. In a DPP none is above 1. Scores are NaN where the
    empty set has probability zero, so that no ratio to it exists.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
    >>> why = dpp.explain(["crib", "monitor"], "cot")
    >>> round(why.alone, 3), round(why.given, 3)
    (0.4, 0.22)
    >>> why.influences[0].item
    'crib'
    """

    item: Label
    alone: float  # P(i ∈ Y)
    given: float  # P(i ∈ Y given A ⊆ Y)
    score_alone: float  # P({i})/P(∅)
    score: float  # P(A ∪ i)/P(A)
    influences: tuple[Influence, ...]  # the strongest first
    n_orders: int | None = None  # random orders averaged over; None: all orders
    error: float = 0.0  # the largest standard error of a logarithm of a factor of the probability

    def __str__(self) -> str:
        lines = [
            f"{without_middle(shown(self.item), NAME)}: {in_words(self.given / self.alone)} beside this basket",
            f"  probability {self.alone:.4g} alone, {self.given:.4g} beside it",
        ]
        names = shortened([each.item for each in self.influences], NAME)
        lines += [f"  × {each.factor:.4f}  {name}" for each, name in zip(self.influences, names, strict=True)]
        if self.n_orders is not None:
            lines.append(f"  (averages over {self.n_orders} orders, within {100 * self.error:.2g}% or so)")
        return "\n".join(lines)


def in_words(factor: float) -> str:
    """What a factor makes an item.

    >>> in_words(0.55), in_words(0)
    ('0.55 times as likely', 'impossible')
    """
    return likelier(log(factor)) if factor > 0 else "impossible"


def explanation(
    distribution: SetDistribution,
    catalogue: Catalogue,
    basket: Ints,
    item: int,
    n_orders: int = N_ORDERS,
    rng: Seed = 0,
) -> Explanation:
    """Exact for baskets of up to ten items; for larger ones an average over random orders, each also reversed."""
    n_pairs = whole_number("n_orders", n_orders, 4) // 2
    if item in basket:
        raise InputError(f"item {catalogue.labels[item]!r} is in the basket already; explain an item to be added")
    if not distribution.marginals()[item] > 0:
        raise InputError(f"item {catalogue.labels[item]!r} has probability zero under this model, with any basket")
    if distribution.log_inclusion(PlainSets.of([basket], distribution.n_items))[0] == -np.inf:
        raise InputError(IMPOSSIBLE)
    values = _values(distribution, item)
    if len(basket) <= ALL_SUBSETS:
        shapley, error = _exact(values, basket), np.zeros(2)
    else:
        shapley, error = _sampled(values, basket, n_pairs, np.random.default_rng(rng))
    factors = np.exp(shapley)  # (n_basket, 2)
    alone, given = np.exp(values([basket[:0], basket]))
    strongest = np.argsort(-np.abs(shapley[:, 0]), kind="stable")
    return Explanation(
        item=catalogue.labels[item],
        alone=float(alone[0]),
        given=float(given[0]),
        score_alone=float(alone[1]),
        score=float(given[1]),
        influences=tuple(Influence(catalogue.labels[basket[j]], *factors[j].tolist()) for j in strongest),
        n_orders=None if len(basket) <= ALL_SUBSETS else 2 * n_pairs,
        error=float(error[0]),
    )


def _values(distribution: SetDistribution, item: int) -> Values:
    def values(parts: Sequence[Ints]) -> Floats:
        sets = PlainSets.of(parts, distribution.n_items)
        score, probability = distribution.next_items(sets, np.array([item]))
        with np.errstate(divide="ignore"):
            return np.log(np.column_stack([probability, score]))

    return values


def _exact(values_of: Values, basket: Ints) -> Floats:
    """Σ over the parts S without j of (v(S ∪ j) − v(S)) / (k C(k − 1, |S|)), k the size of the basket."""
    k = len(basket)
    parts = np.arange(2**k)
    members = (parts[:, None] >> np.arange(k)) & 1 == 1  # (2^k, k)
    values = values_of([basket[chosen] for chosen in members])  # (2^k, 2)
    weight = 1 / np.array([k * comb(k - 1, size) for size in range(k)])
    shapley = np.empty((k, 2))
    for j in range(k):
        without = parts[~members[:, j]]
        steps = _steps(values[without], values[without | 1 << j])
        shapley[j] = (weight[members[without].sum(axis=1)][:, None] * steps).sum(axis=0)
    return shapley


def _sampled(values_of: Values, basket: Ints, n_pairs: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The average over pairs of a random order and its reverse, and the largest standard error."""
    orders = np.array([rng.permutation(len(basket)) for _ in range(n_pairs)])
    forth, back = _along(values_of, basket, orders), _along(values_of, basket, orders[:, ::-1])
    both_ways = (forth + back) / 2
    with np.errstate(invalid="ignore"):  # of −inf no spread exists
        spread = both_ways.std(axis=0, ddof=1).max(axis=0)
    return both_ways.mean(axis=0), spread / np.sqrt(n_pairs)


def _along(values_of: Values, basket: Ints, orders: Ints) -> Floats:
    """What each item takes away or adds when they come in in each of these orders, (n_orders, n_basket, 2)."""
    n, k = orders.shape
    parts = [basket[order[:size]] for order in orders for size in range(k + 1)]
    values = values_of(parts).reshape(n, k + 1, 2)
    steps = np.empty((n, k, 2))
    np.put_along_axis(steps, orders[:, :, None], _steps(values[:, :-1], values[:, 1:]), axis=1)
    return steps


def _steps(before: Floats, after: Floats) -> Floats:
    """after − before; of what is impossible already nothing more is taken."""
    gone = np.isneginf(before)
    return np.where(gone, 0, after - np.where(gone, 0, before))
