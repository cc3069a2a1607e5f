"""The strength of the prior by cross-validation: the arithmetic of the choice, and that nothing disturbs it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import dpplearn
from dpplearn import DPP, Baskets, FitResult, Kernel, Stop, fit
from dpplearn.fitting import prior_choice
from dpplearn.fitting.prior_choice import STRENGTHS, PriorChoice, choose_prior
from dpplearn.fitting.runs import Method
from dpplearn.kernels.independent import before_truncation
from dpplearn.learners.loop import Limits, Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import LEARNERS, Learner
from dpplearn.learners.stopping import still_to_gain


def repelling(n: int, seed: int = 0) -> Baskets:
    """Three pairs of items of which two of a pair are hardly ever together."""
    K = np.kron(np.diag([1.0, 0.8, 0.6]), [[0.45, 0.43], [0.43, 0.45]])
    return Baskets.from_lists(DPP(Kernel.from_K(K)).sample(n, rng=seed), n_items=6)


def of_independent_items(n: int, seed: int = 0) -> Baskets:
    return Baskets.from_matrix((np.random.default_rng(seed).random((n, 6)) < np.linspace(0.1, 0.6, 6)).astype(int))


FEW = repelling(60, seed=1)


@cache
def chosen_for_few() -> FitResult:
    return fit(FEW, rng=3, threads=1, model="dpp", nonempty=False)


def choice_of(*held_out: list[float], weights: list[float] | None = None) -> PriorChoice:
    rows = np.array(held_out)
    return PriorChoice(
        np.array(STRENGTHS[: len(rows)]), rows, np.ones(rows.shape[1]) if weights is None else np.array(weights)
    )


def test_the_best_strength_has_the_highest_weighted_mean_and_of_equals_is_the_strongest() -> None:
    choice = choice_of([-1, -3], [-2, -2.5], [-2, -2.5], weights=[1, 3])
    np.testing.assert_allclose(choice.log_likelihood, [-2.5, -2.375, -2.375])
    assert choice.best == 1


def test_the_difference_and_its_standard_error_are_of_paired_baskets() -> None:
    rng = np.random.default_rng(0)
    choice = choice_of(*rng.normal(-3, 1, (2, 50)).tolist())
    each = choice.held_out[1] - choice.held_out[0]
    mean, standard_error = choice.difference(1, 0)
    assert mean == pytest.approx(each.mean())
    assert standard_error == pytest.approx(each.std() / np.sqrt(50))
    assert choice.difference(0, 1) == pytest.approx((-mean, standard_error))
    assert choice.difference(0, 0) == (0, 0)


def test_a_weight_that_is_no_count_belongs_to_one_basket() -> None:
    choice = choice_of([-1, -2, -4], [-2, -2, -2], weights=[0.5, 1, 2.5])
    mean, standard_error = choice.difference(0, 1)
    assert mean == pytest.approx((0.5 * 1 + 1 * 0 - 2.5 * 2) / 4)
    spread = [0.5 * (1 - mean), 1 * (0 - mean), 2.5 * (-2 - mean)]
    assert standard_error == pytest.approx(np.sqrt(np.square(spread).sum()) / 4)


def test_a_count_is_as_many_baskets() -> None:
    counts, rows = [1, 2, 50], np.array([[-1.0, -2.0, -4.0], [-2.0, -2.0, -2.0]])
    one_by_one = choice_of(*np.repeat(rows, counts, axis=1).tolist())
    assert choice_of(*rows.tolist(), weights=counts).difference(0, 1) == pytest.approx(one_by_one.difference(0, 1))


def below_by(*standard_errors: float) -> PriorChoice:
    """Strengths below the last by so many standard errors; of a hundred baskets."""
    noise = np.tile([1.0, -1.0], 50)  # of standard error 0.1
    best = np.full(100, -2.0)
    return choice_of(*[(best - 0.1 * each - noise).tolist() for each in standard_errors], best.tolist())


@pytest.mark.parametrize(
    ("standard_errors", "chosen"),
    [
        ([5, 2, 1.1], 3),  # none is close enough to the best
        ([5, 2, 0.9], 2),
        ([5, 0.9, 0.2], 1),  # the strongest of two
        ([0.9, 3, 0.1], 0),  # whatever lies between
    ],
)
def test_the_strongest_within_a_standard_error_of_the_best_is_taken(standard_errors: list[float], chosen: int) -> None:
    choice = below_by(*standard_errors)
    assert choice.best == 3
    assert choice.chosen == chosen
    assert choice.strength == STRENGTHS[chosen]
    line = repr(choice).splitlines()[1 + chosen]
    assert line.split()[0] == f"{STRENGTHS[chosen]:g}"
    assert line.endswith("taken")
    assert repr(choice).count("taken") == 1


def test_a_weaker_prior_than_the_best_is_never_taken() -> None:
    best = [-1.0, -2.0, -3.0]
    choice = choice_of([-2.0, -3.0, -1.0], best, [-1.0, -2.0, -3.001])
    assert choice.strength <= STRENGTHS[choice.best] or choice.chosen <= choice.best
    assert choice.chosen in (0, 1)


@pytest.mark.parametrize("impossible", [0, 1, 2])
def test_a_strength_that_made_a_basket_impossible_is_not_taken_and_no_warning_comes(impossible: int) -> None:
    rows = [[-1.0, -2.0, -3.0], [-1.1, -2.1, -2.9], [-1.2, -1.9, -3.0]]
    rows[impossible][1] = -np.inf
    choice = choice_of(*rows)
    assert choice.log_likelihood[impossible] == -np.inf
    assert impossible not in (choice.best, choice.chosen)
    assert choice.complete is False
    mean, standard_error = choice.difference(choice.best, impossible)
    assert mean == np.inf
    assert np.isnan(standard_error)
    assert "-inf" in repr(choice)


def test_the_search_ends_with_the_last_strength_or_one_clearly_worse_than_the_best() -> None:
    assert not choice_of([-1.0, -2.0]).complete
    assert choice_of(*([[-1.0, -2.0]] * len(STRENGTHS))).complete
    noise = np.tile([1.0, -1.0], 50)  # of standard error 0.1
    best = np.full(100, -2.0)
    n_before = next(number for number, strength in enumerate(STRENGTHS) if strength <= prior_choice.WEAK)
    for standard_errors, complete in ((2.9, False), (3.1, True)):
        worse = (best - 0.1 * standard_errors - noise).tolist()
        assert choice_of(*[best.tolist()] * n_before, worse).complete is complete
        assert not choice_of(*[worse] * n_before, best.tolist()).complete  # what is clearly better calls for more
        assert not choice_of(*[best.tolist()] * (n_before - 1), worse).complete  # a weak one is always tried


def test_the_gain_is_that_over_independent_items() -> None:
    choice = below_by(5, 2, 0.9)
    assert choice.gain == choice.difference(2, 0)
    assert choice.gain[0] == pytest.approx(0.41)


def method(**changes: Any) -> Method:
    settings: dict[str, Any] = {
        "learner": LEARNERS["auto"],
        "limits": Limits(still_to_gain, 1e-4, 1000, None),
        "clock": lambda: 0.0,
    }
    return Method(**{**settings, **changes})


@pytest.mark.parametrize("nonempty", [False, True])
def test_the_figures_are_of_models_that_did_not_see_the_basket(nonempty: bool) -> None:
    """With four baskets each is left out once; the model of an infinitely strong prior is known."""
    baskets = Baskets.from_lists([[0, 1], [1], [0, 2], [1, 2] if nonempty else []], n_items=3)
    shown: list[int] = []
    choice = choose_prior(Problem(baskets, 1, nonempty), method(), 0, shown.append)
    expected = []
    for row in range(4):
        others = baskets.subset(np.arange(4) != row)
        p = (others.frequencies() * 3 + 0.5) / 4
        p = before_truncation(p) if nonempty else p
        log_p = sum(np.log(p[i] if i in baskets[row] else 1 - p[i]) for i in range(3))
        expected.append(log_p - np.log(1 - np.prod(1 - p)) if nonempty else log_p)
    np.testing.assert_allclose(sorted(choice.held_out[0]), sorted(expected), rtol=1e-9)
    assert shown == list(range(1, len(choice.strengths) + 1))


def test_unseen_baskets_speak_for_a_weak_prior_where_items_repel_and_for_a_strong_one_where_they_do_not() -> None:
    assert fit(repelling(1500), rng=0, model="dpp", nonempty=False).prior <= 0.1
    apart = fit(of_independent_items(1000), rng=0, model="dpp", nonempty=False)
    assert apart.prior == np.inf
    assert apart.stop is Stop.CLOSED_FORM
    assert apart.prior_choice is not None
    assert apart.prior_choice.strengths[0] == np.inf
    assert "infinitely strong: independent items (chosen by cross-validation)" in " ".join(repr(apart).split())


def test_the_model_is_that_of_the_strength_chosen() -> None:
    result = chosen_for_few()
    assert result.prior_choice is not None
    assert 0 < result.prior < np.inf
    assert result.prior == result.prior_choice.strength
    again = fit(FEW, prior=result.prior, threads=1, nonempty=False)
    np.testing.assert_array_equal(result.kernel.K, again.kernel.K)
    assert f"{result.prior:g} of the data's weight (chosen by cross-validation)" in repr(result)
    assert result.dpp.learned.prior_chosen is True
    assert again.dpp.learned.prior_chosen is False


def test_the_choice_follows_the_seed_and_nothing_else() -> None:
    """Not the number of threads, and not whether a basket comes three times or has the weight 3."""
    expected = chosen_for_few().prior_choice
    assert expected is not None
    tripled = Baskets.from_lists([*FEW, *FEW, *FEW], n_items=6)
    weighted = fit(FEW.reweighted(3.0), rng=3, threads=2, model="dpp", nonempty=False).prior_choice
    thrice = fit(tripled, rng=3, threads=1, model="dpp", nonempty=False).prior_choice
    again = fit(FEW, rng=3, threads=2, model="dpp", nonempty=False).prior_choice
    for a, b in ((expected, again), (weighted, thrice)):
        assert a is not None
        assert b is not None
        np.testing.assert_array_equal(a.held_out, b.held_out)
        assert (a.strengths.tolist(), a.chosen) == (b.strengths.tolist(), b.chosen)
    other = fit(FEW, rng=4, threads=1, model="dpp", nonempty=False).prior_choice
    assert other is not None
    assert not np.array_equal(expected.held_out[0], other.held_out[0])


@pytest.mark.parametrize("lists", [[[0, 2]], [[]]])
def test_one_basket_gives_independent_items(lists: list[list[int]]) -> None:
    result = fit(Baskets.from_lists(lists, n_items=3), model="dpp", nonempty=False)
    assert result.prior == np.inf
    assert result.prior_choice is not None
    assert np.isnan(result.prior_choice.log_likelihood[0])
    assert "nan" in repr(result.prior_choice)


def test_two_baskets_are_enough_to_choose() -> None:
    result = fit(Baskets.from_lists([[0], [1]], n_items=3), rng=0, model="dpp", nonempty=False)
    assert result.prior_choice is not None
    assert len(result.prior_choice.strengths) > 1
    assert np.all(np.isfinite(result.prior_choice.log_likelihood[:-1]))


def test_weights_that_are_no_whole_numbers_stay_with_their_basket() -> None:
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 60)
    choice = fit(
        Baskets.from_lists(list(FEW), n_items=6, weights=weights), rng=0, model="dpp", nonempty=False
    ).prior_choice
    assert choice is not None
    np.testing.assert_allclose(np.sort(choice.weights / choice.weights.sum()), np.sort(weights / weights.sum()))


def test_counts_are_judged_as_the_same_baskets_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same law, over many draws of the folds: of how likely independent items make unseen baskets."""
    monkeypatch.setattr(prior_choice, "STRENGTHS", (np.inf,))
    single = repelling(100)
    counted = single.deduplicated()
    assert len(counted) < 40
    found = np.array(
        [
            [
                (choice.log_likelihood[0], choice.held_out[0] ** 2 @ choice.weights / 100)
                for baskets in (single, counted)
                for choice in [choose_prior(Problem(baskets, 1), method(), seed, lambda n: None)]
            ]
            for seed in range(100)
        ]
    )  # (n_seeds, 2, 2)
    apart = np.diff(found.mean(axis=0), axis=0)[0]
    error = np.sqrt((found.var(axis=0) / 100).sum(axis=0))
    assert np.all(np.abs(apart) < 4 * error)
    np.testing.assert_allclose(found[:, 1].std(axis=0), found[:, 0].std(axis=0), rtol=0.5)


