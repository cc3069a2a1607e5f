"""What is asked of every model: drawn fairly, and answered as plain loops would."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpplearn import DPP, Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation import outcomes
from dpplearn.evaluation.baselines import Predictor, of_model, popularity
from dpplearn.evaluation.outcomes import RANDOM_SETS, Outcomes, Questions, ask, random_sets
from dpplearn.learners.kernels import distribution_of
from dpplearn.models.model import SetModel
from helpers.problems import as_mixture, random_kernel, random_mixture, sampled


def positions(questions: Questions) -> list[int]:
    """At which place of its basket each held-out item stood."""
    baskets = questions.baskets
    return [list(baskets[row]).index(held) for row, held in zip(questions.ranked.tolist(), questions.held, strict=True)]


def fair(places: list[int], n: int) -> float:
    return float(stats.chisquare(np.bincount(places, minlength=n)).pvalue)


def answers(predictor: Predictor, questions: Questions, *ks: int) -> Outcomes:
    return outcomes.outcomes(predictor, questions, ks or (1, 3))


def test_the_item_held_out_is_any_of_its_basket_equally_often() -> None:
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.choice(9, 4, replace=False)).tolist() for _ in range(3000)]
    questions = ask(Baskets.from_lists(sets, n_items=9), rng)
    places = positions(questions)
    assert fair(places, 4) > 1e-3
    assert fair([3] * 300, 4) < 1e-9  # always the last
    assert fair([min(place, 2) for place in places], 4) < 1e-9  # never the last


def test_what_is_left_is_the_basket_without_the_item_and_is_asked_once() -> None:
    baskets = Baskets.from_lists([[0, 1], [2], [0, 1, 3], [], [0, 2], [1, 2], range(4)], n_items=4)
    for seed in range(5):
        questions = ask(baskets, np.random.default_rng(seed))
        assert questions.ranked.tolist() == [0, 2, 4, 5]  # two items or more, and something left to rank among
        assert sorted(np.concatenate(questions.of_partial)) == list(range(4))
        for partial, places in zip(questions.partial, questions.of_partial, strict=True):
            for place in places:
                basket = set(baskets[int(questions.ranked[place])])
                assert basket - set(partial) == {questions.held[place]}
                assert len(basket) == len(partial) + 1


def test_random_sets_are_every_set_equally_often() -> None:
    rng = np.random.default_rng(1)
    every = {each: number for number, each in enumerate(combinations(range(6), 3))}
    drawn = [every[tuple(each)] for each in np.sort(random_sets(6, 3, 8000, rng)).tolist()]
    assert fair(drawn, len(every)) > 1e-3
    spread = np.sort(rng.integers(0, 4, (8000, 3))) + np.arange(3)  # a way to draw without repeats that is not fair
    assert fair([every[tuple(each)] for each in spread.tolist()], len(every)) < 1e-9
    assert np.sort(random_sets(5, 5, 3, rng)).tolist() == [list(range(5))] * 3


def test_opponents_have_the_sizes_of_their_baskets() -> None:
    baskets = Baskets.from_lists([[0, 1], [], [2], range(5), [1, 2, 3]], n_items=5)
    questions = ask(baskets, np.random.default_rng(0))
    assert questions.compared.tolist() == [0, 2, 4]
    assert questions.opponents.sizes.tolist() == [size for size in (2, 1, 3) for _ in range(RANDOM_SETS)]


def test_no_more_baskets_are_asked_about_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST_ASKED", 50)
    baskets = sampled(0, 400)
    chosen = [ask(baskets, np.random.default_rng(seed)).ranked for seed in range(2)]
    assert [len(each) for each in chosen] == [50, 50]
    assert (baskets.sizes[chosen[0]] >= 2).all()
    assert set(chosen[0]) != set(chosen[1])
    assert chosen[0][-1] > 200  # not the first ones


def naive(dpp: SetModel, questions: Questions) -> dict[str, Floats]:
    """By enumeration of the candidates of every question, with log P of the whole sets in place of conditionals."""
    n = len(questions.baskets)
    found = {name: np.full(n, np.nan) for name in ("percentile_rank", "recall@2", "ndcg@2", "auc")}
    for row, held in zip(questions.ranked.tolist(), questions.held.tolist(), strict=True):
        rest = set(questions.baskets[row]) - {held}
        scores = {i: dpp.log_prob([*rest, i]) for i in range(questions.baskets.n_items) if i not in rest}
        rank = 1 + sum(score > scores[held] for score in scores.values())
        found["percentile_rank"][row] = 100 * (len(scores) - rank) / (len(scores) - 1)
        found["recall@2"][row] = rank <= 2
        found["ndcg@2"][row] = (rank <= 2) / np.log2(1 + rank)
    opponents = list(questions.opponents)
    for number, row in enumerate(questions.compared.tolist()):
        true = dpp.log_prob(questions.baskets[row])
        others = [dpp.log_prob(each) for each in opponents[number * RANDOM_SETS : (number + 1) * RANDOM_SETS]]
        found["auc"][row] = np.mean([(true > other) + (true == other) / 2 for other in others])
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
    found = answers(of_model(model.distribution), questions, 2).columns
    np.testing.assert_allclose(found["log_likelihood"], model.log_prob(questions.baskets))
    for name, column in naive(model, questions).items():
        np.testing.assert_allclose(found[name], column, err_msg=name)


def test_partial_baskets_that_are_impossible_tie_all_candidates_and_are_counted() -> None:
    baskets = Baskets.from_lists([[0, 1, 2], [0, 1], [0, 3]], n_items=4)
    questions = ask(baskets, np.random.default_rng(0))
    kernel = SpectralDPP(np.array([0.0, 0, 0, 0.5]), np.linalg.qr(np.ones((4, 4)) + np.eye(4))[0])
    at_most_one = of_model(distribution_of(kernel))
    found = answers(at_most_one, questions, 1)
    assert found.unranked.tolist() == [0]
    assert found.columns["percentile_rank"][0] == 50
    assert found.columns["recall@1"][0] == pytest.approx(1 / 2)  # of two candidates


def test_a_predictor_without_probabilities_is_only_ranked() -> None:
    questions = ask(sampled(0, 30), np.random.default_rng(0))
    found = answers(popularity(questions.baskets.frequencies()), questions, 5)
    assert list(found.columns) == ["percentile_rank", "recall@5", "ndcg@5"]
    assert found.pairs is None
    assert found.sizes is None
