"""The prior: its sets have the law of independent items, and a fit with it is a fit to the data and those sets."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from dpplearn import DPP, Baskets, InputError, Stop, fit, load
from dpplearn.data.catalogue import Catalogue
from dpplearn.datasets.registries import make_registries
from dpplearn.fitting import prior
from dpplearn.fitting.prior import ENDS, centre, how_many, pseudo_baskets, with_prior
from dpplearn.kernels.independent import before_truncation
from dpplearn.kernels.symmetric.sizes import log_size_distribution
from dpplearn.learners.registry import learners_of
from helpers import oracle
from helpers.problems import PROBLEMS, sampled
from helpers.strategies import plain

SMALL = {name: baskets for name, baskets in PROBLEMS.items() if baskets.n_items <= 6}
SMALL["rare items"] = Baskets.from_lists([[0], [1, 2], []], n_items=6, weights=[1, 2, 2000])
DIAGONAL = "ignore:no pair of items occurs together less often"


def smoothed(baskets: Baskets) -> np.ndarray:
    """(count + ½)/(n + 1), by counting."""
    counts = np.zeros(baskets.n_items)
    for row, weight in enumerate(baskets.weights):
        counts[baskets.indices[baskets.offsets[row] : baskets.offsets[row + 1]]] += weight
    return (counts + 0.5) / (baskets.total_weight + 1)


def independent_law(p: np.ndarray) -> np.ndarray:
    """Π p Π (1 − p) of every subset."""
    return np.array([np.prod([p[i] if i in Y else 1 - p[i] for i in range(len(p))]) for Y in oracle.subsets(len(p))])


def law_of(baskets: Baskets) -> np.ndarray:
    law = np.zeros(2**baskets.n_items)
    for basket, weight in zip(baskets, baskets.weights, strict=True):
        law[oracle.index(basket)] += weight
    return law


def many_items(n_items: int = 30, n: int = 300) -> Baskets:
    """A few that are in many baskets and many that are in few, as in a shop: four items a basket, about."""
    p = np.arange(1, n_items + 1) ** -1.2
    p = np.minimum(4 * p / p.sum(), 0.7)
    return Baskets.from_matrix((np.random.default_rng(0).random((n, n_items)) < p).astype(int))


MANY = many_items()
ALMOST_SINGLE = Baskets.from_lists(  # of items that occur alone nearly always
    [*([i] for i in range(20)), [0, 1]], n_items=20, weights=[*np.full(20, 5000.0), 1]
)


@cache
def sets_of_many() -> Baskets:
    return pseudo_baskets(MANY)


@pytest.mark.parametrize("problem", SMALL)
def test_of_few_items_the_sets_are_all_subsets_with_the_smoothed_independent_law(problem: str) -> None:
    baskets = SMALL[problem]
    sets = pseudo_baskets(baskets)
    assert len(sets) == 2**baskets.n_items
    np.testing.assert_allclose(law_of(sets), independent_law(smoothed(baskets)), rtol=1e-12)


@pytest.mark.parametrize("problem", ["weighted", "an item that always occurs", "without empty baskets"])
def test_without_the_empty_set_the_law_is_that_of_the_others_and_has_the_smoothed_frequencies(problem: str) -> None:
    baskets = SMALL[problem].subset(SMALL[problem].sizes > 0)
    sets = pseudo_baskets(baskets, nonempty=True)
    expected = independent_law(before_truncation(smoothed(baskets)))
    expected[0] = 0
    np.testing.assert_allclose(law_of(sets), expected / expected.sum(), rtol=1e-10)
    np.testing.assert_allclose(sets.frequencies(), smoothed(baskets), rtol=1e-9)


@pytest.mark.parametrize("nonempty", [False, True])
def test_weights_add_up_to_one_and_the_sets_are_the_same_every_time(nonempty: bool) -> None:
    sets = pseudo_baskets(MANY, nonempty=nonempty)
    assert sets.total_weight == pytest.approx(1, abs=1e-12)
    assert plain(sets) == plain(pseudo_baskets(MANY.subset(np.arange(len(MANY))[::-1]), nonempty=nonempty))
    assert np.any(sets.sizes == 0) != nonempty
    assert sets.catalogue == MANY.catalogue


def test_of_more_items_small_sets_are_all_there_and_sizes_have_about_their_probability() -> None:
    sets = sets_of_many()
    law = np.exp(log_size_distribution(centre(MANY)))
    found = np.bincount(sets.sizes, sets.weights, len(law))
    np.testing.assert_allclose(found, law, atol=0.02)
    for size, count in enumerate([1, 30]):
        assert len(sets.subset(sets.sizes == size).deduplicated()) == count
    p = smoothed(MANY)
    alone = sets.subset(sets.sizes == 1).deduplicated()
    np.testing.assert_allclose(alone.weights, np.prod(1 - p) * p / (1 - p), rtol=0.02)


def errors_of_pairs(baskets: Baskets, sets: Baskets) -> tuple[float, float]:
    """How far the frequencies of pairs are from chance, and how far those of as many plain draws would be."""
    p, upper = smoothed(baskets), np.triu_indices(baskets.n_items, 1)
    chance = np.outer(p, p)[upper]
    found = sets.pair_frequencies()[upper] - chance
    return float(np.sqrt(np.mean(found**2))), float(np.sqrt(np.mean(chance * (1 - chance)) / len(sets)))


def test_where_sets_are_plenty_pairs_meet_as_often_as_by_chance_much_more_exactly_than_in_plain_draws() -> None:
    baskets = make_registries("safety", 500, rng=0)
    sets = pseudo_baskets(baskets)
    found, plain_draws = errors_of_pairs(baskets, sets)
    assert found < 0.1 * plain_draws
    np.testing.assert_allclose(sets.frequencies(), smoothed(baskets), rtol=0.02)


@pytest.mark.parametrize("n_items", [20, 60, 100])
def test_where_many_items_are_rare_their_sets_do_not_spoil_the_frequencies_of_the_others(n_items: int) -> None:
    baskets = many_items(n_items)
    sets = pseudo_baskets(baskets)
    found, plain_draws = errors_of_pairs(baskets, sets)
    assert found < 0.5 * plain_draws
    np.testing.assert_allclose(sets.frequencies(), smoothed(baskets), rtol=0.25)


def test_baskets_of_almost_one_item_each_have_a_prior_of_almost_one_item_each() -> None:
    """Most of the law before truncation is then the empty set, and must not take the others' place."""
    sets, m = pseudo_baskets(ALMOST_SINGLE, nonempty=True), smoothed(ALMOST_SINGLE)
    assert len(sets.subset(sets.sizes == 1).deduplicated()) == 20
    np.testing.assert_allclose(sets.frequencies(), m, rtol=0.02)
    assert sets.weights @ sets.sizes == pytest.approx(m.sum(), rel=1e-3)


