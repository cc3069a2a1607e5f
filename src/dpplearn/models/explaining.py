"""Explanations: which items of a basket make another item more or less likely, and by which factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb, isnan, log
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import Part, TextTable, as_text, briefly, chance, share, times_as_likely

MAX_EXACT = 10  # items of a basket up to which all 2^10 subsets are evaluated
N_ORDERS = 50  # random orders for larger baskets

Values = Callable[[Sequence[Ints]], Floats]  # of parts of the basket: logs of the probability and of the score


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
class Explanation:
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
        return {
            "candidate": self.item,
            "alone": self.alone,
            "given": self.given,
            "score_alone": self.score_alone,
            "score": self.score,
            "influences": [each._asdict() for each in self.influences],
            "n_orders": self.n_orders,
            "error": self.error,
        }

    def tables(self) -> Iterator[Part]:
        """Yield the factors between the probability alone and given the basket."""
        rows = [("alone", chance(self.alone), chance(self.score_alone))]
        rows += [(f"× {each.item}", chance(each.factor), chance(each.score_factor)) for each in self.influences]
        rows += [("given the basket", chance(self.given), chance(self.score))]
        meaning = (
            f"Given this basket it is {in_words(self.given / self.alone)}: {share(self.given, 1)} of the sets with the "
            f"basket contain it, and {share(self.alone, 1)} of all sets."
        )
        columns = ["", "probability>", "score>"]
        yield TextTable(f"{briefly([self.item])}: effect of the basket", meaning, columns, rows)
        yield (
            "score: P(basket with it) / P(basket). Factors are Shapley values: above 1 the item is a complement of the "
            "candidate, below 1 a substitute."
        )
        if isnan(self.score_alone):
            yield "There are no scores alone, because the empty set has probability zero."
        if self.n_orders is not None:
            yield f"Means over {self.n_orders} random orders; relative standard error {share(self.error, 1)}."

    def __str__(self) -> str:
        return as_text(self.tables())


def in_words(factor: float) -> str:
    """Return a factor in words.

    >>> in_words(0.55), in_words(0)
    ('0.55 times as likely', 'impossible')
    """
    return times_as_likely(log(factor)) if factor > 0 else "impossible"


def explanation(
    distribution: SetDistribution,
    catalogue: Catalogue,
    basket: Ints,
    item: int,
    n_orders: int = N_ORDERS,
    rng: Seed = 0,
    max_exact: int = MAX_EXACT,
) -> Explanation:
    """Return Shapley values, exact up to `max_exact` items, else averages over random orders and their reverses."""
    n_pairs = whole_number("n_orders", n_orders, 4) // 2
    if item in basket:
        raise InputError(f"item {catalogue.labels[item]!r} is in the basket already; explain an item to be added")
    if not distribution.marginals()[item] > 0:
        raise InputError(f"item {catalogue.labels[item]!r} has probability zero under this model, with any basket")
    values = _values(distribution, item)
    alone, given = np.exp(values([basket[:0], basket]))
    if isnan(given[0]):
        raise InputError(IMPOSSIBLE)
    if len(basket) <= max_exact:
        shapley, error = _exact(values, basket), np.zeros(2)
    else:
        shapley, error = _sampled(values, basket, n_pairs, np.random.default_rng(rng))
    factors = np.exp(shapley)  # (n_basket, 2)
    strongest = np.argsort(-np.abs(shapley[:, 0]), kind="stable")
    return Explanation(
        item=catalogue.labels[item],
        alone=float(alone[0]),
        given=float(given[0]),
        score_alone=float(alone[1]),
        score=float(given[1]),
        influences=tuple(Influence(catalogue.labels[basket[j]], *factors[j].tolist()) for j in strongest),
        n_orders=None if len(basket) <= max_exact else 2 * n_pairs,
        error=float(error[0]),
    )


def _values(distribution: SetDistribution, item: int) -> Values:
    def values(parts: Sequence[Ints]) -> Floats:
        sets = sets_of(parts, distribution.n_items)
        score, probability = distribution.next_items(sets, np.full((len(sets), 1), item))
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
    """Return the average over pairs of a random order and its reverse, and the largest standard error."""
    orders = np.array([rng.permutation(len(basket)) for _ in range(n_pairs)])
    orders = np.concatenate([orders, orders[:, ::-1]])
    prefixes = [basket[order[:size]] for order in orders for size in range(len(basket) + 1)]
    values = values_of(prefixes).reshape(len(orders), -1, 2)
    steps = np.empty((len(orders), len(basket), 2))
    np.put_along_axis(steps, orders[:, :, None], _steps(values[:, :-1], values[:, 1:]), axis=1)
    pairs = (steps[:n_pairs] + steps[n_pairs:]) / 2
    with np.errstate(invalid="ignore"):  # no spread exists if a value is −inf
        spread = pairs.std(axis=0, ddof=1).max(axis=0)
    return pairs.mean(axis=0), spread / np.sqrt(n_pairs)


def _steps(before: Floats, after: Floats) -> Floats:
    """Return after − before, and 0 where `before` is −inf: an impossible event cannot become less likely."""
    gone = np.isneginf(before)
    return np.where(gone, 0, after - np.where(gone, 0, before))
