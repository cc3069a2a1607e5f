"""Explanations: which items of a basket make another item more or less likely, and by which factor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, isnan
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import Part, Result, TextTable, briefly, chance, share

MAX_EXACT = 10  # items of a basket up to which all 2^10 subsets are evaluated
N_ORDERS = 50  # random orders for larger baskets


class Influence(NamedTuple):
    """An item of the basket, and the factors by which it multiplies the candidate's probability and score.

    Examples
    --------
    >>> why = Influence("crib", factor=0.5, score_factor=0.2)
    >>> f"given a {why.item}, the probability is multiplied by {why.factor}"
    'given a crib, the probability is multiplied by 0.5'
    """

    item: Label
    factor: float
    score_factor: float


@dataclass(frozen=True)
class Explanation(Result):
    """The effect of a basket on a candidate: alone · Π factors = given, and the same for scores.

    The factors are exp of the Shapley values [Shapley53] of the logarithms: the change when the items of the basket
    are added one after another, averaged over all orders. In a DPP no factor is above 1. Scores are NaN if the empty
    set has probability zero, because the ratio to it does not exist.

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        values = {"candidate": self.item, **vars(self), "influences": [each._asdict() for each in self.influences]}
        values.pop("item")
        return values

    def tables(self) -> Iterator[Part]:
        """Yield the factors between the probability alone and given the basket."""
        rows = [("alone", chance(self.alone), chance(self.score_alone))]
        rows += [(f"× {each.item}", chance(each.factor), chance(each.score_factor)) for each in self.influences]
        rows += [("given the basket", chance(self.given), chance(self.score))]
        meaning = (
            f"Given this basket it is {self.given / self.alone:.3g} times as likely: {share(self.given, 1)} of the "
            f"sets with the basket contain it, and {share(self.alone, 1)} of all sets."
        )
        columns = ["", "probability>", "score>"]
        yield TextTable(f"{briefly([self.item])}: effect of the basket", meaning, columns, rows)
        yield (
            "score: P(basket with it) / P(basket), - if that is zero. Factors are Shapley values: above 1 the item is "
            "a complement of the candidate, below 1 a substitute."
        )
        if self.n_orders is not None:
            yield f"Means over {self.n_orders} random orders; relative standard error {share(self.error, 1)}."


def explanation(
    distribution: SetDistribution,
    catalogue: Catalogue,
    basket: Ints,
    item: int,
    n_orders: int = N_ORDERS,
    rng: Seed = 0,
) -> Explanation:
    """Return Shapley values, exact up to MAX_EXACT items, else averages over random orders and their reverses."""
    n_pairs = whole_number("n_orders", n_orders, 4) // 2
    if item in basket:
        raise InputError(f"item {catalogue.labels[item]!r} is in the basket already; explain an item to be added")
    if not distribution.marginals()[item] > 0:
        raise InputError(f"item {catalogue.labels[item]!r} has probability zero under this model, with any basket")
    (alone, score_alone), (given, score) = np.exp(_log_values(distribution, [basket[:0], basket], item)).tolist()
    if isnan(given):
        raise InputError(IMPOSSIBLE)
    exact = len(basket) <= MAX_EXACT
    shapley, error = _exact(distribution, basket, item) if exact else _sampled(distribution, basket, item, n_pairs, rng)
    strongest = np.argsort(-np.abs(shapley[:, 0]), kind="stable")
    factors = np.exp(shapley).tolist()
    return Explanation(
        catalogue.labels[item],
        alone,
        given,
        score_alone,
        score,
        influences=tuple(Influence(catalogue.labels[basket[j]], *factors[j]) for j in strongest),
        n_orders=None if exact else 2 * n_pairs,
        error=error,
    )


def _log_values(distribution: SetDistribution, parts: Sequence[Ints], item: int) -> Floats:
    """Return the logs of the probability and of the score of the item given each part of the basket, (n_parts, 2)."""
    sets = sets_of(parts, distribution.n_items)
    score, probability = distribution.next_items(sets, np.full((len(parts), 1), item))
    with np.errstate(divide="ignore"):
        return np.log(np.column_stack([probability, score]))


def _exact(distribution: SetDistribution, basket: Ints, item: int) -> tuple[Floats, float]:
    """Σ over the parts S without j of (v(S ∪ j) − v(S)) / (k C(k − 1, |S|)), k the size of the basket; no error."""
    k = len(basket)
    parts = np.arange(2**k)
    members = (parts[:, None] >> np.arange(k)) & 1 == 1  # (2^k, k)
    values = _log_values(distribution, [basket[chosen] for chosen in members], item)
    weight = 1 / np.array([k * comb(k - 1, size) for size in range(k)])
    shapley = np.empty((k, 2))
    for j in range(k):
        without = parts[~members[:, j]]
        steps = _steps(values[without], values[without | 1 << j])
        shapley[j] = weight[members[without].sum(axis=1)] @ steps
    return shapley, 0.0


def _sampled(distribution: SetDistribution, basket: Ints, item: int, n_pairs: int, seed: Seed) -> tuple[Floats, float]:
    """Return the average over pairs of a random order and its reverse, and the largest standard error."""
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(len(basket)) for _ in range(n_pairs)])
    orders = np.concatenate([orders, orders[:, ::-1]])
    score, probability = distribution.next_item_along(basket, orders, item)
    with np.errstate(divide="ignore"):
        values = np.log(np.stack([probability, score], axis=2))  # (2 n_pairs, n_basket + 1, 2)
    steps = np.empty((len(orders), len(basket), 2))
    np.put_along_axis(steps, orders[:, :, None], _steps(values[:, :-1], values[:, 1:]), axis=1)
    pairs = (steps[:n_pairs] + steps[n_pairs:]) / 2
    with np.errstate(invalid="ignore"):  # no spread exists if a value is −inf
        spread = pairs[:, :, 0].std(axis=0, ddof=1).max()
    return pairs.mean(axis=0), float(spread / np.sqrt(n_pairs))


def _steps(before: Floats, after: Floats) -> Floats:
    """Return after − before, and 0 where `before` is −inf: an impossible event cannot become less likely."""
    gone = np.isneginf(before)
    return np.where(gone, 0, after - np.where(gone, 0, before))
