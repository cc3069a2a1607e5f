"""What a mixture answers at the edges: items that never occurred, items that are independent, more than there is."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl


def test_of_an_item_that_never_occurred_the_data_leave_every_lift_possible() -> None:
    baskets = dl.Baskets.from_lists([["a", "b"], ["b"], ["a"], ["c", "a"]], items=["a", "b", "c", "never"])
    model = dl.fit(baskets, rng=0).model
    assert isinstance(model, dl.Mixture)
    related = model.substitutes("never", level=None) + model.complements("never", level=None)
    assert related
    assert {(each.met, each.expected, each.low, each.high) for each in related} == {(0, 0, 0, np.inf)}


@pytest.mark.parametrize("n_segments", [1, 3])
def test_independent_items_are_neither_substitutes_nor_complements(n_segments: int) -> None:
    rng = np.random.default_rng(0)
    log_odds = np.tile(rng.standard_normal(30), (n_segments, 1))
    model = dl.Mixture(dl.MixtureKernel(np.full(n_segments, 1 / n_segments), log_odds, np.eye(30)[None]))
    assert [model.substitutes(i) + model.complements(i) for i in range(30)] == [[]] * 30
    assert [each.likes for each in model.segments()] == [()] * n_segments


def test_a_set_larger_than_the_catalogue_ends_with_the_catalogue_and_says_so() -> None:
    model = dl.Mixture(dl.MixtureKernel(np.ones(1), np.zeros((1, 3)), np.eye(3)[None]), ["a", "b", "c"])
    found = model.complete(["a"], k=9)
    assert set(found) == {"a", "b", "c"}
    assert "3 of 9" in found.note
