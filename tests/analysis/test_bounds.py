"""The bounds of a single DPP: against the plain averages, on sets that obey them and on sets that cannot."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.analysis.bounds import bounds
from helpers.problems import sampled


def some_rich(n: int, seed: int = 0, n_items: int = 12) -> Baskets:
    """Independent items for two kinds of people, of whom one takes much and the other little."""
    rng = np.random.default_rng(seed)
    return Baskets.from_matrix(rng.random((n, n_items)) < rng.choice([0.05, 0.7], (n, 1)))


def test_sizes_are_compared_with_their_plain_variance_and_mean() -> None:
    baskets = some_rich(400)
    found = bounds(baskets, 0.05, nonempty=False)
    assert found.size_ratio == pytest.approx(baskets.sizes.var() / baskets.sizes.mean())
    again = [bounds(some_rich(400, seed), 0.05, nonempty=False).size_ratio for seed in range(200)]
    assert found.standard_error == pytest.approx(np.std(again), rel=0.2)


@pytest.mark.parametrize("nonempty", [False, True])
def test_people_who_take_much_or_little_pass_both_bounds(nonempty: bool) -> None:
    baskets = some_rich(400, n_items=24)
    found = bounds(baskets.subset(baskets.sizes > 0) if nonempty else baskets, 0.05, nonempty=nonempty)
    assert (found.n_beyond, found.n_beyond_symmetric, found.n_items) == (24, 24, 24)
    assert found.sizes_beyond
    assert found.passed


@pytest.mark.parametrize("seed", range(5))
def test_sets_drawn_from_a_dpp_pass_none(seed: int) -> None:
    found = bounds(sampled(seed, n=2000), 0.05, nonempty=False)
    assert (found.n_beyond, found.n_beyond_symmetric, found.n_items) == (0, 0, 6)
    assert not found.sizes_beyond_symmetric
    assert not found.passed


def test_independent_items_are_at_the_symmetric_bound_and_seldom_called_beyond_it() -> None:
    """Where E[others | i] − E[others] is 0: a test at 5 % errs in about 5 % of samples."""
    rng, called = np.random.default_rng(0), 0
    for _ in range(200):
        X = rng.random((300, 8)) < 0.3
        called += bounds(Baskets.from_matrix(X), 0.05, nonempty=False).n_beyond_symmetric > 0
    assert called <= 24  # binomial(200, 0.05): more than this has probability 1e-4


def test_counts_and_copies_say_the_same() -> None:
    baskets = some_rich(200)
    merged, scaled = baskets.deduplicated(), baskets.reweighted(0.3)
    plain = bounds(baskets, 0.05, nonempty=False)
    for other in (merged, scaled):
        found = bounds(other, 0.05, nonempty=False)
        assert found[:3] == plain[:3]
        assert found[3:] == pytest.approx(plain[3:])


@pytest.mark.parametrize("sets", [[[], []], [["a"]], [["a", "b"]] * 5, [["a"], ["b"]]])
def test_where_nothing_varies_nothing_is_beyond(sets: list[list[str]]) -> None:
    assert not bounds(Baskets.from_lists(sets, ["a", "b"]), 0.05, nonempty=False).passed
