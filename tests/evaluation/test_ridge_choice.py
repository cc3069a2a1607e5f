"""The ridge of EASE: chosen by baskets that the regression did not see."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.evaluation import ridge_choice
from dpplearn.evaluation.baselines import ease
from dpplearn.evaluation.ridge_choice import RIDGES, chosen_ridge
from dpplearn.models.training import Training
from helpers.problems import sampled


@pytest.mark.parametrize(("seed", "expected"), [(0, 0.03), (3, 3.0)])
def test_it_is_the_one_that_ranks_best_by_plain_loops(seed: int, expected: float) -> None:
    train = sampled(seed, 600, 8)
    rng = np.random.default_rng(7)
    kept, aside = train.split(0.8, rng)
    questions = ridge_choice.ask(aside, rng)
    means = []
    for ridge in RIDGES:
        predictor, found = ease(Training.of(kept).pair_frequencies(), ridge), []
        for row, held in zip(questions.ranked.tolist(), questions.held.tolist(), strict=True):
            rest = [item for item in aside[row] if item != held]
            scores = predictor.scores(np.array(rest))
            others = [scores[i] for i in range(8) if i not in rest and i != held]
            found.append(np.mean([(other < scores[held]) + (other == scores[held]) / 2 for other in others]))
        means.append(np.mean(found))
    assert RIDGES[int(np.argmax(means))] == expected
    assert chosen_ridge(train, np.random.default_rng(7)) == expected


def test_baskets_that_are_too_few_or_hold_one_item_each_choose_none() -> None:
    train = sampled(0, 400, 8)
    train = train.subset(train.sizes > 1)
    assert chosen_ridge(train[:49], np.random.default_rng(0)) is None
    assert chosen_ridge(train[:50], np.random.default_rng(0)) is not None
    single = Baskets.from_lists([[0], [1], [2]] * 100, n_items=3)
    assert chosen_ridge(single, np.random.default_rng(0)) is None
