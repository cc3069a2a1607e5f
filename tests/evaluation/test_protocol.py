"""The questions are drawn fairly, and the outcomes are those of plain loops over enumerated distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpplearn import DPP, Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.baselines import model_predictor
from dpplearn.evaluation.protocol import ALL_BUT_ONE, GIVEN_HALF, GIVEN_ONE, TASKS, Questions, answer, ask
from dpplearn.learners.kernels import distribution_of
from dpplearn.models.model import SetModel
from helpers.problems import as_mixture, random_kernel, random_mixture, sampled


def flat(questions: Questions) -> list[tuple[str, int, set[int], set[int]]]:
    """Return task, row, given and held-out items of every question."""
    return [
        (each.task, each.row, set(given.tolist()), set(each.held.tolist()))
        for given, asked in zip(questions.partial, questions.asked, strict=True)
        for each in asked
    ]


def fair(places: list[int], n: int) -> float:
    return float(stats.chisquare(np.bincount(places, minlength=n)).pvalue)


def test_every_item_is_given_and_held_out_equally_often() -> None:
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.choice(9, 4, replace=False)).tolist() for _ in range(3000)]
    questions = flat(ask(Baskets.from_lists(sets, n_items=9), rng))
    held = [sets[row].index(*rest) for task, row, _, rest in questions if task == ALL_BUT_ONE]
    given = [sets[row].index(*one) for task, row, one, _ in questions if task == GIVEN_ONE]
    assert min(fair(held, 4), fair(given, 4)) > 1e-3
    assert fair([min(place, 2) for place in held], 4) < 1e-9  # never the last


def test_given_and_held_out_items_are_the_basket_in_the_sizes_of_the_tasks() -> None:
    baskets = Baskets.from_lists([[0, 1], [2], [0, 1, 3], [], [0, 2, 3, 4, 5], range(6)], n_items=6)
    asked = flat(ask(baskets, np.random.default_rng(1)))
    assert all(given | held == set(baskets[row]) and not given & held for _, row, given, held in asked)
    sizes = {(task, row): len(given) for task, row, given, _ in asked}
    # A single item is given for calibration only. The whole catalogue leaves nothing to rank among.
    expected = {GIVEN_ONE: {0: 1, 1: 1, 2: 1, 4: 1}, GIVEN_HALF: {0: 1, 2: 1, 4: 2}, ALL_BUT_ONE: {0: 1, 2: 2, 4: 4}}
    assert sizes == {(task, row): n for task, rows in expected.items() for row, n in rows.items()}
    for _, row, given, _ in (each for each in asked if each[0] == GIVEN_ONE and each[1] == 4):
        others = [each for each in asked if each[1] == row]
        assert all(given <= more for _, _, more, _ in others)  # one order for all tasks


def naive(model: SetModel, questions: Questions) -> dict[str, Floats]:
    """Rank by log P of whole sets in place of conditionals."""
    n, N = len(questions.baskets), questions.baskets.n_items
    found = {f"{name}_{task}": np.full(n, np.nan) for task in TASKS for name in ("percentile_rank", "recall@2")}
    for task, row, given, held in flat(questions):
        scores = {i: model.log_prob([*given, i]) for i in range(N) if i not in given}
        negatives = [i for i in scores if i not in held]
        best = sorted(scores, key=lambda i, scores=scores: -scores[i])[:2]  # type: ignore[misc]
        if held:
            above = [scores[h] > scores[i] for h in held for i in negatives]
            found[f"percentile_rank_{task}"][row] = 100 * np.mean(above)
            found[f"recall@2_{task}"][row] = len({*best} & held) / len(held)
    return found


MODELS = {
    "symmetric": DPP(random_kernel(np.random.default_rng(3), 7)),
    "mixture": as_mixture(random_mixture(3, 7)),
    "mixture, never empty": as_mixture(random_mixture(3, 7), nonempty=True),
}


@pytest.mark.parametrize("kind", MODELS)
def test_outcomes_are_those_of_plain_loops(kind: str) -> None:
    model = MODELS[kind]
    questions = ask(sampled(4, 60, 7), np.random.default_rng(5))
    found = answer(model_predictor(model.distribution), questions, (2,)).columns
    np.testing.assert_allclose(found["log_likelihood"], model.log_prob(questions.baskets))
    for name, column in naive(model, questions).items():
        np.testing.assert_allclose(found[name], column, err_msg=name)


def test_impossible_partial_baskets_tie_all_candidates_and_are_counted() -> None:
    questions = ask(Baskets.from_lists([[0, 1, 2], [0, 3]], n_items=4), np.random.default_rng(0), (ALL_BUT_ONE,))
    kernel = SpectralDPP(np.array([0.0, 0, 0, 0.5]), np.linalg.qr(np.ones((4, 4)) + np.eye(4))[0])
    found = answer(model_predictor(distribution_of(kernel)), questions, (1,))  # at most one item
    assert found.n_impossible == 1
    assert found.columns["percentile_rank_all_but_one"][0] == 50
    assert found.columns["recall@1_all_but_one"][0] == pytest.approx(1 / 2)  # of two candidates
    assert found.calibration[ALL_BUT_ONE].reliability().left_out == 1
