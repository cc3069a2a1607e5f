"""Pairs of items that go together, or stand in for each other, under a mixture: by lift, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.errors import whole_number
from dpplearn.models.mixture import Mixture, lift_interval


class RelatedPair(NamedTuple):
    """Two items and the lift P(i, j)/(P(i) P(j)); the others as in `Relation`."""

    first: Label
    second: Label
    lift: float
    met: float
    expected: float
    low: float
    high: float


class RelatedPairs(NamedTuple):
    """Of all items, the surest first."""

    substitutes: list[RelatedPair]
    complements: list[RelatedPair]


def related_pairs(model: Mixture, k: int = 10) -> RelatedPairs:
    """The pairs that most surely stand in for each other, and those that most surely go together.

    What is sure is the end of the interval that is nearer to 1, or the lift where that is nearer still. A pair whose
    interval holds 1, or lies on the other side of 1 than the lift, is left out. Where the training data are not known,
    the lift alone counts.

    Parameters
    ----------
    model
        A mixture.
    k
        How many pairs of each kind at most.

    Returns
    -------
    RelatedPairs
        `substitutes` and `complements`.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["tea", "milk"], ["tea", "milk"], ["beer"], ["beer", "nuts"], ["tea"], ["nuts"]] * 30
    >>> found = related_pairs(dl.fit(baskets, segments=2, rng=0).model)
    >>> [sorted((pair.first, pair.second)) for pair in found.complements]
    [['milk', 'tea'], ['beer', 'nuts']]
    """
    k, figures = whole_number("k", k, 0), _figures(model)
    below, above = _sure(model, *figures[2:])
    return RelatedPairs(
        [_pair(model, figures, i, j) for i, j in _strongest(below, k)],
        [_pair(model, figures, i, j) for i, j in _strongest(above, k)],
    )


def surely_apart(model: Mixture) -> Floats:
    """By how much the lift of every two items is surely below 1; 0 where it is not."""
    return _sure(model, *_figures(model)[2:])[0]


def _sure(model: Mixture, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """By how much lifts are surely below 1, and above it."""
    return np.maximum(1 - np.fmax(model.lift, high), 0), np.maximum(np.fmin(model.lift, low) - 1, 0)


def _figures(model: Mixture) -> tuple[Floats, ...]:
    """Of every two items: how often they met, would by chance, and the interval; NaN where that is not known."""
    n, training = len(model.items), model.training
    if training is None:
        return tuple(np.full((n, n), np.nan) for _ in range(4))
    met = training.pair_frequencies() * training.weight
    expected = np.outer(training.item_weights, training.frequencies)
    low, high = lift_interval(met, expected)
    return met, expected, low, high


def _strongest(strength: Floats, k: int) -> list[tuple[int, int]]:
    upper = np.triu(strength, 1)
    order: Ints = np.argsort(-upper, axis=None, kind="stable")[:k]
    rows, columns = np.unravel_index(order, upper.shape)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if upper[i, j] > 0]


def _pair(model: Mixture, figures: tuple[Floats, ...], i: int, j: int) -> RelatedPair:
    values = [float(each[i, j]) for each in (model.lift, *figures)]
    return RelatedPair(model.items[i], model.items[j], *values)
