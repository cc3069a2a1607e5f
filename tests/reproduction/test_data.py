"""Registry files, random splits, the statistic d, and the message without registries."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpplearn import InputError
from helpers.problems import PROBLEMS
from helpers.registries import shoppers, write_registry
from reproduction.data import (
    CATEGORIES,
    PAPER,
    PAPER_RUNTIME_RATIO,
    Source,
    find_registries,
    off_diagonal_strength,
    read_registry,
    registry_files,
)


def write(folder: Path, sets: bytes, names: bytes) -> tuple[Path, Path]:
    paths = folder / "regs.csv", folder / "names.txt"
    for path, content in zip(paths, (sets, names), strict=True):
        path.write_bytes(content)
    return paths


TWO_NAMES = "1 toys: ball: red\n2 toys: bär\n"


def test_names_lack_the_category_and_empty_lines_are_empty_baskets(tmp_path: Path) -> None:
    for encoding in ("utf-8", "iso-8859-1"):
        found = read_registry(*write(tmp_path, b"2,1\r\n\r\n1\r\n", TWO_NAMES.encode(encoding)))
        assert found.items == ("ball: red", "bär")
        assert list(found) == [("ball: red", "bär"), (), ("ball: red",)]
    assert read_registry(*write(tmp_path, b"1\n", b"1 toys: ball\x85 large\n")).items == ("ball\x85 large",)


@pytest.mark.parametrize(
    ("sets", "names", "value"),
    [
        ("1\n0\n", TWO_NAMES, r"2.*'0'"),
        ("1\n1,3\n", TWO_NAMES, r"2.*'1,3'"),
        ("1,,2\n", TWO_NAMES, r"1.*'1,,2'"),
        ("", TWO_NAMES, r"regs.csv"),
        ("1\n", "1 ball\n", "'1 ball'"),
        ("1\n", "1 toys: ball\n3 toys: bear\n", r"2.*'3 toys: bear'"),
        ("1\n", "1 toys: ball\n2 toys: ball\n", "'ball'"),
    ],
)
def test_a_malformed_registry_file_is_an_error_with_the_offending_line(
    sets: str, names: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=value):
        read_registry(*write(tmp_path, sets.encode(), names.encode()))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    for category in ("bells", "hats"):
        write_registry(tmp_path, category, shoppers(80, 25), 25)
    return Source(tmp_path)


def test_a_split_contains_every_registry_once_and_depends_on_trial_and_seed_alone(source: Source) -> None:
    train, test = source.split("bells", 3)
    assert (len(train), len(test)) == (56, 24)
    assert sorted([*train, *test]) == sorted(source.load("bells"))
    source.split("hats", 3)
    source.rng("wishart", "bells", 3).random(100)
    assert list(Source(source.folder).split("bells", 3)[0]) == list(train)
    assert list(source.split("bells", 2)[0]) != list(train)
    assert list(Source(source.folder, seed=1).split("bells", 3)[0]) != list(train)


def test_off_diagonal_strength_is_that_of_the_formula() -> None:
    baskets = PROBLEMS["sampled from a DPP"]
    N, sets = baskets.n_items, [set(items) for items in baskets]
    M = np.array([[sum({i, j} <= Y for Y in sets) / len(sets) for j in range(N)] for i in range(N)])
    expected = np.sqrt((M**2).sum()) / np.sqrt((np.diag(M) ** 2).sum()) / N
    assert off_diagonal_strength(baskets) == pytest.approx(expected, rel=1e-12)


def write_all(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for category in CATEGORIES:
        for path in registry_files(folder, category):
            path.touch()
    return folder


def test_registries_are_searched_in_the_working_directory_and_then_in_the_shared_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPPLEARN_SHARED", str(tmp_path / "shared"))
    shared = write_all(tmp_path / "shared" / "data" / "registries")
    assert find_registries() == shared
    here = write_all(tmp_path / "data" / "registries")
    assert find_registries() == Path("data/registries")
    registry_files(here, "safety")[1].unlink()
    with pytest.raises(InputError) as error:
        find_registries(here)
    for part in (str(here), "code.google.com/archive/p/em-for-dpps", *CATEGORIES, "--data", "--generated"):
        assert part in str(error.value)


def test_the_numbers_of_the_paper_are_those_of_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "reference" / "paper_tables.json").read_text())
    assert list(reference["categories"]) == list(PAPER)
    for name, expected in reference["categories"].items():
        paper = PAPER[name]
        assert (paper.n_items, paper.n_train) == (expected["n_items"], expected["training_registries"])
        assert (list(paper.wishart), paper.moments) == (expected["wishart"], expected["moments_all"])
        assert list(paper.moments_2N) == expected["moments_2N"]
    assert reference["runtime_ratio_KA_over_EM_average"] == PAPER_RUNTIME_RATIO


@pytest.mark.slow
def test_the_original_registries_have_the_sizes_of_the_paper(shared: Path) -> None:
    source = Source(find_registries(shared / "data" / "registries"))
    for category, paper in PAPER.items():
        train, _ = source.split(category, 0)
        assert (train.n_items, len(train)) == (paper.n_items, paper.n_train)
    d = {category: off_diagonal_strength(source.load(category)) for category in CATEGORIES}
    assert {category for category in d if d[category] > 0.025} == {"safety", "furniture", "carseats", "strollers"}
    assert {category for category in d if d[category] < 0.012} >= {"feeding", "gear"}


def test_the_original_files_of_media_have_numbers_from_one_and_readable_names(shared: Path) -> None:
    media = read_registry(*registry_files(shared / "data" / "registries", "media"))
    assert media.indices[:2].tolist() == [1, 2]  # the first line is "2,3"
    assert str(media.items[0]).startswith("Harold and the Purple Crayon")
    assert any("®" in str(name) for name in media.items)
