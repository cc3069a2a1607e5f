"""What the experiments run on: registries, splits, the paper's tables, and what is said where they are missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpplearn import Baskets, InputError
from dpplearn.experiments.registries import Source, admitted, off_diagonal_strength
from dpplearn.experiments.trials.authors import read_paper, run_names
from dpplearn.experiments.trials.trial import Job, Row, preparation
from helpers.problems import PROBLEMS
from helpers.registries import CATEGORIES
from helpers.registry_files import shoppers, write_registry


def singles(n_sets: int, n_items: int) -> list[list[int]]:
    return [[number % n_items] for number in range(n_sets)]


def lists(baskets: Baskets) -> list[tuple[int, ...]]:
    return [tuple(each.tolist()) for each in np.split(baskets.indices, baskets.offsets[1:-1])]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Bells are admitted, crumbs are not; furniture is the paper's name."""
    folder = tmp_path / "registries"
    for category, n_items in (("bells", 25), ("furniture", 26), ("crumbs", 6)):
        write_registry(folder, category, shoppers(80, n_items), n_items)
    return Source(folder, seed=0)


def test_a_split_has_every_registry_once_and_seven_tenths_to_learn_from(source: Source) -> None:
    train, test = source.split("bells", 0)
    assert (len(train), len(test)) == (56, 24)
    assert sorted(lists(train) + lists(test)) == sorted(lists(source.load("bells")))


def test_a_split_is_the_same_whatever_was_run_before(source: Source) -> None:
    first = source.split("bells", 3)
    source.split("furniture", 3)
    source.rng("wishart", "bells", 3).random(100)
    again = Source(source.folder, source.seed, reference=Path("elsewhere")).split("bells", 3)
    assert [lists(part) for part in again] == [lists(part) for part in first]


def test_trials_and_seeds_have_different_splits(source: Source) -> None:
    other_seed = Source(source.folder, seed=1)
    trains = [lists(source.split("bells", trial)[0]) for trial in range(3)] + [lists(other_seed.split("bells", 0)[0])]
    assert len({tuple(train) for train in trains}) == 4


def test_every_use_of_chance_has_a_stream_of_its_own() -> None:
    keys = [("split", "bells", 0), ("split", "bells", 1), ("wishart", "bells", 0), ("split", "hats", 0), ("moments",)]
    first = [float(Source(None, seed).rng(*key).random()) for seed in (0, 1) for key in keys]
    assert len(set(first)) == len(first)
    assert first[0] == Source(None, 0).rng(*keys[0]).random()


def test_the_papers_categories_come_first_and_in_its_order(tmp_path: Path) -> None:
    for category in ("zithers", "furniture", "bells", "feeding"):
        write_registry(tmp_path, category, [[0]], 1)
    assert Source(tmp_path, 0).categories == ("feeding", "furniture", "bells", "zithers")


def test_all_admitted_categories_are_chosen_where_none_is_named(source: Source) -> None:
    assert source.chosen([]) == ("furniture", "bells")


def test_categories_are_chosen_in_one_order_however_they_are_named(source: Source) -> None:
    assert source.chosen(["bells", "furniture"]) == source.chosen(["furniture", "bells"]) == ("furniture", "bells")


def test_a_misspelt_category_is_answered_with_the_near_one(source: Source) -> None:
    with pytest.raises(InputError, match=r"no category 'furnitur'; did you mean furniture\? choose from furniture, b"):
        source.chosen(["furnitur"])


def test_a_category_like_no_other_is_answered_with_those_there_are(source: Source) -> None:
    with pytest.raises(InputError, match="no category 'xyz'; choose from furniture, bells, crumbs"):
        source.chosen(["bells", "xyz"])


def test_choosing_none_but_small_categories_says_what_the_paper_asks_for(source: Source) -> None:
    with pytest.raises(InputError, match="crumbs: the paper asks for at least 25 items and twice as many"):
        source.chosen(["crumbs"])


