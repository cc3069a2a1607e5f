"""Pairs that occur together, counted in parts as all at once, and no more of them than asked for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from dpplearn import Baskets
from dpplearn.data import pair_counts as module
from dpplearn.data.pair_counts import pair_counts
from helpers import strategies


def by_hand(baskets: Baskets) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {}
    for row, weight in enumerate(baskets.weights):
        for pair in combinations(baskets.positions(row).tolist(), 2):
            found[pair] = found.get(pair, 0.0) + weight
    return {pair: weight for pair, weight in sorted(found.items()) if weight > 0}


@settings(max_examples=40)
@given(strategies.baskets())
def test_pairs_are_those_of_plain_counting_whatever_is_looked_at_together(baskets: Baskets) -> None:
    expected = by_hand(baskets)
    for at_once in (1, 5, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "AT_ONCE", at_once)
            found = pair_counts(baskets, 10**9)
        assert list(map(tuple, found.pairs.tolist())) == list(expected)
        np.testing.assert_allclose(found.weights, list(expected.values()), rtol=1e-12)
        assert found.least == 0


def test_where_there_are_too_many_the_rarest_go_and_it_says_from_where_on() -> None:
    baskets = Baskets.from_lists([[0, 1, 2]] * 3 + [[0, 3], [1, 3], [2, 3]] + [[0, 3]], n_items=5)
    counts = by_hand(baskets)
    for most, least in ((6, 0), (5, 2), (4, 2), (3, 3), (2, 4)):
        found = pair_counts(baskets, most)
        assert found.least == least
        assert list(map(tuple, found.pairs.tolist())) == [pair for pair, count in counts.items() if count >= least]
