"""Pairs of items under a model: lift, substitutes, complements and groups of substitutes.

The lift of a pair is P(i, j ∈ Y) divided by its value expected under independence, s m_i m_j (see `data.pairs`). How
far the empty set is excluded follows from P(∅) of the model: symmetric DPPs learned from nonempty baskets reduce P(∅) a
little by repelling all items, and that part of the repulsion belongs to no pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.data.pairs import Cooccurrence, Pair, PairCounts, PairTests, count_tests, independence_scale, significant
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import Relation
from dpplearn.models.record import Training

if TYPE_CHECKING:
    from dpplearn.models.model import SetModel

FULL_EMPTY_RATIO = 0.25  # P(∅) relative to independent items, above which the empty set counts as not excluded
LIFT_ROUNDING = 1e-10  # lifts closer to 1 are rounding
MANY_ITEMS = 2000  # beyond, related items are ordered by the interval of the lift
MIN_COUNT_OF_MANY = 3  # co-occurrences of complements in such catalogues
MAX_PAIRED_ITEMS = 5000  # items for which all pairs are computed, 200 MB
MAX_LOOKED_UP = 1000  # pairs of a large catalogue whose lift under the model is computed, the most certain ones
MIN_SUBSTITUTION = 0.4  # within groups; on registries this gives the types of product, such as monitors


def empty_ratio(distribution: SetDistribution) -> float:
    """Return P(∅) relative to independent items: 1 if the empty set is not excluded, 0 if it is impossible."""
    none = FULL_EMPTY_RATIO * float(np.prod(1 - distribution.marginals()))
    return 1.0 if distribution.p_empty >= none else distribution.p_empty / none


def pair_table(distribution: SetDistribution, rows: Ints | None = None, columns: Ints | None = None) -> Cooccurrence:
    """Return P(i, j ∈ Y) for items in rows with items in columns, by default all, and its value under independence.

    The lift of an item with itself is 1.
    """
    n, m = distribution.n_items, distribution.marginals()
    if rows is None and n > MAX_PAIRED_ITEMS:
        raise InputError(
            f"lift of all pairs is limited to {MAX_PAIRED_ITEMS:,} items, got {n:,}; use substitutes(item)"
        )
    rows, columns = (np.arange(n) if each is None else each for each in (rows, columns))
    expected = independence_scale(m, empty_ratio(distribution)) * np.outer(m[rows], m[columns])
    both = distribution.pair_marginals(rows, columns)
    return Cooccurrence(np.where(rows[:, None] == columns, expected, both), expected)


def training_counts(
    distribution: SetDistribution, training: Training | None, rows: Ints, columns: Ints
) -> Cooccurrence:
    """Return the counts of the training baskets for pairs of items in rows with items in columns."""
    if training is None:
        unknown = np.full((len(rows), len(columns)), np.nan)
        return Cooccurrence(unknown, unknown)
    scale = independence_scale(training.frequencies, empty_ratio(distribution))
    expected = scale * np.outer(training.item_weights[rows], training.frequencies[columns])
    observed = training.pair_counts_among(rows, columns)
    return Cooccurrence(observed, expected, max(training.least - 1, 0.0))


def significant_pairs(model: SetModel, items: Ints) -> Bools:
    """Return which pairs of some items are significant in the training baskets, (n, n); all if there are no counts."""
    pairs, square = np.triu_indices(len(items), 1), np.zeros((len(items), len(items)), bool)
    square[pairs] = significant(training_counts(model.distribution, model.training, items, items).p()[pairs])
    return np.asarray(square | square.T)


def related_items(model: SetModel, item: Label, k: int, *, above: bool, level: float | None) -> list[Relation]:
    """Return the k items with the lowest lift, or the highest if `above`, that are significant in the training data."""
    k, row, every = whole_number("k", k, 0), np.array([model.catalogue.position(item)]), np.arange(len(model.items))
    if not model.marginals()[row[0]] > 0:
        raise InputError(f"item {item!r} has probability zero under this model")
    counts = training_counts(model.distribution, model.training, row, every)
    table = pair_table(model.distribution, row, every)
    columns = np.concatenate([table.lift, counts.observed, counts.expected, *counts.interval(), counts.p()])
    lift, observed, expected, low, high, p = columns
    sign = 1 if above else -1
    order = sign * lift
    chosen = order - sign > LIFT_ROUNDING
    if level is not None:
        chosen &= significant(np.where(every == row, 1.0, p), level, len(every) - 1)
        chosen &= ~(sign * (observed - expected) <= 0)
    if len(lift) > MANY_ITEMS and model.training is not None:
        order = np.minimum(order, sign * (low if above else high))
        chosen &= (order > sign) & (observed >= (MIN_COUNT_OF_MANY if above else 0))
    others = np.flatnonzero(chosen)
    best = others[np.argsort(-order[others], kind="stable")][:k]
    return [Relation(model.items[j], *columns[:, j].tolist()) for j in best]


class RelatedPairs(NamedTuple):
    """The most certain pairs come first."""

    substitutes: list[Pair]
    complements: list[Pair]


def related_pairs(model: SetModel, k: int = 10) -> RelatedPairs:
    """Return the most certain substitutes and complements of a model.

    A pair must be significant in the training baskets, and the model must agree on the direction. Pairs are ordered by
    the end of the interval that is nearer to 1, or by the lift under the model if that is nearer. Without training
    counts, by the lift alone. In catalogues of more than 2,000 items, complements must have co-occurred in three
    baskets, and the 1,000 pairs of each kind that are most certain in the training baskets are considered.

    Parameters
    ----------
    model : SetModel
    k : int, default 10
        Maximum number of pairs of each kind.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["tea", "milk"], ["tea", "milk"], ["beer"], ["beer", "nuts"], ["tea"], ["nuts"]] * 30
    >>> found = related_pairs(dl.fit(baskets, segments=2, rng=0).model)
    >>> [sorted((pair.first, pair.second)) for pair in found.complements]
    [['milk', 'tea'], ['beer', 'nuts']]
    """
    k, training = whole_number("k", k, 0), model.training
    if training is None:
        pairs = np.column_stack(np.triu_indices(len(model.items), 1))
        unknown = np.full(len(pairs), np.nan)
        tests = PairTests(pairs, Cooccurrence(unknown, unknown), np.isnan(unknown), len(pairs))
    else:
        scale = independence_scale(training.frequencies, empty_ratio(model.distribution))
        counts = PairCounts(training.pairs, training.pair_weights, training.least)
        tests = count_tests(training.item_weights, training.weight, counts, scale)
    return RelatedPairs(*(_most_certain(model, tests, k, above=above) for above in (False, True)))


def _most_certain(model: SetModel, tests: PairTests, k: int, *, above: bool) -> list[Pair]:
    rows = np.arange(len(tests.pairs)) if model.training is None else tests.most_certain(above)
    if model.training is not None and len(model.items) > MANY_ITEMS:
        rows = rows[tests.counts.observed[rows] >= (MIN_COUNT_OF_MANY if above else 0)][:MAX_LOOKED_UP]
    first, second = tests.pairs[rows].T
    lift = _lifts(model, first, second)
    low, high = tests.counts.take(rows).interval()  # NaN without counts
    certain = np.fmin(lift, low) if above else -np.fmax(lift, high)
    best = np.lexsort((second, first, -certain))
    best = best[certain[best] - (1 if above else -1) > LIFT_ROUNDING][:k]
    return tests.records(rows[best], model.items, lift[best])


def _lifts(model: SetModel, first: Ints, second: Ints) -> Floats:
    """Return the lift of each pair, (n_pairs,)."""
    if model.training is None or len(model.items) <= MANY_ITEMS:
        return np.asarray(model.lift[first, second])
    m = model.marginals()
    both = np.exp(model.distribution.log_inclusion(sets_of(list(np.column_stack([first, second])), len(m))))
    scale = independence_scale(m, empty_ratio(model.distribution))
    return np.asarray(both / (scale * m[first] * m[second]))


class SubstituteGroup(NamedTuple):
    """Items that are substitutes for each other, the most likely first."""

    items: tuple[Label, ...]
    substitution: float  # mean over pairs of 1 − lift
    missing: float  # co-occurrences per set expected under independence, minus those of the model
    observed: float  # training baskets with a pair, summed over pairs; NaN if unknown
    expected: float  # the same under independence


def substitute_groups(model: SetModel, at_least: float = MIN_SUBSTITUTION) -> tuple[SubstituteGroup, ...]:
    """Group items that are substitutes for each other, by average linkage on the substitution 1 − lift.

    Intended for symmetric DPPs. In a mixture, the lift of two items is also low if different segments buy them, and
    that does not make them substitutes.

    Parameters
    ----------
    model : SetModel
        At most 5,000 items.
    at_least : float, default 0.4
        Two groups are merged while their mean substitution is at least this. Above 0, at most 1.

    Returns
    -------
    tuple of SubstituteGroup
        The group with the most missing co-occurrences comes first.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4, 0], [0.4, 0.5, 0], [0, 0, 0.5]], ["cot", "crib", "bib"])
    >>> [sorted(group.items) for group in substitute_groups(dpp)]
    [['cot', 'crib']]
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if not 0 < at_least <= 1:
        raise InputError(f"at_least must be above 0 and at most 1, got {at_least}")
    table, p = pair_table(model.distribution), model.marginals()
    substitution, possible = 1 - table.lift, np.flatnonzero(p > 0)
    if len(possible) < 2:
        return ()
    distance = squareform(1 - substitution[np.ix_(possible, possible)], checks=False)
    label = fcluster(linkage(distance, "average"), 1 - at_least, "distance")
    weight = model.training.weight if model.training is not None else np.nan
    groups = []
    for number in np.flatnonzero(np.bincount(label) > 1):
        members = possible[label == number]
        members = members[np.argsort(-p[members], kind="stable")]
        pairs = np.triu_indices(len(members), 1)
        first, second = members[pairs[0]], members[pairs[1]]
        expected = table.expected[first, second].sum()
        counts = training_counts(model.distribution, model.training, members, members)
        substitutes, missing = substitution[first, second].mean(), expected - table.observed[first, second].sum()
        numbers = map(float, (substitutes, missing, counts.observed[pairs].sum(), expected * weight))
        groups.append(SubstituteGroup(model.catalogue.select(members), *numbers))
    return tuple(sorted(groups, key=lambda group: -group.missing))
