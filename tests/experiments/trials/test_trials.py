"""One trial of each experiment: the numbers in its row are what their columns say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Kernel, fit
from dpplearn.arrays import Floats
from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials.authors import authors_run
from dpplearn.experiments.trials.trial import (
    Job,
    Row,
    diagonal_start,
    first_2N,
    moments_start,
    moments_start_of_few,
    off_diagonal_share,
    only_of,
    wishart_start,
    wishart_start_to_small_tolerance,
)
from dpplearn.kernels.symmetric.statistics import mean_log_likelihood, statistics
from dpplearn.learners.starts import moments, wishart
from dpplearn.learners.symmetric.ascent import gradient
from helpers.registry_files import shoppers, write_registry

LEARNERS = {"em": "em", "ka": "k-ascent"}
N_ITEMS, N_SETS = 8, 60
each_learner = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """In the first trial's 2N training sets two items are missing that the other sets have."""
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "bells", shoppers(N_SETS, N_ITEMS), N_ITEMS)
    return Source(folder, seed=0)


@pytest.fixture(scope="module")
def few(source: Source) -> Row:
    return moments_start_of_few(Job("moments of 2N", "bells"), source)


@pytest.fixture(scope="module")
def from_wishart(source: Source) -> Row:
    return wishart_start(Job("wishart", "bells"), source)


def test_a_diagonal_kernel_has_no_share_off_the_diagonal() -> None:
    assert off_diagonal_share(Kernel(np.array([0.1, 0.5, 1.0]), np.eye(3))) == 0.0


def test_the_off_diagonal_share_counts_both_halves() -> None:
    kernel = Kernel.from_K([[0.5, 0.2], [0.2, 0.3]])
    assert off_diagonal_share(kernel) == pytest.approx(2 * 0.04 / (0.25 + 0.09 + 2 * 0.04))


def test_only_of_finds_baskets_without_any_other_item() -> None:
    baskets = Baskets.from_lists([[], [0], [0, 2], [1], [0, 1, 2], [2], []], n_items=4)
    allowed = np.array([True, False, True, False])
    assert only_of(baskets, allowed).tolist() == [True, True, True, False, False, True, True]


def test_few_are_the_first_2N_of_a_split(source: Source) -> None:
    train, _ = source.split("bells", 0)
    assert list(first_2N(train)) == list(train)[: 2 * N_ITEMS]


@each_learner
def test_a_row_has_the_mean_log_probability_of_the_sets_learned_from_and_tested_on(source: Source, name: str) -> None:
    row = moments_start(Job("moments", "bells", 1), source)
    train, test = source.split("bells", 1)
    model = fit(train, LEARNERS[name], "moments").dpp
    assert row[f"{name}_train"] == pytest.approx(np.mean([model.log_prob(each) for each in train]), rel=1e-9)
    assert row[f"{name}_test"] == pytest.approx(np.mean([model.log_prob(each) for each in test]), rel=1e-9)
    assert (row["n_train"], row["n_test"], row["n_distinct"]) == (42, 18, len(set(train)))


def test_independent_items_have_the_frequencies_of_the_training_sets(source: Source) -> None:
    row = moments_start(Job("moments", "bells", 1), source)
    train, test = source.split("bells", 1)
    p = {item: np.mean([item in Y for Y in train]) for item in train.items}
    by_hand = np.mean([sum(np.log(p[i] if i in Y else 1 - p[i]) for i in train.items) for Y in test])
    assert row["independent_test"] == pytest.approx(by_hand)


def test_zeros_are_eigenvalues_that_have_all_but_arrived(source: Source, from_wishart: Row) -> None:
    train, _ = source.split("bells", 0)
    lam = fit(train, "em", start=wishart(train, source.rng("wishart", "bells", 0))).kernel.eigenvalues
    assert from_wishart["em_zeros"] == sum(lam < 1e-10) > sum(lam == 0)


def test_the_first_step_of_k_ascent_truncates_as_one_made_by_hand(source: Source, from_wishart: Row) -> None:
    train, _ = source.split("bells", 0)
    start = wishart(train, source.rng("wishart", "bells", 0))
    V = start.eigenvectors
    G = V @ gradient(start, statistics(start, train)) @ V.T
    for step_size in 0.5 ** np.arange(20):
        lam = np.linalg.eigvalsh(start.K + step_size * G)
        candidate = Kernel.from_K(_clipped(start.K + step_size * G))
        if mean_log_likelihood(candidate, train) > mean_log_likelihood(start, train):
            break
    assert from_wishart["ka_first_zeros"] == sum(lam <= 0) > 0
    assert from_wishart["ka_first_ones"] == sum(lam >= 1)


