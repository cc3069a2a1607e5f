"""Item-to-item mixed into a ranking: by the weight asked for, and by the one under which unseen items are likeliest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpplearn import DPP, Baskets, InputError, Mixture
from dpplearn.models.blending import blend_weight, blended
from dpplearn.models.record import Training
from helpers.problems import as_mixture, random_low_rank

N = 8
RNG = np.random.default_rng(0)
DRAWN = as_mixture(random_low_rank(2, N)).sample(150, rng=1)
BASKETS = Baskets.from_lists([*DRAWN, *(np.flatnonzero(RNG.random(N) < 0.4) for _ in range(100))], n_items=N)
TRAINING = Training.of(BASKETS)
MODEL = as_mixture(random_low_rank(2, N), training=replace(TRAINING, blend=0.25))


@pytest.mark.parametrize("blend", [0.0, 0.25, 1.0, "auto"])
def test_a_blend_ranks_by_shares_of_both_and_keeps_the_probabilities(blend: float | str) -> None:
    found = MODEL.recommend([1, 4], N, deny=[2], blend=blend)
    others = [i for i in range(N) if i not in (1, 2, 4)]
    model = {each.item: each for each in MODEL.recommend([1, 4], N, deny=[2])}
    scores = np.array([model[i].score for i in others])
    items = TRAINING.item_to_item(np.array([1, 4]))[others]
    w = 0.25 if blend == "auto" else float(blend)
    expected = (1 - w) * scores / scores.sum() + w * items / items.sum()
    best = np.argsort(-expected, kind="stable")
    assert [each.item for each in found] == [others[i] for i in best]
    np.testing.assert_allclose([each.score for each in found], expected[best])
    expected = [model[each.item].probability for each in found]
    np.testing.assert_allclose([each.probability for each in found], expected, rtol=1e-12)


def test_a_blend_that_cannot_be_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError):
        Mixture(MODEL.distribution, training=TRAINING).recommend([1], blend="auto")
    with pytest.raises(InputError):
        Mixture(MODEL.distribution).recommend([1], blend=0.5)
    for wrong in (1.5, -0.1, "much", True):
        with pytest.raises(InputError):
            MODEL.recommend([1], blend=wrong)


def test_the_weight_learned_is_that_under_which_the_items_held_out_are_likeliest() -> None:
    found = blend_weight(MODEL.distribution, TRAINING, BASKETS, np.random.default_rng(5))
    rng, likely = np.random.default_rng(5), []
    for row in np.flatnonzero((BASKETS.sizes >= 2) & (BASKETS.sizes < N)):
        basket = BASKETS.positions(row).astype(np.int64)
        at = int(rng.integers(len(basket)))
        rest = Baskets.from_lists([np.delete(basket, at)], n_items=N)
        likely.append([blended(MODEL.distribution, TRAINING, rest, w)[0, basket[at]] for w in (0.0, 1.0)])
    grid = np.linspace(0, 1, 2001)[:, None]
    a, b = np.array(likely).T
    best = grid[np.log((1 - grid) * a + grid * b).sum(axis=1).argmax(), 0]
    assert found == pytest.approx(best, abs=2e-3)
    assert 0 < best < 1


def test_an_impossible_basket_is_refused_with_and_without_a_blend() -> None:
    baskets = Baskets.from_lists([["a"], ["b"], ["c"], ["a", "c"]])
    never = DPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.5]], ["a", "b", "c"])
    model = never.with_record(never.learned, Training.of(baskets))
    for blend in (None, 0.5):
        with pytest.raises(InputError):
            model.recommend(["a", "b"], blend=blend)
