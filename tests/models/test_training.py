"""What a model keeps of its training data: the counts themselves, and nothing that a file could have spoiled."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from dpplearn import Baskets, InputError, fit
from dpplearn.models.history import History
from dpplearn.models.training import Training
from helpers import strategies

BASKETS = Baskets.from_lists([[0, 1], [1, 2, 3], [1, 2], [], [3]], n_items=5, weights=[2, 1, 0.5, 1, 3])
HISTORY = History(*(np.linspace(start, start + 1, 3) for start in (-3.0, 0.0, 1.0, 2.0, -4.0)))


def same(a: Training, b: Training) -> bool:
    """Equal to the last bit, NaN included."""
    arrays = [(getattr(a, name), getattr(b, name)) for name in ("item_weights", "pairs", "pair_weights")]
    if a.history is not None and b.history is not None:
        arrays += zip(a.history.columns.values(), b.history.columns.values(), strict=True)
    return (a.weight, a.history is None) == (b.weight, b.history is None) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in arrays
    )


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


def test_frequencies_are_those_of_the_baskets() -> None:
    training = Training.of(BASKETS)
    np.testing.assert_allclose(training.frequencies, BASKETS.frequencies(), rtol=1e-15)
    np.testing.assert_allclose(training.pair_frequencies(), BASKETS.pair_frequencies(), rtol=1e-15)


@pytest.mark.parametrize("history", [None, HISTORY], ids=["without history", "with history"])
def test_arrays_give_back_what_they_were_made_of(history: History | None) -> None:
    training = Training.of(BASKETS, history)
    again = Training.from_arrays({**training.arrays, "eigenvalues": np.ones(5)})
    assert again is not None
    assert same(again, training)
    assert (again.history is None) == (history is None)


def test_arrays_of_a_model_alone_give_none() -> None:
    assert Training.from_arrays({"eigenvalues": np.ones(2), "eigenvectors": np.eye(2)}) is None


def test_no_pair_at_all_is_fine() -> None:
    training = Training.of(Baskets.from_lists([[0], [], [2]], n_items=3))
    assert training.pairs.shape == (0, 2)
    np.testing.assert_array_equal(training.pair_frequencies(), np.diag([1 / 3, 0, 1 / 3]))
    again = Training.from_arrays(training.arrays)
    assert again is not None
    assert same(again, training)


def test_what_is_kept_cannot_be_written_to() -> None:
    training = Training.of(BASKETS)
    for array in (training.item_weights, training.pairs, training.pair_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("shrinkage", [0, 0.5, 1])
def test_a_fit_keeps_the_counts_of_its_data_and_its_history_with_any_shrinkage(shrinkage: float) -> None:
    result = fit(BASKETS, shrinkage=shrinkage, max_iter=3, nonempty=False)
    training = result.dpp.training
    assert training is not None
    assert training.history is result.history
    expected = Training.of(BASKETS)
    assert training.weight == pytest.approx(expected.weight, rel=1e-12)
    np.testing.assert_array_equal(training.pairs, expected.pairs)
    np.testing.assert_allclose(training.item_weights, expected.item_weights, rtol=1e-12)
    np.testing.assert_allclose(training.pair_weights, expected.pair_weights, rtol=1e-12)


def test_weights_that_are_no_counts_are_scaled_once_to_the_baskets_that_they_are_worth() -> None:
    """And not again once equal sets are merged, which changes what weights seem to be worth."""
    weights = np.array([0.5, 0.25, 1.5, 0.7, 0.3, 0.2])
    baskets = Baskets.from_lists([[0], [0], [0, 1], [1], [], [0]], weights=weights)
    training = fit(baskets, shrinkage=0.5, max_iter=2, nonempty=False).dpp.training
    assert training is not None
    assert training.weight == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
    np.testing.assert_allclose(training.frequencies, baskets.frequencies(), rtol=1e-12)


WRONG: dict[str, dict[str, Any]] = {
    "no weight": {"training.weight": np.zeros(1)},
    "a weight that is no number": {"training.weight": np.array([np.nan])},
    "an infinite weight": {"training.weight": np.array([np.inf])},
    "a missing weight": {"training.weight": np.empty(0)},
    "a weight without a dimension": {"training.weight": np.array(5.0)},
    "items missing": {"training.item_weights": None},
    "items in two dimensions": {"training.item_weights": np.ones((5, 2))},
    "items without a dimension": {"training.item_weights": np.array(1.0)},
    "items that are no numbers": {"training.item_weights": np.full(5, np.nan)},
    "items heavier than all baskets": {"training.item_weights": np.full(5, 100.0)},
    "negative items": {"training.item_weights": np.full(5, -1.0)},
    "fewer pairs than weights": {"training.pairs": np.zeros((1, 2), np.int32)},
    "pairs of three": {"training.pairs": np.zeros((4, 3), np.int32)},
    "pairs of unknown items": {"training.pairs": np.full((4, 2), 5, np.int32)},
    "pairs of negative items": {"training.pairs": np.full((4, 2), -1, np.int32)},
    "pairs of fractions": {"training.pairs": np.full((4, 2), 0.5)},
    "pair weights in two dimensions": {"training.pair_weights": np.ones((4, 1))},
    "pair weights without a dimension": {"training.pair_weights": np.array(1.0)},
    "pair weights that are no numbers": {"training.pair_weights": np.full(4, np.nan)},
    "negative pair weights": {"training.pair_weights": np.full(4, -1.0)},
    "an unknown column of the history": {"history.mood": np.ones(3)},
    "a column of the history missing": {"history.seconds": None},
    "a column of the history shorter": {"history.seconds": np.ones(2)},
    "a column of the history in two dimensions": {"history.seconds": np.ones((3, 1))},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_arrays_that_no_training_gives_are_refused(wrong: str) -> None:
    """KeyError and TypeError are for the reader of the file to put into words."""
    arrays = {**Training.of(BASKETS, HISTORY).arrays, **WRONG[wrong]}
    with pytest.raises((InputError, KeyError, TypeError)):
        Training.from_arrays({name: array for name, array in arrays.items() if array is not None})


def test_counts_of_some_items_and_of_one_are_those_of_all() -> None:
    training = Training.of(BASKETS)
    whole, some = training.pair_frequencies() * training.weight, np.array([3, 0, 1])
    np.testing.assert_allclose(training.pair_counts_among(some), whole[np.ix_(some, some)])
    for item in range(5):
        np.testing.assert_allclose(training.pair_counts_of(item), whole[item])


def test_a_blend_and_what_was_left_out_travel_with_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpplearn.models.training.MOST_PAIRS", 2)
    training = replace(Training.of(Baskets.from_lists([[0, 1], [1, 2, 3], [1, 2]])), blend=0.2)
    again = Training.from_arrays(training.arrays)
    assert again is not None
    assert (training.least, len(training.pairs)) == (2, 1)
    assert (again.blend, again.least) == (0.2, 2)
    with pytest.raises(InputError, match=r"1\.5"):
        replace(training, blend=1.5)


def test_counts_of_many_pairs_take_half_the_space_and_other_weights_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpplearn.models.training.FEW_PAIRS", 1)
    counts = Training.of(Baskets.from_lists([[0, 1], [1, 2, 3], [1, 2]])).arrays["training.pair_weights"]
    assert counts.dtype == np.float32
    assert Training.of(BASKETS).arrays["training.pair_weights"].dtype == np.float64
