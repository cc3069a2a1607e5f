"""The algorithms as printed: they end where the library's learners do, and likelihoods without a rule for zero."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Kernel, fit
from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials.printed import (
    AXES,
    as_printed,
    as_sets,
    few_as_printed,
    growth,
    moments_as_printed,
    unruled_log_likelihood,
    wishart_as_printed,
)
from dpplearn.experiments.trials.trial import Job, Row, moments_start, moments_start_of_few, wishart_start
from dpplearn.learners.starts import wishart
from helpers.problems import PROBLEMS, random_kernel, sampled
from helpers.registry_files import shoppers, write_registry

LEARNERS = {"em": "em", "ka": "k-ascent"}
Trial = Callable[[Job, Source], Row]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "bells", shoppers(40, 6, seed=1), 6)
    return Source(folder, seed=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_printed_algorithms_agree_with_the_learners(weighted: bool) -> None:
    sets, test = sampled(0, 25), sampled(5, 30)
    weights = np.random.default_rng(0).random(len(sets)) if weighted else None
    train = Baskets.from_lists(list(sets), n_items=sets.n_items, weights=weights)
    start = wishart(train, np.random.default_rng(0))
    row = as_printed(train, test, start)
    for name, learner in LEARNERS.items():
        ours = fit(train, learner, start=start)
        assert row[f"{name}_iterations"] == ours.n_iter
        assert row[f"{name}_train"] == pytest.approx(ours.log_likelihood, rel=1e-9)
        assert row[f"{name}_test"] == pytest.approx(ours.dpp.log_likelihood(test), rel=1e-9)


@pytest.mark.parametrize(
    ("printed", "library"),
    [(wishart_as_printed, wishart_start), (moments_as_printed, moments_start), (few_as_printed, moments_start_of_few)],
)
def test_a_printed_trial_has_the_split_and_start_of_the_librarys(
    source: Source, printed: Trial, library: Trial
) -> None:
    theirs, ours = (run(Job("any", "bells", 2), source) for run in (printed, library))
    for column in ("n_items", "n_train", "n_distinct", "n_test", "em_iterations", "ka_iterations"):
        assert theirs[column] == ours[column]
    for column in ("em_train", "em_test", "ka_train", "ka_test"):
        assert theirs[column] == pytest.approx(ours[column], rel=1e-9)


@pytest.mark.parametrize("problem", ["sampled from a DPP", "weighted", "without empty baskets"])
def test_without_a_rule_for_zero_possible_sets_have_the_same_likelihood(problem: str) -> None:
    baskets = PROBLEMS[problem]
    kernel = random_kernel(np.random.default_rng(3))
    expected = np.average(DPP(kernel).log_prob(baskets), weights=baskets.weights)
    assert unruled_log_likelihood(kernel.K, baskets) == pytest.approx(expected, rel=1e-9)


def test_without_a_rule_for_zero_an_impossible_set_gets_what_rounding_left() -> None:
    _, V = np.linalg.eigh(random_kernel(np.random.default_rng(3)).K)
    kernel = Kernel(np.array([0, 0, 0, 0.2, 0.5, 0.7]), V)
    baskets = Baskets.from_lists([[0, 1, 2, 3], [1, 2, 3, 4, 5]], n_items=6)  # larger than the rank
    assert np.all(np.isneginf(DPP(kernel).log_prob(baskets)))
    assert unruled_log_likelihood(kernel.K, baskets) < -30  # and not NaN


def test_without_a_rule_for_zero_a_determinant_of_exactly_zero_is_minus_infinity() -> None:
    K = np.diag([0.0, 0.5, 0.5])
    assert unruled_log_likelihood(K, Baskets.from_lists([[0], [1]], n_items=3)) == -math.inf


def test_sets_are_the_baskets_with_the_empty_ones_among_them() -> None:
    sets = as_sets(Baskets.from_lists([[], [2, 0], [], [1], []], n_items=3))
    assert [each.tolist() for each in sets] == [[], [0, 2], [], [1], []]


@pytest.mark.parametrize("axis", AXES)
def test_along_an_axis_one_size_grows_and_the_others_stay(axis: str) -> None:
    sizes = dict(zip(("n", "N", "k"), zip(*AXES[axis], strict=True), strict=True))
    grows = sizes.pop(axis)
    assert list(grows) == sorted(set(grows))
    assert [len(set(stays)) for stays in sizes.values()] == [1, 1]
    assert all(k <= N for _, N, k in AXES[axis])


def test_growth_times_the_sizes_asked_for() -> None:
    row = growth(Job("growth", "k", 0, n_items=10, n_train=4, set_size=3), Source(None, 0))
    assert (row["n_items"], row["n_train"], row["set_size"]) == (10, 4, 3)
    assert min(row[f"{name}_seconds"] for name in ("em", "ka", "em_matrix", "ka_matrix")) > 0