def test_thirty_million_baskets_by_weight_choose_as_their_kinds_deserve() -> None:
    """No kind of basket is unseen as a whole, which would make every model but independent items look bad."""
    counts = repelling(1500).deduplicated()
    result = fit(counts.reweighted(20_000.0), rng=0, model="dpp", nonempty=False)
    assert result.dpp.learned.weight == 30_000_000
    assert result.prior <= 0.1
    choice = result.prior_choice
    assert choice is not None
    assert choice.weights.sum() == 6_000_000  # one fold is enough
    assert len(choice.weights) <= len(counts)


def test_a_few_baskets_of_enormous_weight_are_not_taken_one_by_one() -> None:
    choice = fit(
        Baskets.from_lists([[0], [1], [0, 1], []], weights=[1e20, 1e20, 3e19, 1e20]), rng=0, model="dpp", nonempty=False
    ).prior_choice
    assert choice is not None
    assert choice.held_out.shape[1] == 4


@pytest.mark.parametrize("learner", ["em", "k-ascent", "natural-em", "adam"])
def test_the_strength_is_chosen_for_any_learner_that_is_asked_to(learner: str) -> None:
    result = fit(FEW, learner, prior="auto", rng=0, max_iter=30, tol=1e-3)
    assert result.prior_choice is not None
    assert result.prior == result.prior_choice.strength
    assert np.all(np.isfinite(result.prior_choice.log_likelihood[:-1]))


