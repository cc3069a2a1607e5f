"""Low-rank mixtures: the same results as the dense mixture, and relations in large catalogues."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.data.pairs import significant
from dpplearn.distributions.interaction import LowRank
from dpplearn.models.record import Training
from dpplearn.models.relations import MANY_ITEMS, MAX_PAIRED_ITEMS, pair_table, related_pairs, training_counts
from helpers.problems import as_mixture, random_low_rank


@cache
def large() -> dl.Mixture:
    """Return 20 items with interactions and 2,000 rare ones, with the counts of sets drawn from the model."""
    frequent = random_low_rank(2, 20, rare=2.5)
    low_rank = frequent.components.interaction
    assert isinstance(low_rank, LowRank)
    Z = np.pad(low_rank.Z, ((0, MANY_ITEMS), (0, 0)))
    log_odds = np.pad(frequent.components.log_odds, ((0, 0), (0, MANY_ITEMS)), constant_values=-8)
    model = dl.Mixture.from_arrays(frequent.weights, log_odds, (Z, low_rank.core))
    drawn = dl.Baskets.from_lists(model.sample(6000, rng=0), n_items=len(model.items))
    return dl.Mixture(model.distribution, training=Training.of(drawn))


@pytest.mark.parametrize("above", [False, True])
def test_large_catalogues_keep_only_relations_whose_interval_excludes_one(above: bool) -> None:
    model = large()
    item = 11
    row, every = np.array([item]), np.arange(len(model.items))
    lift = pair_table(model.distribution, row, every).lift[0]
    seen = training_counts(model.distribution, model.training, row, every)
    (low,), (high,) = seen.interval()
    if above:
        found = model.complements(item, 9999, level=None)
        kept = (lift > 1) & (low > 1) & (seen.observed[0] >= 3)
        by = -np.minimum(lift, low)
    else:
        found = model.substitutes(item, 9999, level=None)
        kept, by = (lift < 1) & (high < 1), np.maximum(lift, high)
    kept[item] = False
    expected = np.flatnonzero(kept)
    assert len(expected) >= 2
    assert [each.item for each in found] == expected[np.argsort(by[expected], kind="stable")].tolist()


def test_the_top_pairs_of_a_large_catalogue_are_those_of_all_pairs() -> None:
    model, n = large(), MANY_ITEMS + 20
    every = np.arange(n)
    seen = training_counts(model.distribution, model.training, every, every)
    upper = np.triu(np.ones((n, n), bool), 1)
    lift, (low, high) = pair_table(model.distribution).lift, seen.interval()
    rejected = np.zeros((n, n), bool)
    rejected[upper] = significant(seen.p()[upper])
    frequent = np.zeros(n, bool)
    frequent[np.argsort(-model.training.item_weights, kind="stable")[:MANY_ITEMS]] = True
    found = related_pairs(model, 20)
    for pairs, by, allowed in (
        (found.complements, np.minimum(lift, low), seen.observed >= 3),
        (found.substitutes, -np.maximum(lift, high), np.outer(frequent, frequent)),
    ):
        allowed &= upper & (by > (1 if pairs is found.complements else -1))
        first, second = np.nonzero(allowed & rejected)
        order = np.lexsort((second, first, -by[first, second]))[:20]
        assert len(order) > 1
        assert [each[:2] for each in pairs] == list(zip(first[order].tolist(), second[order].tolist(), strict=True))
        np.testing.assert_allclose([each.lift for each in pairs], lift[first[order], second[order]], rtol=1e-9)


def test_the_lift_matrix_of_a_very_large_catalogue_is_refused() -> None:
    model = as_mixture(random_low_rank(1, MAX_PAIRED_ITEMS + 1, rare=8))
    with pytest.raises(dl.InputError, match="5,001"):
        _ = model.lift
    assert len(model.complements(0, 3)) == 3
