"""Pairs of items that go together, or stand in for each other, under a mixture: by lift, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.errors import whole_number
from dpplearn.models.model import MANY_ITEMS, SetModel
from dpplearn.models.relations import (
    FDR_LEVEL,
    Evidence,
    benjamini_hochberg,
    evidence,
    missed,
    pair_table,
    significant_pairs,
)

SURE_OF_NONE = 2.99  # meetings by chance; of fewer, nothing can be told even where there was none
AT_ONCE = 500  # pairs of a large catalogue whose lifts are looked up together
MOST_LOOKED_UP = 5000  # of those that the baskets alone are surest of


class RelatedPair(NamedTuple):
    """Two items and the lift of their pair; all as in `Relation`."""

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


def related_pairs(model: SetModel, k: int = 10) -> RelatedPairs:
    """The pairs that most surely stand in for each other, and those that most surely go together.

    What is sure is the end of the interval that is nearer to 1, or the lift where that is nearer still. A pair that
    chance explains is left out: of the pairs given, at most one in twenty is there by mistake, all pairs allowed for
    [BH95]; and so is one whose interval lies on the other side of 1 than the lift. Where the training data are not
    known, the lift alone counts.

    Of more than 2,000 items, substitutes are looked for among the 2,000 most frequent ones, as others meet too seldom
    by chance to be missed; complements, among all pairs that met. Of either, the lifts of the 5,000 that the baskets
    alone are surest of are looked up at most.

    Parameters
    ----------
    model
        A DPP or a Mixture.
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
    k = whole_number("k", k, 0)
    frequent = _of_frequent(model)
    met = frequent if model.training is None else _that_met(model)
    return RelatedPairs(_surest(model, frequent, k, np.negative), _surest(model, met, k, np.positive))


def surely_apart(model: SetModel) -> Floats:
    """By how much the lift of every two items is surely below 1; 0 where it is not."""
    training = model.training
    if training is None:
        return np.asarray(np.maximum(1 - model.lift, 0))
    every = np.arange(len(model.items))
    seen = evidence(training, model.independence, every, every)
    _, high = seen.interval()
    return np.asarray(
        np.where(significant_pairs(seen, fewer_only=True), np.maximum(1 - np.fmax(model.lift, high), 0), 0)
    )


class _Candidates(NamedTuple):
    """Pairs to choose from, by the order of items; how often each met, and would by chance, NaN if not known."""

    first: Ints
    second: Ints
    met: Floats
    expected: Floats

    @property
    def seen(self) -> Evidence:
        return Evidence(self.met, self.expected)

    def of(self, rows: Ints | Bools) -> _Candidates:
        return _Candidates(self.first[rows], self.second[rows], self.met[rows], self.expected[rows])


def _of_frequent(model: SetModel) -> _Candidates:
    """All pairs, or of many items those of the most frequent."""
    known = model.training
    by = model.marginals() if known is None else known.item_weights
    chosen = np.sort(np.argsort(-by, kind="stable")[:MANY_ITEMS])
    i, j = np.triu_indices(len(chosen), 1)
    first, second = chosen[i], chosen[j]
    if known is None:
        unknown = np.full(len(first), np.nan)
        return _Candidates(first, second, unknown, unknown)
    met = known.pair_counts_among(chosen)[i, j]
    found = _Candidates(first, second, met, _expected(model, first, second))
    return found.of((met < found.expected) & (found.expected > SURE_OF_NONE))


def _that_met(model: SetModel) -> _Candidates:
    known = model.training
    assert known is not None
    first, second = known.pairs.T.astype(np.int64)
    found = _Candidates(first, second, known.pair_weights, _expected(model, first, second))
    return found.of((found.met > found.expected) & (found.met >= model.min_cooccurrences))


def _expected(model: SetModel, first: Ints, second: Ints) -> Floats:
    known = model.training
    assert known is not None
    scale = model.independence.scale_of(known.frequencies)
    return np.asarray(scale * known.item_weights[first] * known.frequencies[second])


def _surest(model: SetModel, pairs: _Candidates, k: int, side: np.ufunc) -> list[RelatedPair]:
    """The k pairs that are most surely on one side of 1: below it for `np.negative`.

    No pair is surer than the baskets alone make it, so that lifts are looked up in that order until k are found that
    no other can pass.
    """
    seen = pairs.seen._replace(missed=0.0 if model.training is None else missed(model.training))
    low, high = seen.interval()
    sure = np.where(np.isnan(pairs.met), np.inf, low if side is np.positive else -high)
    n = len(model.items)
    p = seen.more() if side is np.positive else seen.fewer()
    possible = np.flatnonzero((sure > side(1)) & benjamini_hochberg(p, FDR_LEVEL, tests=n * (n - 1) // 2))
    order = possible[np.argsort(-sure[possible], kind="stable")]
    order = order if len(model.items) <= MANY_ITEMS else order[:MOST_LOOKED_UP]
    pairs, sure, low, high = pairs.of(order), sure[order], low[order], high[order]
    lifts, done = np.zeros(0), 0
    while done < len(order) and _kth(np.minimum(side(lifts), sure[:done]), k) < sure[done]:
        batch = slice(done, None if len(model.items) <= MANY_ITEMS else done + AT_ONCE)
        lifts = np.append(lifts, _lifts(model, pairs.first[batch], pairs.second[batch]))
        done = len(lifts)
    surer = np.minimum(side(lifts), sure[:done])
    ties = np.lexsort((pairs.second[:done], pairs.first[:done], -surer))
    best = [row for row in ties[:k] if surer[row] > side(1)]
    columns = (lifts, pairs.met, pairs.expected, low, high)
    return [
        RelatedPair(model.items[pairs.first[row]], model.items[pairs.second[row]], *(float(c[row]) for c in columns))
        for row in best
    ]


def _kth(values: Floats, k: int) -> float:
    """The k-th largest; −inf where there are fewer."""
    return float(np.partition(values, -k)[-k]) if 0 < k <= len(values) else np.inf if k == 0 else -np.inf


def _lifts(model: SetModel, first: Ints, second: Ints) -> Floats:
    if len(model.items) <= MANY_ITEMS:
        return np.asarray(model.lift[first, second])
    items = np.unique(np.concatenate([first, second]))
    lift = pair_table(model.distribution, items, items).lift
    return np.asarray(lift[np.searchsorted(items, first), np.searchsorted(items, second)])
