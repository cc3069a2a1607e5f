"""Starts: what every initialiser promises, and how a model becomes a start for other data."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputWarning
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.independent import independent
from dpplearn.distributions.statistics import mean_log_likelihood
from dpplearn.learners.starts import INITIALISERS, adapted, moments, wishart
from helpers.problems import PROBLEMS, random_kernel, sampled

fit_dpp = partial(dl.fit_dpp, shrinkage=0)

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("init", INITIALISERS)
def test_every_start_is_a_kernel_that_gives_every_basket_a_probability(init: str, problem: str) -> None:
    baskets = PROBLEMS[problem]
    start = INITIALISERS[init](baskets, np.random.default_rng(1))
    V = start.eigenvectors
    np.testing.assert_allclose(V.T @ V, np.eye(baskets.n_items), atol=1e-12)
    assert np.all(start.eigenvalues < 1)
    assert np.isfinite(mean_log_likelihood(start, baskets))


def test_wishart_is_x_x_transposed_over_n_from_the_generator() -> None:
    start = wishart(PROBLEMS["weighted"], np.random.default_rng(5))
    X = np.random.default_rng(5).standard_normal((6, 6))
    np.testing.assert_allclose(start.L, X @ X.T / 6, atol=1e-12)


def test_moments_has_the_frequencies_and_the_missing_pairs() -> None:
    baskets = Baskets.from_lists([[0], [1], [0, 2], [1, 2]], n_items=3)  # 0 and 1 never meet; others as by chance
    K = moments(baskets, RNG).K
    np.testing.assert_allclose(K, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.5]], atol=2e-3)


def test_moments_raises_as_many_zeros_as_the_largest_basket_needs() -> None:
    baskets = Baskets.from_lists([[0, 1, 2, 3], [1, 3], [0, 2]], n_items=7)  # eigenvalues 4/3, 2/3, 2/3, 0, and of the
    start = moments(baskets, RNG)  # items that do not occur 0, 0, 0: to raise these would not help the largest basket
    np.testing.assert_allclose(np.sort(start.eigenvalues), [0, 0, 0, 0.001, 2 / 3, 2 / 3, 0.999], atol=1e-12)
    np.testing.assert_array_equal(start.K.diagonal()[4:], 0)
    assert np.isfinite(mean_log_likelihood(start, baskets))


def test_moments_says_that_it_is_diagonal_when_no_pair_repels() -> None:
    baskets = Baskets.from_lists([[0, 1], [0, 1], [], []], n_items=2)
    with pytest.warns(InputWarning):
        start = moments(baskets, RNG)
    np.testing.assert_allclose(start.K, np.diag([0.5, 0.5]))


def named(names: str, seed: int = 0) -> tuple[DPP, Baskets]:
    kernel = random_kernel(np.random.default_rng(seed), len(names))
    dpp = DPP(kernel, list(names))
    return dpp, Baskets.from_lists(dpp.sample(100, rng=seed), items=list(names))


def test_a_start_is_matched_by_label_and_other_items_are_marginalised_out() -> None:
    dpp, baskets = named("abcd")
    other = baskets.over(Catalogue.of(list("dbca")))
    start = adapted(dpp.kernel, dpp.catalogue, other)
    assert mean_log_likelihood(start, other) == pytest.approx(dpp.log_likelihood(baskets), rel=1e-12)
    fewer = Baskets.from_lists([["c"], ["a", "c"]], items=["c", "a"])
    start = adapted(dpp.kernel, dpp.catalogue, fewer)
    np.testing.assert_allclose(start.K, dpp.restrict(["c", "a"]).kernel.K, atol=1e-12)


def test_new_items_start_near_their_frequency_and_not_on_the_saddle() -> None:
    dpp, _ = named("abc")
    baskets = Baskets.from_lists([["a"], ["x"], ["b", "x"], ["c", "y"], []], items=["a", "x", "b", "c", "y"])
    start = adapted(dpp.kernel, dpp.catalogue, baskets)
    old = [0, 2, 3]
    np.testing.assert_allclose(start.K[np.ix_(old, old)], dpp.kernel.K, atol=0.1)
    assert start.K[1, 1] == pytest.approx(0.4, abs=0.1)
    assert np.abs(start.K[1, old]).min() > 1e-4


ALL_OCCUR = sampled(0, n=400, n_items=5)


@pytest.mark.parametrize("learner", ["lbfgs", "natural-em", "picard", "mm", "adam"])
def test_learners_leave_the_independent_model(learner: str) -> None:
    result = fit_dpp(ALL_OCCUR, learner, start=DPP(independent(ALL_OCCUR)), max_iter=200)
    assert result.log_likelihood > result.independent_log_likelihood + 0.02
