"""Recommendations for every basket of a table equal those of `recommend`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dpplearn as dl
from dpplearn.utils.files import locked
from helpers.command import answer, run, table
from helpers.order_files import write_csv, write_json_lines, write_parquet
from helpers.problems import as_mixture, random_mixture
from helpers.stores import SHARES, three_categories, write_models

COLUMNS = ("basket", "item")


@pytest.fixture
def store(tmp_path: Path) -> dl.ModelStore:
    return dl.ModelStore.open(write_models(tmp_path / "store", three_categories(), SHARES))


def rows_of(baskets: dict[str, list[str]], seed: int = 0) -> list[tuple[str, str]]:
    """In no order."""
    rows = [(name, item) for name, items in baskets.items() for item in items]
    return [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]


def read(path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT * FROM '{path}'").fetchall()


def expected(store: dl.ModelStore, baskets: dict[str, list[str]], k: int = 3) -> list[tuple[Any, ...]]:
    return [
        (name, rank, *each)
        for name, items in baskets.items()
        for rank, each in enumerate(store.recommend(items, k), start=1)
    ]


def test_every_basket_of_one_or_several_files_gets_what_recommend_gives(store: dl.ModelStore, tmp_path: Path) -> None:
    rng, items = np.random.default_rng(0), store.catalogue.labels
    baskets = {f"{number:03}": rng.permutation(items)[: rng.integers(1, 5)].tolist() for number in range(30)}
    rows = [*rows_of(baskets), rows_of(baskets)[0]]  # an item that is there twice is there once
    path = write_parquet(tmp_path / "a.parquet", COLUMNS, rows)
    found = dl.recommend_all(store, path, tmp_path / "out.parquet", k=3)
    assert read(tmp_path / "out.parquet") == expected(store, baskets)
    assert (found.n_baskets, found.n_items) == (30, len(rows) - 1)
    assert found.n_recommendations == len(expected(store, baskets))
    half = len(rows) // 2
    parts = [
        write_csv(tmp_path / "one.csv", COLUMNS, rows[:half]),
        write_json_lines(tmp_path / "two.jsonl", COLUMNS, rows[half:]),
    ]
    dl.recommend_all(tmp_path / "store", parts, tmp_path / "out.csv", k=3)
    with open(tmp_path / "out.csv", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["basket", "rank", "item", "score", "probability", "category"]
    assert lines == [[str(value) for value in row] for row in expected(store, baskets)]


def test_items_that_no_model_has_stop_it_before_anything_is_written_or_are_left_out_and_counted(
    store: dl.ModelStore, tmp_path: Path
) -> None:
    rows = [("1", "cup"), ("1", "crip"), ("2", "crip"), ("2", "spoon")]
    write_csv(tmp_path / "a.csv", COLUMNS, rows)
    with pytest.raises(dl.InputError, match=r"'crip'.*'crib'.*3"):
        dl.recommend_all(store, tmp_path / "a.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    found = dl.recommend_all(store, tmp_path / "a.csv", tmp_path / "out.parquet", k=3, unknown="drop")
    assert (found.n_unknown, found.unknown, found.n_baskets) == (3, ("crip", "spoon"), 2)
    both = {"1": ["cup"], "2": []}
    assert read(tmp_path / "out.parquet") == [(int(name), *row) for name, *row in expected(store, both)]


def test_one_model_has_no_category_and_invalid_rows_and_impossible_baskets_are_counted(tmp_path: Path) -> None:
    model = as_mixture(random_mixture(2, 4, seed=1), [5, 6, 7, 80])
    write_csv(tmp_path / "a.csv", COLUMNS, [("b", 80)])
    dl.recommend_all(model, tmp_path / "a.csv", tmp_path / "out.parquet", k=2)
    wanted = [("b", rank, *each) for rank, each in enumerate(model.recommend([80], 2), start=1)]
    assert read(tmp_path / "out.parquet") == wanted
    model = dl.Mixture.from_arrays([1.0], [[0.0, -np.inf]], np.zeros((2, 2)), items=["bib", "unicorn"], nonempty=True)
    (tmp_path / "a.csv").write_text("basket,item\n1,bib\n2\n3,\n4,unicorn\n5,bib\n")
    found = dl.recommend_all(model, tmp_path / "a.csv", tmp_path / "out.csv", k=1)
    assert (found.n_bad_rows, found.n_impossible, found.impossible, found.n_baskets) == (2, 1, (4,), 3)
    (tmp_path / "b.csv").write_text("basket,item\n1,\n")
    with pytest.raises(dl.InputError):
        dl.recommend_all(model, tmp_path / "b.csv", tmp_path / "out.csv")


def test_work_that_a_killed_run_left_is_removed_and_two_runs_do_not_mix(store: dl.ModelStore, tmp_path: Path) -> None:
    orders, out = write_csv(tmp_path / "a.csv", COLUMNS, [("1", "cup")]), tmp_path / "out" / "recommended.csv"
    out.parent.mkdir()
    work = out.parent / ".recommend-recommended.csv"
    with locked(work, out), pytest.raises(dl.InputError, match=r"recommended\.csv"):
        dl.recommend_all(store, orders, out)
    (work / "work.duckdb").write_bytes(b"work")
    dl.recommend_all(store, orders, out)
    assert list(out.parent.iterdir()) == [out]


def test_the_command_writes_the_table_and_tells_of_what_was_left_out(store: dl.ModelStore, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("order,product\n1,cup\n1,crip\n2,cot\n")
    call = ("recommend", store.folder, "--baskets", tmp_path / "a.csv", "-o", tmp_path / "out.csv", "-k", 2)
    call = (*call, "--unknown", "drop")
    columns = ("--columns", "basket=order,item=product")
    found = answer(*call, *columns)
    assert (found["n_baskets"], found["n_recommendations"], found["unknown"]) == (2, 4, ["crip"])
    assert "crip" in table(*call, *columns)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 5
    table(*call, *columns, "--allow", "bib", "--allow", "cot", "--deny", "cot")
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[:3] for line in lines] == [["1", "1", "bib"], ["2", "1", "bib"]]
    for wrong, code, name in ((("--allow", "hay"), 1, "'hay'"), (("cot",), 2, "ITEM")):
        refused = run(*call, *columns, *wrong)
        assert (refused.returncode, name in refused.stderr) == (code, True)


def test_the_output_is_never_an_input_and_has_the_name_of_a_table(store: dl.ModelStore, tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "a.csv", COLUMNS, [("1", "cup")])
    before = rows.read_bytes()
    with pytest.raises(dl.InputError, match=r"a\.csv.*a\.csv"):
        dl.recommend_all(store, tmp_path / "*.csv", rows)
    for name in ("out.txt", "no/out.csv"):
        with pytest.raises(dl.InputError, match=name):
            dl.recommend_all(store, rows, tmp_path / name)
    assert [rows.read_bytes(), *tmp_path.glob("*.txt")] == [before]