@pytest.mark.parametrize("folder", ["empty", "not there"])
def test_missing_registries_are_asked_for_by_name(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        Source(tmp_path / folder, 0).chosen([])
    for part in (folder, "1_100_100_100_<category>_regs.csv", "<category>_item_names.txt", "--data", "--generated"):
        assert part in str(error.value)


def test_a_category_without_its_names_is_an_input_error(source: Source) -> None:
    assert source.folder is not None
    (source.folder / "1_100_100_100_bells_item_names.txt").unlink()
    with pytest.raises(InputError, match="bells_item_names"):
        Source(source.folder, 0).chosen([])


@pytest.mark.parametrize(
    ("n_sets", "n_items", "enough"), [(72, 25, True), (71, 25, False), (72, 24, False), (75, 26, True), (74, 26, False)]
)
def test_a_category_is_admitted_from_25_items_and_2N_training_sets_on(n_sets: int, n_items: int, enough: bool) -> None:
    assert admitted(Baskets.from_lists(singles(n_sets, n_items), n_items=n_items)) is enough


@pytest.mark.parametrize("problem", ["sampled from a DPP", "an item that never occurs", "attracting"])
def test_off_diagonal_strength_is_that_of_the_formula(problem: str) -> None:
    baskets = PROBLEMS[problem]
    N, sets = baskets.n_items, [set(each) for each in lists(baskets)]
    M = [[sum({i, j} <= Y for Y in sets) / len(sets) for j in range(N)] for i in range(N)]
    of_all = sum(M[i][j] ** 2 for i in range(N) for j in range(N)) ** 0.5
    of_diagonal = sum(M[i][i] ** 2 for i in range(N)) ** 0.5
    assert off_diagonal_strength(baskets) == pytest.approx(of_all / of_diagonal / N, rel=1e-12)


def test_preparation_counts_sets_and_their_sizes(tmp_path: Path) -> None:
    write_registry(tmp_path, "bells", [[0], [1], [0, 1, 2], [2, 0], [1]], 4)
    row = preparation(Job("preparation", "bells"), Source(tmp_path, 0))
    found = {name: row[name] for name in ("n_items", "n_train", "n_test", "mean_size", "largest_size", "admitted")}
    assert found == {"n_items": 4, "n_train": 3, "n_test": 2, "mean_size": 1.6, "largest_size": 3, "admitted": False}


def test_generated_registries_are_those_of_their_seed() -> None:
    furniture = [lists(Source(None, seed).load("furniture")) for seed in (0, 0, 1)]
    assert furniture[0] == furniture[1] != furniture[2]
    assert Source(None, 0).kind == "generated"


def test_every_generated_category_is_admitted() -> None:
    assert Source(None, 0).chosen([]) == tuple(CATEGORIES)


@pytest.fixture(scope="module")
def prepared(shared: Path) -> dict[str, Row]:
    source = Source(shared / "data" / "registries", 0)
    return {category: preparation(Job("preparation", category), source) for category in source.categories}


def test_the_original_registries_have_the_papers_sizes(shared: Path, prepared: dict[str, Row]) -> None:
    paper = json.loads((shared / "reference" / "paper_tables.json").read_text())["categories"]
    assert len(paper) == 13
    ours = {category: (prepared[category]["n_items"], prepared[category]["n_train"]) for category in paper}
    assert ours == {category: (each["n_items"], each["training_registries"]) for category, each in paper.items()}


def test_four_of_the_original_categories_are_not_admitted(shared: Path, prepared: dict[str, Row]) -> None:
    left_out = {category for category, row in prepared.items() if not row["admitted"]}
    assert left_out == {"decor", "gifts", "moms", "pottytrain"}
    assert Source(shared / "data" / "registries", 0).chosen([]) == tuple(CATEGORIES)


@pytest.mark.parametrize(("column", "average"), [("n_items", 71), ("n_train", 8585)])
def test_the_averages_over_categories_are_the_papers(prepared: dict[str, Row], column: str, average: int) -> None:
    assert round(np.mean([row[column] for row in prepared.values() if row["admitted"]])) == average


def test_off_diagonal_strength_is_little_but_one_over_N(prepared: dict[str, Row]) -> None:
    products = [row["n_items"] * row["strength"] for row in prepared.values() if row["admitted"]]
    assert min(products) >= 1.0
    assert max(products) <= 1.14


def test_categories_strong_and_weak_off_the_diagonal_are_those_the_paper_names(
    shared: Path, prepared: dict[str, Row]
) -> None:
    named = json.loads((shared / "reference" / "paper_tables.json").read_text())["offdiagonal_strength"]
    d = {category: row["strength"] for category, row in prepared.items() if row["admitted"]}
    assert {category for category in d if d[category] > 0.025} == set(named["above_0.025"])
    assert {category for category in d if d[category] < 0.012} >= set(named["below_0.012"])


def test_the_papers_tables_are_read_as_they_are(shared: Path) -> None:
    paper = read_paper(shared / "reference")
    assert paper is not None
    assert paper["averages"] == {"wishart": 3.76, "moments_all": 0.41, "moments_2N": 4.55}
    assert set(paper["categories"]) == set(CATEGORIES)


def test_without_a_reference_folder_there_are_no_tables_and_no_runs(tmp_path: Path) -> None:
    assert read_paper(None) is read_paper(tmp_path) is None
    assert run_names(None) == run_names(tmp_path) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"source": "?"}'])
def test_a_file_without_the_papers_tables_is_an_input_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "paper_tables.json").write_text(text)
    with pytest.raises(InputError, match="does not hold the paper's tables"):
        read_paper(tmp_path)


def test_runs_are_named_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "authors_runs").mkdir()
    for name in ("safety_wishart_1.npz", "carseats_moments_0.npz", "README.md", "notes.npz"):
        (tmp_path / "authors_runs" / name).touch()
    assert run_names(tmp_path) == ["carseats_moments_0", "safety_wishart_1"]
