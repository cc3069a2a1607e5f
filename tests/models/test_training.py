"""The counts of items and pairs that a model keeps of its training data."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from dpplearn import Baskets
from dpplearn.models.record import Training
from helpers import strategies

BASKETS = Baskets.from_lists([[0, 1], [1, 2, 3], [1, 2], [], [3]], n_items=5, weights=[2, 1, 0.5, 1, 3])


@settings(max_examples=60)
@given(strategies.baskets())
def test_weights_of_items_and_pairs_are_what_counting_gives(baskets: Baskets) -> None:
    assume(baskets.total_weight > 0)
    assume(np.all((baskets.weights == 0) | (baskets.weights > 1e-200)))  # below, numbers have few digits
    baskets = baskets.as_counts()
    items, pairs = np.zeros(baskets.n_items), {}
    for basket, weight in zip(baskets, baskets.weights, strict=True):
        items[list(basket)] += weight
        for pair in combinations(basket, 2):
            pairs[pair] = pairs.get(pair, 0.0) + weight
    training = Training.of(baskets)
    assert training.weight == pytest.approx(baskets.total_weight, rel=1e-12)
    np.testing.assert_allclose(training.item_weights, items, rtol=1e-12)
    found = dict(zip(map(tuple, training.pairs.tolist()), training.pair_weights, strict=True))
    assert found.keys() == {pair for pair, weight in pairs.items() if weight > 0}
    np.testing.assert_allclose([found[pair] for pair in found], [pairs[pair] for pair in found], rtol=1e-12)


def test_counts_of_some_items_are_those_of_all() -> None:
    training = Training.of(BASKETS)
    np.testing.assert_allclose(training.frequencies, BASKETS.frequencies(), rtol=1e-15)
    whole = BASKETS.pair_frequencies() * training.weight
    for rows, columns in (([3, 0, 1], None), ([2], [0, 4, 2]), (range(5), range(5))):
        found = training.pair_counts_among(np.array(rows), None if columns is None else np.array(columns))
        np.testing.assert_allclose(found, whole[np.ix_(rows, rows if columns is None else columns)], rtol=1e-15)