def _clipped(K: Floats) -> Floats:
    lam, V = np.linalg.eigh(K)
    return np.asarray((V * np.clip(lam, 0, 1)) @ V.T)


def test_a_small_tolerance_goes_on_from_the_same_start_and_split(source: Source, from_wishart: Row) -> None:
    small = wishart_start_to_small_tolerance(Job("wishart to 1e-6", "bells"), source)
    for column in ("independent_train", "independent_test", "ka_first_zeros", "ka_first_ones"):
        assert small[column] == from_wishart[column]
    for name in LEARNERS:
        assert small[f"{name}_iterations"] > from_wishart[f"{name}_iterations"]
        assert small[f"{name}_train"] > from_wishart[f"{name}_train"]


def test_trials_have_wishart_starts_of_their_own(source: Source, from_wishart: Row) -> None:
    other = wishart_start(Job("wishart", "bells", 1), source)
    assert other["ka_train"] != from_wishart["ka_train"]


@each_learner
def test_a_suggested_set_names_different_items_and_no_more_than_the_rank(from_wishart: Row, name: str) -> None:
    found = from_wishart[f"{name}_set"]
    assert 0 < len(set(found)) == len(found) <= N_ITEMS
    assert set(found) <= {f"thing {number}" for number in range(1, N_ITEMS + 1)}
    if name == "ka":
        assert len(found) <= N_ITEMS - from_wishart["ka_zeros"]


@each_learner
def test_learning_from_a_diagonal_start_never_leaves_the_diagonal(source: Source, name: str) -> None:
    row = diagonal_start(Job("diagonal", "bells"), source)
    assert row[f"{name}_off_diagonal"] == 0.0
    assert row[f"{name}_train"] == pytest.approx(row["independent_train"], abs=1e-6)
    assert row[f"{name}_test"] == pytest.approx(row["independent_test"], abs=1e-6)


def test_seen_and_unseen_are_counted_over_the_2N_sets_learned_from(source: Source, few: Row) -> None:
    train, test = source.split("bells", 0)
    seen_items = {item for each in list(train)[: 2 * N_ITEMS] for item in each}
    assert few["n_train"] == 2 * N_ITEMS
    assert few["n_unseen_items"] == N_ITEMS - len(seen_items) > 0
    assert few["n_test_seen"] == sum(set(each) <= seen_items for each in test) < len(test)


def test_test_sets_with_an_unseen_item_are_impossible_under_both_models(few: Row) -> None:
    with_unseen = few["n_test"] - few["n_test_seen"]
    assert min(few["em_impossible"], few["ka_impossible"]) >= with_unseen > 0
    assert few["em_test"] == few["ka_test"] == -np.inf


@each_learner
def test_views_of_the_test_sets_are_means_over_exactly_those_sets(source: Source, few: Row, name: str) -> None:
    train, test = source.split("bells", 0)
    learned_from = train.subset(np.arange(2 * N_ITEMS))
    start = moments(learned_from, np.random.default_rng(0))
    values = {
        each: [DPP(fit(learned_from, learner, start=start).kernel, train.items).log_prob(Y) for Y in test]
        for each, learner in LEARNERS.items()
    }
    seen_items = {item for each in learned_from for item in each}
    seen = [value for value, Y in zip(values[name], test, strict=True) if set(Y) <= seen_items]
    finite = np.isfinite(values["em"]) & np.isfinite(values["ka"])
    assert few[f"{name}_impossible"] == sum(np.isneginf(values[name]))
    assert few[f"{name}_test_seen"] == pytest.approx(np.mean(seen), rel=1e-9)
    assert few["n_test_possible"] == sum(finite) < len(seen)
    assert few[f"{name}_test_possible"] == pytest.approx(np.mean(np.array(values[name])[finite]), rel=1e-9)


@pytest.mark.parametrize("run", ["furniture_wishart_0", "carseats_moments_0"])
def test_our_learners_end_where_the_authors_program_ended(shared: Path, run: str) -> None:
    row = authors_run(Job("authors", run), Source(shared / "data" / "registries", 0, shared / "reference"))
    for name in LEARNERS:
        assert row[f"{name}_test"] == pytest.approx(row[f"authors_{name}_test"], abs=1e-6)
        assert row[f"{name}_iterations"] == row[f"authors_{name}_iterations"]