def test_strengths_whose_models_were_cut_short_by_the_time_limit_do_not_count() -> None:
    """What a start predicts says nothing about what would have been learned."""
    result = fit(FEW, rng=3, max_seconds=1e-9, model="dpp", nonempty=False)
    assert result.prior_choice is not None
    assert result.prior_choice.strengths.tolist() == [np.inf]
    assert result.prior == np.inf
    plenty = fit(FEW, rng=3, threads=1, max_seconds=1e9, model="dpp", nonempty=False).prior_choice
    assert plenty is not None
    assert chosen_for_few().prior == plenty.strength


def test_ctrl_c_ends_the_choice_and_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def endless(kernel: Kernel, *_: Any) -> Iterator[Step]:
        while True:
            steps.append(threading.current_thread().name)
            if len(steps) % 20 == 10:  # again if it came just before the main thread went to sleep
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.02)
            yield Step(kernel, -1.0 + len(steps) * 1e-3, 1.0, 1)

    monkeypatch.setitem(LEARNERS, "endless", Learner("endless", endless, still_to_gain))
    with pytest.raises(KeyboardInterrupt):
        fit(FEW, "endless", prior="auto", rng=0, threads=2, tol=0)
    assert 10 <= len(steps) < 150  # each of two folds would have gone on to its limit
    assert {name.rsplit("_", 1)[0] for name in steps} == {"dpplearn-fold"}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dpplearn-fold")]


def test_an_error_in_a_fold_comes_out_and_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Iterator[Step]:
        raise ZeroDivisionError("in a fold")
        yield

    monkeypatch.setitem(LEARNERS, "broken", Learner("broken", broken, still_to_gain))
    with pytest.raises(ZeroDivisionError, match="in a fold"):
        fit(FEW, "broken", prior="auto", rng=0, threads=2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dpplearn-fold")]


def test_equal_weights_of_any_size_choose_as_plain_baskets_do() -> None:
    """Equal baskets are not taken for one kind of basket that is seen or unseen as a whole."""
    baskets = dpplearn.datasets.make_registries("safety", 600, rng=0)
    plain = fit(baskets, rng=0, max_iter=3, model="dpp", nonempty=False)  # once the strength is chosen
    for scale in (1.1, 1 / 600):
        scaled = fit(baskets.reweighted(scale), rng=0, max_iter=3, model="dpp", nonempty=False)
        assert scaled.prior_choice is not None
        assert plain.prior_choice is not None
        assert scaled.prior_choice.log_likelihood[0] == pytest.approx(plain.prior_choice.log_likelihood[0], abs=0.02)
        assert abs(np.log10(scaled.prior) - np.log10(plain.prior)) < 0.6
