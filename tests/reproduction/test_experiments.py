"""One trial of each experiment: the columns of a row have the values that their definitions give."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpplearn import DPP, Baskets, fit_dpp
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import mean_log_likelihood
from dpplearn.learners.starts import moments, wishart
from helpers.problems import PROBLEMS, random_kernel
from helpers.registries import shoppers, write_registry
from reproduction import textbook
from reproduction.data import Source
from reproduction.experiments import (
    EXPERIMENTS,
    FULL,
    LEARNERS,
    QUICK,
    Row,
    Trial,
    index_sets,
    plan,
    unchecked_log_likelihood,
)

N_ITEMS, N_SETS = 8, 60


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Two categories. Two items of bells do not occur in the first 2N training sets of trial 0."""
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "bells", shoppers(N_SETS, N_ITEMS), N_ITEMS)
    write_registry(folder, "cups", shoppers(40, 6, seed=1), 6)
    return Source(folder)


def run(source: Source, experiment: str, number: int = 0, category: str = "bells") -> Row:
    return EXPERIMENTS[experiment](source, Trial(experiment, category, number))


@pytest.fixture(scope="module")
def from_wishart(source: Source) -> Row:
    return run(source, "wishart")


def test_log_likelihoods_are_means_over_the_sets_of_the_split(source: Source) -> None:
    row = run(source, "moments", 1)
    train, test = source.split("bells", 1)
    for name, learner in LEARNERS.items():
        model = fit_dpp(train, learner, init="moments").model
        assert row[f"{name}_train"] == pytest.approx(np.mean([model.log_prob(Y) for Y in train]), rel=1e-9)
        assert row[f"{name}_test"] == pytest.approx(np.mean([model.log_prob(Y) for Y in test]), rel=1e-9)
    p = {item: np.mean([item in Y for Y in train]) for item in train.items}
    independent = np.mean([sum(np.log(p[i] if i in Y else 1 - p[i]) for i in train.items) for Y in test])
    assert row["independent_test"] == pytest.approx(independent)


def test_zeros_are_those_of_the_first_step_of_k_ascent_and_those_that_em_approaches(
    source: Source, from_wishart: Row
) -> None:
    train, _ = source.split("bells", 0)
    start = wishart(train, source.rng("wishart", "bells", 0))
    lam = fit_dpp(train, "em", start=DPP(start, train.items)).model.kernel.eigenvalues
    assert from_wishart["em_zeros"] == sum(lam < 1e-10) > sum(lam == 0)
    G = textbook.kernel_gradient(start.K, index_sets(train), train.weights)
    for step in 0.5 ** np.arange(20):
        lam, V = np.linalg.eigh(start.K + step * G)
        if mean_log_likelihood(SpectralDPP(np.clip(lam, 0, 1), V), train) > mean_log_likelihood(start, train):
            break
    assert from_wishart["ka_first_zeros"] == sum(lam <= 0) > 0


def test_a_smaller_tolerance_continues_the_same_trial(source: Source, from_wishart: Row) -> None:
    small = run(source, "wishart_small_tol")
    assert small["independent_test"] == from_wishart["independent_test"]
    assert small["ka_first_zeros"] == from_wishart["ka_first_zeros"]
    for name in LEARNERS:
        assert small[f"{name}_iterations"] > from_wishart[f"{name}_iterations"]
        assert small[f"{name}_train"] > from_wishart[f"{name}_train"]


def test_no_learner_leaves_a_diagonal_kernel(source: Source) -> None:
    row = run(source, "diagonal")
    for name in LEARNERS:
        assert row[f"{name}_off_diagonal"] == pytest.approx(0, abs=1e-12)
        assert row[f"{name}_test"] == pytest.approx(row["independent_test"], abs=1e-6)


def test_with_2N_training_sets_seen_and_possible_are_means_over_those_test_sets(source: Source) -> None:
    row = run(source, "moments_2N")
    train, test = source.split("bells", 0)
    train = train.subset(np.arange(2 * N_ITEMS))
    start = moments(train, np.random.default_rng(0))
    values = {
        name: np.array([fit_dpp(train, learner, start=DPP(start, train.items)).model.log_prob(Y) for Y in test])
        for name, learner in LEARNERS.items()
    }
    seen_items = {item for Y in train for item in Y}
    seen = np.array([set(Y) <= seen_items for Y in test])
    possible = np.isfinite(values["em"]) & np.isfinite(values["ka"])
    assert 0 < possible.sum() < seen.sum() < len(test)
    for name in LEARNERS:
        assert row[f"{name}_test"] == -math.inf
        assert row[f"{name}_test_seen"] == pytest.approx(values[name][seen].mean(), rel=1e-9)
        assert row[f"{name}_test_possible"] == pytest.approx(values[name][possible].mean(), rel=1e-9)


@pytest.mark.parametrize("experiment", ["wishart", "moments", "moments_2N"])
def test_the_printed_algorithms_have_the_split_and_the_start_of_the_learners(source: Source, experiment: str) -> None:
    printed, ours = (run(source, name, 2, "cups") for name in (f"{experiment}_textbook", experiment))
    for column in ("em_iterations", "ka_iterations"):
        assert printed[column] == ours[column]
    for column in ("em_train", "em_test", "ka_train", "ka_test"):
        assert printed[column] == pytest.approx(ours[column], rel=1e-9)


def test_the_unchecked_likelihood_is_that_of_possible_sets_and_rounding_or_minus_infinity_of_others() -> None:
    baskets, kernel = PROBLEMS["weighted"], random_kernel(np.random.default_rng(3))
    expected = np.average(DPP(kernel).log_prob(baskets), weights=baskets.weights)
    assert unchecked_log_likelihood(kernel.K, baskets) == pytest.approx(expected, rel=1e-9)
    kernel = SpectralDPP(np.array([0, 0, 0, 0.2, 0.5, 0.7]), kernel.eigenvectors)
    larger_than_rank = Baskets.from_lists([[0, 1, 2, 3], [1, 2, 3, 4, 5]], n_items=6)
    assert np.all(np.isneginf(DPP(kernel).log_prob(larger_than_rank)))
    assert unchecked_log_likelihood(kernel.K, larger_than_rank) < -30
    assert unchecked_log_likelihood(np.diag([0.0, 0.5]), Baskets.from_lists([[0], [1]], n_items=2)) == -math.inf


@pytest.mark.parametrize("name", ["furniture_wishart_0", "carseats_moments_0"])
def test_the_learners_reproduce_the_runs_of_the_authors(shared: Path, name: str) -> None:
    row = EXPERIMENTS["authors"](Source(shared / "data" / "registries"), Trial("authors", name))
    for model in LEARNERS:
        assert row[f"{model}_test"] == pytest.approx(row[f"authors_{model}_test"], abs=1e-6)
        assert row[f"{model}_iterations"] == row[f"authors_{model}_iterations"]


def test_the_plan_has_every_experiment_and_every_trial_once(shared: Path) -> None:
    source = Source(shared / "data" / "registries")
    full = plan(source, ["safety", "toys"], FULL)
    assert len({*full}) == len(full)
    counts = Counter(trial.experiment for trial in full)
    assert counts["wishart"] == counts["moments"] == counts["moments_2N"] == 2 * 25
    assert counts["authors"] == 3  # of safety; none was recorded for toys
    assert set(counts) == set(EXPERIMENTS)
    assert {trial.experiment for trial in plan(source, ["safety"], QUICK)} == set(EXPERIMENTS)
