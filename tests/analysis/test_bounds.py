"""Variance of the basket size: against plain averages, on sets that satisfy the bounds and on sets that cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.analysis.bounds import bounds
from helpers.problems import sampled


def some_rich(n: int, seed: int = 0, n_items: int = 12) -> Baskets:
    """Return baskets of independent items from two segments, one with many items per basket and one with few."""
    rng = np.random.default_rng(seed)
    return Baskets.from_matrix(rng.random((n, n_items)) < rng.choice([0.05, 0.7], (n, 1)))


def test_the_ratio_and_its_standard_error_are_those_of_repeated_samples() -> None:
    baskets = some_rich(400)
    found = bounds(baskets)
    assert found.size_ratio == pytest.approx(baskets.sizes.var() / baskets.sizes.mean())
    again = [bounds(some_rich(400, seed)).size_ratio for seed in range(200)]
    assert found.standard_error == pytest.approx(np.std(again), rel=0.2)


def test_two_segments_exceed_the_bound_of_a_single_dpp_and_draws_of_a_dpp_do_not() -> None:
    assert bounds(some_rich(400, n_items=24)).sizes_beyond
    for seed in range(5):
        assert not bounds(sampled(seed, n=2000)).sizes_beyond_symmetric


def test_weights_count_as_copies() -> None:
    baskets = some_rich(200)
    for other in (baskets.deduplicated(), baskets.reweighted(0.3)):
        assert bounds(other) == pytest.approx(bounds(baskets))


@pytest.mark.parametrize("sets", [[[], []], [["a"]], [["a", "b"]] * 5, [["a"], ["b"]]])
def test_without_variance_nothing_exceeds_the_bound(sets: list[list[str]]) -> None:
    found = bounds(Baskets.from_lists(sets, ["a", "b"]))
    assert not found.sizes_beyond_symmetric
    assert math.isnan(found.size_ratio) == (not any(sets))
