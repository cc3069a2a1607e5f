"""Baskets of fewer items, by count, by rank or by name; and baskets as other libraries want them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from dpplearn import Baskets, InputError, InputWarning
from dpplearn.data.files import read_items
from helpers.command import answer

BASKETS = Baskets.from_lists([["c", "b"], ["c"], ["b", "a", "d"], ["d"], ["c", "d"]], ["a", "b", "c", "d", "never"])


def test_the_most_frequent_items_are_kept_in_the_order_of_the_catalogue() -> None:
    """Of c and d, which are equally frequent, and b the first two; baskets that lose all go."""
    kept = BASKETS.most_frequent(2)
    assert kept.items == ("c", "d")
    assert list(kept) == [("c",), ("c",), ("d",), ("d",), ("c", "d")]
    assert BASKETS.most_frequent(1).items == ("c",)
    assert len(BASKETS.most_frequent(1)) == 3
    assert BASKETS.most_frequent(100).items == ("a", "b", "c", "d")  # and none that never occurs
    with pytest.raises(InputError, match=r"n.*0"):
        BASKETS.most_frequent(0)


def test_weights_go_with_their_baskets_and_count() -> None:
    weighted = Baskets.from_lists([["a"], ["b"], ["b"], ["c"]], weights=[5, 1, 2, 1])
    assert weighted.most_frequent(1).items == ("a",)
    kept = weighted.min_count(3)
    assert (kept.items, list(kept), kept.weights.tolist()) == (("a", "b"), [("a",), ("b",), ("b",)], [5, 1, 2])


def test_where_baskets_were_empty_those_that_become_so_stay() -> None:
    """As they are sets that hold none of these items, like the others."""
    some = Baskets.from_lists([["a"], ["b", "c"], ["b", "c"], []]).most_frequent(2)
    assert list(some) == [(), ("b", "c"), ("b", "c"), ()]
    none = Baskets.from_lists([["a"], ["b", "c"], ["b", "c"], ["c"]]).most_frequent(2)
    assert list(none) == [("b", "c"), ("b", "c"), ("c",)]


def test_items_in_fewer_baskets_go_and_not_those_in_as_many() -> None:
    assert BASKETS.min_count(3).items == ("c", "d")
    assert BASKETS.min_count(0).items == BASKETS.items
    with pytest.raises(InputError, match=r"4.*3"):
        BASKETS.min_count(4)
    with pytest.raises(InputError, match=r"min_count.*-1"):
        BASKETS.min_count(-1)


def test_named_items_are_kept_and_those_that_are_not_there_are_told() -> None:
    with pytest.warns(InputWarning, match=r"1.*3"):
        kept = BASKETS.of_items(["d", "x", "a"])
    assert (kept.items, list(kept)) == (("a", "d"), [("a", "d"), ("d",), ("d",)])
    with pytest.raises(InputError):
        BASKETS.of_items(["x"])
    with pytest.raises(InputError, match="'a'"):
        BASKETS.of_items("a")
    assert Baskets.from_lists([[1, 3]]).of_items(["3"]).items == (3,)


def test_a_matrix_goes_there_and_back() -> None:
    matrix = BASKETS.to_matrix()
    assert (matrix.format, matrix.dtype, matrix.shape) == ("csr", np.float32, (5, 5))
    assert list(Baskets.from_matrix(matrix, BASKETS.items)) == list(BASKETS)
    matrix.data[:] = 2  # their own copy, to be weighted as others like
    matrix.indices[:] = 0
    assert BASKETS[0] == ("b", "c")


def test_a_table_goes_there_and_back() -> None:
    for labels in (["a", "b", "c"], [10, 20, 30]):
        baskets = Baskets.from_lists([[labels[2], labels[0]], [labels[1]]], labels, weights=[2.0, 0.5])
        for library in (pandas.DataFrame, polars.DataFrame, pyarrow.table):
            found = Baskets.from_table(library(baskets.to_table()), weight="weight")
            assert (list(found), found.items) == (list(baskets), baskets.items)
            assert found.weights.tolist() == [2, 0.5]


@pytest.mark.slow
def test_commands_filter_items_by_count_rank_and_a_file_with_one_item_per_line(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("c,b\nc\nb,a,d\nd\nc,d\n" * 4)
    (tmp_path / "none.txt").write_text("\n\n")
    with pytest.raises(InputError):
        read_items(tmp_path / "none.txt")
    (tmp_path / "keep.txt").write_text("\n c \nd\n\na\nb\n")
    assert read_items(tmp_path / "keep.txt") == ["c", "d", "a", "b"]
    options = ("--keep-items", tmp_path / "keep.txt", "--min-count", 5, "--top-items", 2)
    assert answer("diagnose", tmp_path / "data.txt", *options)["n_items"] == 2
