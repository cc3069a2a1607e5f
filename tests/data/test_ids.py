"""What baskets are called in a table goes with them, into every result."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas
import pytest

import dpplearn as dl
from dpplearn.data.baskets import known_baskets
from helpers.command import answer
from helpers.problems import random_kernel

TABLE = pandas.DataFrame({"order": ["x9", "x9", "a1", "m5"], "item": ["crib", "bib", "bib", "cot"]})
MODEL = dl.DPP(random_kernel(np.random.default_rng(0), 4), ["bib", "cot", "crib", "cup"])


@pytest.fixture
def orders() -> dl.Baskets:
    return dl.Baskets.from_table(TABLE, "order")


def called(baskets: dl.Baskets) -> list[object]:
    assert baskets.ids is not None
    assert len(baskets.ids) == len(baskets)
    return baskets.ids.tolist()


def test_a_table_tells_what_baskets_are_called(orders: dl.Baskets) -> None:
    assert called(orders) == ["a1", "m5", "x9"]
    assert list(orders) == [("bib",), ("cot",), ("bib", "crib")]
    assert dl.Baskets.from_lists([["bib"]]).ids is None


def test_identifiers_are_integers_if_all_are_plain_64_bit_integers(tmp_path: Path) -> None:
    for written, expected in ((["10", "9"], [9, 10]), (["010", "9"], ["010", "9"]), (["1" * 30, "2"], ["1" * 30, "2"])):
        (tmp_path / "a.csv").write_text("basket,item\n" + "".join(f"{each},bib\n" for each in written))
        assert called(dl.read_baskets(tmp_path / "a.csv")) == expected


def test_put_together_they_are_kept_if_all_have_them(orders: dl.Baskets) -> None:
    assert called(dl.Baskets.together([orders, orders[:1]])) == ["a1", "m5", "x9", "a1"]
    assert dl.Baskets.together([orders, dl.Baskets.from_lists([["bib"]])]).ids is None
    assert orders.deduplicated().ids is None  # of several


def test_baskets_without_names_keep_their_numbers_where_some_are_left_out() -> None:
    lists = [["new"], ["bib"], ["cot"]]
    assert called(known_baskets(lists, MODEL.catalogue, "drop")[0]) == [1, 2]
    assert called(dl.Baskets.from_lists(lists).of_items(["cot"])) == [2]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    MODEL.save(tmp_path / "model.safetensors")
    TABLE.to_csv(tmp_path / "orders.csv", index=False)
    return tmp_path / "model.safetensors", tmp_path / "orders.csv"


def test_recommendations_and_scores_are_told_by_them(files: tuple[Path, Path]) -> None:
    model, data = files
    columns, out = ("--columns", "basket=order"), data.with_name("out.csv")
    answer("recommend", model, "--baskets", data, *columns, "-o", out)
    assert list(dict.fromkeys(pandas.read_csv(out)["basket"])) == ["a1", "m5", "x9"]
    scores = data.with_name("scores.parquet")
    answer("score", model, data, *columns, "-o", scores)
    assert [row[0] for row in duckdb.sql(f"SELECT basket FROM '{scores}'").fetchall()] == ["a1", "m5", "x9"]


def test_a_row_without_a_score_is_written(files: tuple[Path, Path]) -> None:
    model, data = files
    dl.DPP(MODEL.kernel, MODEL.items, nonempty=True).save(model)
    data.write_text("basket,item\n7,new\n8," + "\n8,".join(map(str, MODEL.items)) + "\n")
    answer("recommend", model, "--baskets", data, "--unknown", "drop", "-k", 1, "-o", data.with_name("out.csv"))
    header, row = data.with_name("out.csv").read_text().splitlines()
    assert header == "basket,rank,item,score,probability"
    assert row.startswith("7,1,")
    assert row.split(",")[3] == ""  # there is no score given the empty basket