def test_large_sets_stay_where_the_empty_set_has_a_probability_too_small_for_a_number() -> None:
    baskets = Baskets.from_lists([range(60)], weights=[1e6])
    assert np.exp(log_size_distribution(centre(baskets))[0]) == 0
    sets = pseudo_baskets(baskets, nonempty=True)
    assert sets.weights[sets.sizes == 60].sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("p", [0.0, 1e-4, 0.01, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("n", [1, 2, 30, 120, 1000])
def test_how_many_sets_is_what_pairs_ask_for_within_bounds(n: int, p: float) -> None:
    found = how_many(np.full(n, p))
    size = n * p
    work = found * size**2 * (10 + size) / 20  # nanoseconds of an evaluation, about
    most = min(prior.MOST_PER_ITEM * n, prior.MOST_SETS)
    assert found <= most
    if found > prior.FEWEST:
        assert work <= 10 * prior.WORK * (1 + 1e-9)
    too_much = work >= 9.9 * prior.WORK
    assert too_much or found >= min(prior.FEWEST_PER_ITEM * n, prior.MOST_SETS)
    assert too_much or found == most or found * p**2 * n * (n - 1) >= 0.99 * prior.TIMES_A_PAIR * n * (n - 1)
    assert found >= how_many(np.full(n, min(p + 0.05, 1.0)))


def test_an_infinitely_strong_prior_is_the_diagonal_of_smoothed_frequencies() -> None:
    np.testing.assert_allclose(centre(MANY).K, np.diag(smoothed(MANY)), atol=1e-15)
    filled = MANY.subset(MANY.sizes > 0)
    np.testing.assert_allclose(
        centre(filled, nonempty=True).K, np.diag(before_truncation(smoothed(filled))), atol=1e-15
    )


@pytest.mark.parametrize("problem", ["weighted", "attracting", "one item"])
@pytest.mark.parametrize(("nonempty", "n_ends"), [(False, 2), (True, 1)])
def test_the_prior_is_added_to_the_data_with_a_trace_of_both_ends(problem: str, nonempty: bool, n_ends: int) -> None:
    baskets = SMALL[problem]
    pseudo = pseudo_baskets(baskets)
    both = with_prior(baskets, pseudo, 0.7, nonempty=nonempty)
    total = baskets.total_weight
    assert both.total_weight == pytest.approx(total * (1 + 0.7 + n_ends * ENDS), rel=1e-12)
    expected = law_of(baskets) + 0.7 * total * law_of(pseudo)
    expected[[-1] if nonempty else [0, -1]] += 1e-6 * total
    np.testing.assert_allclose(law_of(both), expected, rtol=1e-12)
    assert len(both) == len(both.deduplicated())


def test_no_prior_is_the_data_alone_to_the_last_bit() -> None:
    baskets = SMALL["weighted"]
    assert plain(with_prior(baskets, pseudo_baskets(baskets), 0.0)) == plain(baskets.deduplicated())


def test_a_prior_far_too_weak_to_matter_still_brings_both_ends() -> None:
    """Sets of which the pseudo-baskets themselves have none."""
    both = with_prior(MANY, sets_of_many(), 1e-12)
    assert both.weights[both.sizes == MANY.n_items] == pytest.approx(1e-6 * len(MANY), rel=1e-3)
    assert 1e-7 * len(MANY) < both.weights[both.sizes == 0].sum() - np.count_nonzero(MANY.sizes == 0) < 1e-3


@pytest.mark.filterwarnings(DIAGONAL)
@pytest.mark.parametrize("strength", [0.01, 1.0, np.inf])
@pytest.mark.parametrize("problem", SMALL)
def test_with_a_prior_no_set_is_impossible(problem: str, strength: float) -> None:
    baskets = SMALL[problem]
    result = fit(baskets, prior=strength, tol=1e-3, nonempty=False)
    P = oracle.probabilities_from_K(result.kernel.K)
    assert P.sum() == pytest.approx(1)
    each = [result.dpp.log_prob(Y) for Y in oracle.subsets(baskets.n_items)]
    assert np.all(np.isfinite(each))
    np.testing.assert_allclose(np.exp(each), P, atol=1e-9)
    assert np.all((result.kernel.eigenvalues > 0) & (result.kernel.eigenvalues < 1))


@pytest.mark.parametrize("problem", ["sampled from a DPP", "weighted", "an item that never occurs"])
def test_a_fit_with_a_prior_is_a_fit_to_the_data_beside_all_subsets(problem: str) -> None:
    """All subsets, written out by hand with their probabilities."""
    baskets, strength = SMALL[problem].as_counts(), 0.5
    n, total, subsets = baskets.n_items, baskets.total_weight, oracle.subsets(baskets.n_items)
    law = independent_law(smoothed(baskets))
    law[[0, -1]] += 1e-6 / strength
    lists, weights = [*baskets, *subsets], [*baskets.weights, *(strength * total * law)]
    written_out = fit(Baskets.from_lists(lists, n_items=n, weights=weights), prior=0, tol=1e-10, nonempty=False)
    result = fit(baskets, prior=strength, tol=1e-10, nonempty=False)
    assert result.history.log_likelihood[-1] == pytest.approx(written_out.log_likelihood, abs=1e-9)
    np.testing.assert_allclose(result.kernel.K, written_out.kernel.K, atol=1e-6)


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_the_reported_likelihood_is_that_of_the_data_and_the_history_that_of_what_was_learned_from(
    learner: str,
) -> None:
    baskets, strength = SMALL["weighted"].as_counts(), 2.0
    result = fit(baskets, learner, prior=strength, max_iter=8)
    assert result.log_likelihood == pytest.approx(result.dpp.log_likelihood(baskets), rel=1e-12)
    learned_from = with_prior(baskets, pseudo_baskets(baskets), strength)
    assert result.history.log_likelihood[-1] == pytest.approx(result.dpp.log_likelihood(learned_from), rel=1e-9)
    assert abs(result.history.log_likelihood[-1] - result.log_likelihood) > 0.01
    assert np.all(np.diff(result.history.log_likelihood) >= -1e-12)
    assert result.prior == strength
    assert result.prior_choice is None
    assert "2 of the data's weight" in repr(result)


@pytest.mark.parametrize("learner", ["auto", "em"])
def test_an_infinitely_strong_prior_gives_independent_items_in_closed_form(learner: str) -> None:
    baskets = SMALL["an item that never occurs"]
    result = fit(baskets, learner, prior=np.inf)
    np.testing.assert_allclose(result.kernel.K, np.diag(smoothed(baskets)), atol=1e-15)
    assert result.stop is Stop.CLOSED_FORM
    assert result.converged
    assert result.n_iter == 0
    assert result.log_likelihood == pytest.approx(result.dpp.log_likelihood(baskets), rel=1e-12)
    assert "infinitely strong: independent items" in repr(result)


def test_the_stronger_the_prior_the_less_likely_the_data() -> None:
    baskets = sampled(0, n=40)
    likelihoods = [
        fit(baskets, prior=strength, nonempty=False).log_likelihood for strength in (0, 0.01, 0.1, 1, 10, np.inf)
    ]
    assert np.all(np.diff(likelihoods) < -1e-5), likelihoods


def test_a_very_strong_prior_is_near_independent_items() -> None:
    baskets = sampled(0, n=40)
    strong, infinite = (fit(baskets, prior=strength, tol=1e-8, nonempty=False).kernel.K for strength in (1e4, np.inf))
    np.testing.assert_allclose(strong, infinite, atol=0.02)


def test_a_prior_keeps_the_names() -> None:
    baskets = Baskets.from_lists([["crib", "cot"], ["cot"], ["mat"]], items=["cot", "crib", "mat", "pail"])
    assert pseudo_baskets(baskets).catalogue is baskets.catalogue
    for strength in (1.0, np.inf):
        dpp = fit(baskets, prior=strength, nonempty=False).dpp
        assert dpp.catalogue == Catalogue.of(["cot", "crib", "mat", "pail"])
        assert np.isfinite(dpp.log_prob(["pail", "mat"]))


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_the_prior_is_chosen_for_auto_unless_told_otherwise_and_others_have_none(learner: str) -> None:
    result = fit(sampled(0, n=12, n_items=3), learner, max_iter=2)
    assert (result.prior_choice is not None) == (learner == "auto")
    if learner != "auto":
        assert result.prior == 0
        assert "prior" not in repr(result)


@pytest.mark.parametrize(
    "prior", [-1, -0.5, "much", "0.5", True, float("nan"), -np.inf, 1j, [1.0], np.ones(2), 1e308, 1e10]
)
def test_a_prior_that_is_none_is_refused(prior: Any) -> None:
    with pytest.raises(
        InputError, match=r"prior is .*; expected 'auto', a number from 0 \(no prior\) to 1e\+09, or inf"
    ):
        fit(SMALL["weighted"], prior=prior, nonempty=False)


@pytest.mark.parametrize("prior", [1, np.int64(1), np.float32(1)])
def test_any_number_is_a_strength_and_is_kept_with_the_model(prior: Any, tmp_path: Any) -> None:
    result = fit(SMALL["weighted"], prior=prior, max_iter=2, nonempty=False)
    assert result.prior == 1
    result.dpp.save(tmp_path / "model")
    assert load(tmp_path / "model").learned.prior == 1


@pytest.mark.parametrize("start", ["independent items", "the best"])
def test_a_given_start_is_at_least_kept_under_the_prior(start: str) -> None:
    """The start counts by what is learned from, not by the data alone. Independent items are one that auto leaves."""
    baskets = sampled(0, n=40)
    kernel = (
        centre(baskets) if start == "independent items" else fit(baskets, prior=100.0, tol=1e-7, nonempty=False).kernel
    )
    again = fit(baskets, prior=100.0, start=kernel, max_iter=0, nonempty=False)
    learned_from = with_prior(baskets, pseudo_baskets(baskets), 100.0)
    reached = DPP(again.kernel).log_likelihood(learned_from)
    assert reached >= DPP(kernel).log_likelihood(learned_from) - 1e-9
    assert again.history.log_likelihood[-1] == pytest.approx(reached, rel=1e-9)
