"""Baskets: construction, immutability, derived collections, fewer items, other forms and rejected input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpplearn import Baskets, InputError, InputWarning
from dpplearn.data.baskets import as_baskets
from dpplearn.data.catalogue import LARGEST, Catalogue
from dpplearn.data.files import read_items
from dpplearn.data.weights import in_variance
from helpers import strategies
from helpers.command import answer
from helpers.strategies import Lists, label_lists, plain

seeds = st.integers(0, 2**32 - 1)


@given(label_lists())
def test_lists_of_names_come_back_as_sets_over_the_sorted_names(lists: Lists) -> None:
    baskets = Baskets.from_lists(lists)
    assert baskets.items == tuple(sorted({name for basket in lists for name in basket}))
    assert list(baskets) == [tuple(sorted(basket)) for basket in lists]
    assert baskets.weights.tolist() == [1.0] * len(lists)
    assert Baskets.from_lists([[2, 0]]).items == (0, 1, 2)  # all integers up to the largest


def test_a_basket_may_be_any_iterable() -> None:
    given_as = [(1, 0), {0}, np.array([1]), range(2), (item for item in [0]), {1: "x"}]
    assert list(Baskets.from_lists(given_as)) == [(0, 1), (0,), (1,), (0, 1), (0,), (1,)]


def test_sparse_entries_are_summed_and_zeros_are_absent() -> None:
    with_zeros = sp.coo_array(([1, 0, 1], ([0, 0, 1], [2, 1, 0])), shape=(2, 3))
    assert list(Baskets.from_matrix(with_zeros)) == [(2,), (0,)]
    halves = sp.coo_array(([0.5, 0.5], ([0, 0], [1, 1])), shape=(1, 2))
    assert list(Baskets.from_matrix(halves)) == [(1,)]
    with pytest.raises(InputError, match="2"):
        Baskets.from_matrix(sp.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2)))


def test_frequencies_need_baskets_with_positive_weight() -> None:
    none = Baskets.from_lists([], n_items=2)
    assert len(none) == len(none.deduplicated()) == len(none.subset([])) == 0
    assert none.by_size == ()
    for baskets in (none, Baskets.from_lists([[0], [1]], weights=[0, 0])):
        for frequencies in (baskets.frequencies, baskets.pair_frequencies):
            with pytest.raises(InputError):
                frequencies()


@pytest.mark.parametrize(
    ("lists", "options", "value"),
    [
        ([[0], [3]], {"n_items": 3}, "basket 1.*3"),
        ([[0], [2]], {"items": ["a", "b"]}, "basket 1.*2"),
        ([[0], [1.0]], {}, "basket 1.*1.0"),
        ([[0], [True]], {}, "basket 1.*True"),
        ([["a", float("nan")]], {}, "basket 0.*nan"),
        ([["a"], [pd.NA]], {}, "basket 1.*<NA>"),
        ([["a"], [np.array([1, 2])]], {}, "basket 1.*ndarray"),
        ([["a", 1]], {}, "1"),
        ([["a"], ["c"]], {"items": ["a", "b"]}, "basket 1.*'c'"),
        ([["a"], "bc"], {}, "basket 1.*'bc'"),
        ([["a"], np.array(3)], {}, "basket 1.*3"),
        ([["a"], np.array([0.5])], {}, r"basket 1: item 0\.5 "),
        ("abc", {}, "'a'"),
        ([[], []], {}, "items=.*n_items="),
        ([["a"]], {"n_items": 5}, "n_items.*5"),
        ([["a"]], {"items": ["a", "b"], "n_items": 3}, "n_items.*3"),
        ([["a"]], {"items": ["a", "a"]}, "'a'"),
        ([["a"]], {"items": "abc"}, "'abc'"),
        ([[2**70]], {}, rf"{2**70}"),
        ([[LARGEST]], {}, "items="),
        ([[1, 2]], {"items": ["1", "2", "3"]}, "strings"),
    ],
)
def test_invalid_lists_are_rejected_with_the_basket_and_the_value(
    lists: Any, options: dict[str, Any], value: str | None
) -> None:
    with pytest.raises(InputError, match=value):
        Baskets.from_lists(lists, **options)


@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        ([[0, 2]], "2"),
        ([[0.5, 1]], "0.5"),
        (sp.csr_array([[0.0, float("nan")]]), "nan"),
        ([["a", "b"]], None),
        ([0, 1], None),
        ([[1], [1, 0]], None),
        (np.zeros((2, 0)), None),
    ],
)
def test_invalid_matrices_are_rejected(matrix: Any, value: str | None) -> None:
    with pytest.raises(InputError, match=value):
        Baskets.from_matrix(matrix)


def test_weights_must_be_one_finite_non_negative_number_per_basket() -> None:
    pairs = [1, -0.5], [np.nan, 1], [1, None], [1, pd.NA], [1, "heavy"], [1, 10**400], [1e308, 1e308]
    for weights in (*pairs, [1], [[1, 1]], 3.0):
        with pytest.raises(InputError):
            Baskets.from_lists([[0], [1]], weights=weights)


def test_baskets_and_what_is_derived_from_them_are_read_only() -> None:
    baskets = Baskets.from_lists([[0], [1], [0, 1]])
    for each in (baskets, baskets.subset([0, 1]), baskets.split(0.5, 0)[0], baskets.deduplicated()):
        groups = [array for group in each.by_size for array in (group.rows, group.sets)]
        for array in (each.indices, each.offsets, each.weights, each.sizes, *groups):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    weights, matrix = np.array([1.0, 2.0]), np.eye(2)
    baskets = Baskets.from_matrix(matrix, weights=weights)
    weights[:], matrix[:] = 7, 1  # the caller's arrays stay writable and are copied
    assert plain(baskets) == ((0, 1), [[0], [1]], [1.0, 2.0])


@given(strategies.baskets())
def test_sizes_and_groups_by_size_hold_every_basket_once(baskets: Baskets) -> None:
    assert baskets.sizes.tolist() == [len(basket) for basket in baskets]
    rows = [row for group in baskets.by_size for row in group.rows.tolist()]
    assert sorted(rows) == list(range(len(baskets)))
    assert [tuple(items) for group in baskets.by_size for items in group.sets.tolist()] == [
        baskets[row] for row in rows
    ]
    assert [group.sets.shape[1] for group in baskets.by_size] == sorted({len(basket) for basket in baskets})


MARKS = np.arange(20_000) + 0.5  # weights that tell which basket it is, and are no counts


def test_a_split_takes_seven_tenths_rounded_down_and_loses_nothing() -> None:
    for n in (1, 2, 3, 7, 10, 11, 19, 100, 19_001):
        first, second = Baskets.from_lists([[0]] * n, weights=MARKS[:n]).split(0.7, rng=n)
        assert len(first) == 7 * n // 10
        assert sorted([*first.weights, *second.weights]) == MARKS[:n].tolist()
    for fraction, n, size in ((0.29, 100, 29), (0.57, 100, 57), (0.1, 9, 0), (0.999, 10, 9)):
        assert len(Baskets.from_lists([[0]] * n).split(fraction, rng=0)[0]) == size
    for fraction in (0, 1, -0.1, 70, float("nan")):
        with pytest.raises(InputError):
            Baskets.from_lists([[0]]).split(fraction)


def test_a_split_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    whole = Baskets.from_lists([[0]] * 50, weights=MARKS[:50])
    parts = [whole.split(0.5, rng=rng)[0].weights.tolist() for rng in (1, np.random.default_rng(1), 2, None, None)]
    assert parts[0] == parts[1]
    assert len({tuple(part) for part in parts}) == 4


@given(strategies.baskets(), st.data())
def test_a_subset_is_what_the_same_index_takes_from_a_list(baskets: Baskets, data: st.DataObject) -> None:
    n = len(baskets)
    rows = data.draw(st.lists(st.integers(-n, n - 1)) if n else st.just([]))
    items, lists, each = plain(baskets)
    assert plain(baskets.subset(rows)) == (items, [lists[row] for row in rows], [each[row] for row in rows])
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    kept = [row for row in range(n) if mask[row]]
    expected = (items, [lists[row] for row in kept], [each[row] for row in kept])
    assert plain(baskets.subset(np.array(mask, dtype=bool))) == expected


def test_invalid_rows_of_a_subset_are_rejected() -> None:
    for rows in ([3], [0, -4], [True, False], [[True, False, True]], [0.0, 1.0], ["0"], [[0], [1]], 1, [[0], [1, 2]]):
        with pytest.raises(InputError):
            Baskets.from_lists([[0], [1], []]).subset(rows)


def counted(baskets: Baskets) -> dict[tuple[Any, ...], float]:
    """The weight of every distinct set."""
    totals: dict[tuple[Any, ...], float] = {}
    for basket, weight in zip(baskets, baskets.weights.tolist(), strict=True):
        totals[basket] = totals.get(basket, 0.0) + weight
    return totals


@given(strategies.baskets(max_items=4, max_baskets=30), seeds)
def test_merging_equal_sets_adds_their_weights_whatever_the_order_of_rows(baskets: Baskets, seed: int) -> None:
    merged = baskets.deduplicated()
    assert merged.items == baskets.items
    assert len(merged) == len(set(merged))
    assert counted(merged) == pytest.approx(counted(baskets))
    assert merged.total_weight == pytest.approx(baskets.total_weight)
    shuffled = baskets.subset(np.random.default_rng(seed).permutation(len(baskets))).deduplicated()
    assert list(shuffled) == list(merged)
    assert shuffled.weights == pytest.approx(merged.weights)


@given(strategies.baskets().filter(lambda baskets: baskets.total_weight > 0))
def test_frequencies_are_weighted_shares_of_the_baskets(baskets: Baskets) -> None:
    shares = baskets.weights / baskets.total_weight
    holds = np.array([[item in basket for item in range(baskets.n_items)] for basket in baskets], dtype=float)
    pairs = np.einsum("b,bi,bj", shares, holds, holds)
    smallest = 1e-300  # below, numbers have few digits
    np.testing.assert_allclose(baskets.frequencies(), pairs.diagonal(), rtol=1e-12, atol=smallest)
    np.testing.assert_allclose(baskets.pair_frequencies(), pairs, rtol=1e-12, atol=smallest)


@settings(max_examples=50)
@given(label_lists(), seeds)
def test_baskets_over_a_reordered_larger_catalogue_are_the_same_sets(lists: Lists, seed: int) -> None:
    baskets = Baskets.from_lists(lists, weights=range(len(lists)))
    items = np.random.default_rng(seed).permutation(np.array([*baskets.items, "new " * 9], dtype=object)).tolist()
    moved = baskets.over(Catalogue.of(items))
    assert moved.items == tuple(items)
    assert [set(basket) for basket in moved] == [set(basket) for basket in baskets]
    assert moved.weights.tolist() == baskets.weights.tolist()


def test_a_catalogue_may_lack_only_items_that_never_occur() -> None:
    baskets = Baskets.from_lists([["crib"], [], ["crib", "monitor"]])
    with pytest.raises(InputError, match=r"2.*'monitor'.*'monitors'"):
        baskets.over(Catalogue.of(["crib", "monitors"]))
    unused = Baskets.from_lists([["crib"]], items=["crib", "monitor"])
    assert plain(unused.over(Catalogue.of(["swing", "crib"]))) == (("swing", "crib"), [["crib"]], [1.0])


def test_integers_are_positions_among_names_unless_the_names_look_like_integers() -> None:
    assert list(Baskets.from_lists([[2, 0], [1]], items=["x", "y", "z"])) == [("x", "z"), ("y",)]
    assert list(Baskets.from_lists([["1", "2"]], items=["1", "2", "3"])) == [("1", "2")]


def test_baskets_are_indexed_like_a_list() -> None:
    baskets = Baskets.from_lists([[0], [], [0, 1]], weights=[1, 2, 3])
    assert (baskets[0], baskets[-1]) == ((0,), (0, 1))
    assert list(baskets[1:]) == [(), (0, 1)]
    assert list(baskets[1:].weights) == [2, 3]
    with pytest.raises(IndexError):
        baskets[3]


@st.composite
def counts(draw: st.DrawFn) -> Baskets:
    """Baskets whose weights are counts."""
    lists = draw(st.lists(st.lists(st.integers(0, 4), unique=True), max_size=8))
    return Baskets.from_lists(lists, n_items=5, weights=[draw(st.integers(0, 5)) for _ in lists])


@settings(max_examples=50)
@given(counts(), seeds)
def test_a_split_parts_the_baskets_that_a_weight_counts(baskets: Baskets, seed: int) -> None:
    baskets = baskets.deduplicated()
    baskets = baskets.subset(baskets.weights > 0)
    first, second = baskets.split(0.7, rng=seed)
    if baskets.weights.max(initial=0) > 1:
        assert first.total_weight == int(0.7 * baskets.total_weight + 1e-9)
        assert first.weights.min(initial=1) >= 1
        assert second.weights.min(initial=1) >= 1
    assert counted(Baskets.together([first, second])) == counted(baskets)
    assert first.catalogue is baskets.catalogue


def test_a_split_of_counts_has_the_law_of_a_split_of_single_baskets() -> None:
    """Three of one kind and two of another, of which two are drawn: the number of the first kind is hypergeometric."""
    weighted = Baskets.from_lists([["a"], ["b"]], weights=[3, 2])
    single = Baskets.from_lists([["a"]] * 3 + [["b"]] * 2)
    expected = 1000 * np.array([1, 6, 3]) / 10
    for baskets in (weighted, single):
        drawn = [counted(baskets.split(0.4, rng=seed)[0]).get(("a",), 0) for seed in range(1000)]
        assert chisquare([drawn.count(each) for each in range(3)], expected).pvalue > 1e-3


def test_weights_that_are_no_counts_stay_with_their_basket() -> None:
    for weights in ([0.5, 1], [1, 1e-300], [1e20, 1], [4e18] * 3, [2e9, 1]):
        baskets = Baskets.from_lists([[i] for i in range(len(weights))], weights=weights)
        assert baskets.n_units == len(weights)
        parts = baskets.split(0.5, rng=0)
        assert sorted(weight for part in parts for weight in part.weights) == sorted(weights)


def test_a_count_of_w_is_w_baskets_in_a_variance_and_an_importance_of_w_is_one() -> None:
    assert in_variance(np.array([1.0, 3.0])).tolist() == [1, 3]
    assert in_variance(np.array([0.5, 3.0])).tolist() == [0.25, 9]


@settings(max_examples=50)
@given(counts(), st.integers(2, 6), seeds)
def test_folds_add_up_to_the_baskets_and_are_of_nearly_one_size(baskets: Baskets, n: int, seed: int) -> None:
    found = baskets.folds(n, np.random.default_rng(seed))
    assert found.shape == (n, len(baskets))
    np.testing.assert_array_equal(found.sum(axis=0), baskets.weights)
    if baskets.weights.max(initial=0) > 1:
        assert np.ptp(found.sum(axis=1)) <= 1
    else:
        assert np.all((found > 0).sum(axis=0) == (baskets.weights > 0))


def test_parts_are_concatenated_in_order_and_matched_by_label() -> None:
    whole = Baskets.from_lists([["a"], [], ["b", "a"], ["c"]], weights=[1, 2, 3, 4])
    assert plain(Baskets.together([whole[:2], whole[:0], whole[2:]])) == plain(whole)
    first = Baskets.from_lists([["b"], ["a", "b"]], items=["b", "a"], weights=[1, 2])
    second = Baskets.from_lists([["c", "a"], []], items=["c", "a", "d"], weights=[3, 0.5])
    third = Baskets.from_lists([["d", "b"]])
    expected = [["b"], ["b", "a"], ["a", "c"], [], ["b", "d"]]
    assert plain(Baskets.together([first, second, third])) == (("b", "a", "c", "d"), expected, [1, 2, 3, 0.5, 1])
    reordered = [Baskets.from_lists([["a"]], items=items) for items in (["a", "b"], ["b", "a"])]
    assert plain(Baskets.together(reordered)) == (("a", "b"), [["a"], ["a"]], [1, 1])


def test_integers_and_names_are_not_put_together() -> None:
    first, labelled = Baskets.from_lists([[0, 1]], n_items=3), Baskets.from_lists([[70]], items=[70, 1])
    assert plain(Baskets.together([first, labelled])) == ((0, 1, 2, 70), [[0, 1], [70]], [1, 1])
    for parts in ([], [Baskets.from_lists([["1"]]), first], [first, Baskets.from_lists([["1"]])]):
        with pytest.raises(InputError):
            Baskets.together(parts)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 0.3, 1e160])
def test_weights_are_worth_the_same_number_of_baskets_whatever_their_scale(scale: float) -> None:
    baskets = Baskets.from_lists([[0], [1], [0, 1]], weights=np.array([0.5, 0.25, 0.25]) * scale)
    np.testing.assert_allclose(baskets.as_counts().weights, np.array([0.5, 0.25, 0.25]) / 0.375, rtol=1e-12)
    np.testing.assert_allclose(baskets.reweighted(3.0).weights, 3 * baskets.weights, rtol=1e-12)


def test_lists_over_a_catalogue_are_found_by_label_and_never_by_position() -> None:
    catalogue = Catalogue.of(["7", "bib", "1"])
    found = as_baskets([["bib", 7], [1], []], catalogue)
    assert found.catalogue is catalogue
    assert list(found) == [("7", "bib"), ("1",), ()]
    for wrong in (0, "bibb", None, [1], 1.0):
        with pytest.raises(InputError, match="1"):
            as_baskets([["bib"], ["bib", wrong]], catalogue)
    with pytest.warns(InputWarning, match=r"1.*1"):
        assert list(as_baskets([["bib", "bib"]], catalogue)) == [("bib",)]


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
    weighted = Baskets.from_lists([["a"], ["b"], ["b"], ["c"]], weights=[5, 1, 2, 1])
    assert weighted.most_frequent(1).items == ("a",)
    assert plain(weighted.min_count(3)) == (("a", "b"), [["a"], ["b"], ["b"]], [5, 1, 2])


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
        for library in (pd.DataFrame, polars.DataFrame, pyarrow.table):
            found = Baskets.from_table(library(baskets.to_table()), weight="weight")
            assert (list(found), found.items) == (list(baskets), baskets.items)
            assert found.weights.tolist() == [2, 0.5]


@pytest.mark.slow
def test_commands_filter_items_by_count_rank_and_a_file_with_one_item_per_line(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("c,b\nc\nb,a,d\nd\nc,d\n" * 4)
    (tmp_path / "keep.txt").write_text("\n c \nd\n\na\nb\n")
    assert read_items(tmp_path / "keep.txt") == ["c", "d", "a", "b"]
    options = ("--keep-items", tmp_path / "keep.txt", "--min-count", 5, "--top-items", 2)
    assert answer("diagnose", tmp_path / "data.txt", *options)["n_items"] == 2
    (tmp_path / "none.txt").write_text("\n\n")
    with pytest.raises(InputError):
        read_items(tmp_path / "none.txt")
