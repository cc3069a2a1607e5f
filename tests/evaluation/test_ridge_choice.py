"""The ridge of EASE: chosen by baskets that the regression did not see."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.evaluation import ridge_choice
from dpplearn.evaluation.baselines import ease
from dpplearn.evaluation.outcomes import Questions
from dpplearn.evaluation.ridge_choice import RIDGES, chosen_ridge
from dpplearn.models.training import Training
from helpers.problems import sampled


def chains(n: int, seed: int = 0) -> Baskets:
    """Items come in a ring of ten, and each basket holds three neighbours."""
    starts = np.random.default_rng(seed).integers(0, 10, n)
    return Baskets.from_lists([[(start + step) % 10 for step in range(3)] for start in starts], n_items=10)


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
    assert chosen_ridge(chains(49), np.random.default_rng(0)) is None
    assert chosen_ridge(chains(50), np.random.default_rng(0)) is not None
    single = Baskets.from_lists([[0], [1], [2]] * 100, n_items=3)
    assert chosen_ridge(single, np.random.default_rng(0)) is None


def test_no_more_baskets_are_set_aside_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(baskets: Baskets, rng: np.random.Generator) -> Questions:
        asked.append(len(baskets))
        return ask(baskets, rng)

    ask = ridge_choice.ask
    monkeypatch.setattr(ridge_choice, "ask", counted)
    monkeypatch.setattr(ridge_choice, "MOST", 30)
    chosen_ridge(chains(1000), np.random.default_rng(0))
    assert asked == [30]
