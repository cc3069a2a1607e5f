"""Features and similarities of items: sources, encoding and rejected input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from scipy.sparse import csr_array

from dpplearn import DPP, Baskets, InputError, InputWarning
from dpplearn.data.features import as_features, read_features
from dpplearn.data.similarity import read_similarity

ITEMS = ["bib", "cot", "crib", "mug"]
TABLE = {
    "item": ["crib", "cot", "mug", "bib"],
    "price": [150.0, 90.0, 10.0, 10.0],
    "kind": ["bed", "bed", "meal", "meal"],
}


def test_every_kind_of_table_gives_the_same_features_in_the_order_of_the_items(tmp_path: Path) -> None:
    price = np.array([10.0, 90, 150, 10])
    pandas.DataFrame(TABLE).to_csv(tmp_path / "items.csv", index=False)
    pyarrow.parquet.write_table(pyarrow.table(TABLE), tmp_path / "items.parquet")
    in_memory = (TABLE, pandas.DataFrame(TABLE), polars.DataFrame(TABLE), pyarrow.table(TABLE))
    for source in (*in_memory, tmp_path / "items.csv", tmp_path / "items.parquet"):
        features = read_features(source, ITEMS)
        assert features.names == ("price", "kind=meal")
        np.testing.assert_allclose(features.matrix[:, 0], (price - price.mean()) / price.std(), atol=1e-12)
        np.testing.assert_array_equal(features.matrix[:, 1], [1, 0, 0, 1])


def test_further_items_are_encoded_with_the_means_scales_and_levels_of_the_first() -> None:
    kinds = ["bed", "bed", "bed", "meal", "meal", "toy"]
    features = read_features({"item": range(6), "price": [1, 2, 3, 4, 5, 9], "kind": kinds}, list(range(6)))
    assert features.names == ("price", "kind=meal", "kind=(other)")
    again = features.encode(
        {"item": [8, 7, 9], "price": [4, 4 + np.std([1, 2, 3, 4, 5, 9]), 4], "kind": ["bed", "x", "meal"]}
    )
    np.testing.assert_allclose(again, [[0, 0, 0], [1, 0, 1], [0, 1, 0]], atol=1e-12)
    some = features.encode({"item": [8, 7], "price": [4, 4], "kind": ["bed", "meal"]}, [7])
    np.testing.assert_allclose(some, [[0, 1, 0]], atol=1e-12)


def test_missing_values_are_said_and_become_the_mean_with_an_indicator_or_a_level() -> None:
    table = {**TABLE, "price": [150.0, None, 20.0, float("nan")], "kind": ["bed", None, "bed", "bed"]}
    with pytest.warns(InputWarning, match=r"'price'.*2.*'kind'.*1"):
        features = read_features(table, ITEMS)
    assert features.names == ("price", "price (missing)", "kind=(missing)")
    np.testing.assert_allclose(features.matrix, [[0, 1, 0], [0, 1, 1], [1, 0, 0], [-1, 0, 0]], atol=1e-12)


def test_a_missing_number_in_a_csv_file_does_not_make_the_column_categorical(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,price\nbib,10\ncot,NA\ncrib,150\nmug,nan\n")
    with pytest.warns(InputWarning, match=r"'price'.*2"):
        assert read_features(tmp_path / "items.csv", ITEMS).matrix.tolist() == [[-1, 0], [0, 1], [1, 0], [0, 1]]


def test_columns_that_say_nothing_are_left_out_with_a_warning() -> None:
    with pytest.warns(InputWarning, match=r"'shop'.*'vat'"):
        features = read_features({**TABLE, "shop": ["here"] * 4, "vat": [7] * 4}, ITEMS[:3])
    assert features.names == ("price", "kind=(other)")


def test_features_are_matched_to_other_items_by_label() -> None:
    features = read_features(TABLE, ITEMS)
    baskets = Baskets.from_lists([["mug", "bib"]])
    np.testing.assert_array_equal(as_features(features, baskets).matrix, features.matrix[[0, 3]])
    with pytest.raises(InputError):
        as_features(features, ["bib", "sled"])
    with pytest.raises(InputError):
        features.encode({"item": ["sled"], "price": [3]})  # without the column 'kind')


def test_invalid_feature_tables_are_rejected() -> None:
    for table in (
        {"item": ["bib"], "price": [1]},
        {"item": ["bib", "bib"], "price": [1, 2]},
        {"item": ITEMS, "price": [1, 2, 3]},
        {"item": ITEMS, "price": [1, 1, 1, 1]},
        {"item": ITEMS, "price": [1, 2, 3, np.inf]},
        {"item": ITEMS, "price": "cheap"},
        {"item": [], "price": []},
        7,
        "nowhere.csv",
    ):
        with pytest.raises(InputError):
            read_features(table, ITEMS)


def test_a_csv_file_may_name_its_item_column_and_is_rejected_if_malformed(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("price;product\n1;bib\n2;cot\n")
    assert read_features(path, ["bib", "cot"], item="product").matrix.tolist() == [[-1.0], [1.0]]
    for text, value in (
        ("price;product\n1;bib\n2;cot\n", "'sku'"),
        ("sku,price\n\n\nbib,10\ncot\n", "5"),  # the number of the line
        ("sku,price\nbib,10\ncot,inf\n", "price"),
        ('sku,price\nbib,"10\n' + "cot,20\n" * 20_000, None),  # a quote that is never closed
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=value):
            read_features(path, ["bib", "cot"], item="sku")


S = np.array([[1, 0.5, 0.0, 0], [0.5, 1, 0.2, 0], [0, 0.2, 1, 0], [0, 0, 0, 1]])


def test_every_kind_of_similarity_is_read_by_label_or_order() -> None:
    order = [2, 0, 3, 1]
    labels, shuffled = [ITEMS[i] for i in order], S[np.ix_(order, order)]
    frame = pandas.DataFrame(shuffled, labels, labels)
    for given in (S, csr_array(S), frame.reset_index(names="item"), frame, DPP.from_L(2 * shuffled, labels)):
        np.testing.assert_allclose(read_similarity(given, ITEMS), S, atol=1e-12)


def test_values_make_those_alike_that_share_one_and_none_is_like_nothing_else() -> None:
    found = read_similarity(["bed", None, "bed", None], ITEMS)
    np.testing.assert_array_equal(found, np.eye(4) + np.array([[0, 0, 1, 0], [0] * 4, [1, 0, 0, 0], [0] * 4]))
    by_label = read_similarity({"crib": 1, "bib": 1, "mug": None, "cot": None}, ITEMS)
    np.testing.assert_array_equal(by_label, found)
    kinds = pandas.Series(["bed", "meal", "bed", "meal"], index=["crib", "bib", "cot", "mug"], name="item")
    np.testing.assert_array_equal(read_similarity(kinds, ITEMS), read_similarity(dict(kinds), ITEMS))
    unknown = [float("nan"), float("nan"), pandas.NA, pandas.NA]
    np.testing.assert_array_equal(read_similarity(unknown, ITEMS), np.eye(4))


def test_invalid_similarities_are_rejected() -> None:
    indefinite = np.ones((4, 4)) * -0.9 + 1.9 * np.eye(4)
    tables = {"bib": 1}, pandas.DataFrame({"item": ITEMS}), pandas.DataFrame(TABLE)
    for given in (np.triu(S), 2 * S, indefinite, S[:3], np.full((4, 4), np.nan), None, [[1], [1, 2]], *tables):
        with pytest.raises(InputError):
            read_similarity(given, ITEMS)


def test_features_do_not_depend_on_the_unit_of_a_number() -> None:
    for unit in (1e-200, 1e307):
        found = read_features({"item": ["cot", "bib"], "price": [9 * unit, unit]}, ["bib", "cot"])
        np.testing.assert_allclose(found.matrix, [[-1], [1]], rtol=1e-12)


def test_a_level_called_other_is_that_of_all_others() -> None:
    table = {"item": range(6), "kind": ["(other)", "(other)", "bed", "bed", "bed", "meal"]}
    assert read_features(table, list(range(6))).matrix.tolist() == [[1], [1], [0], [0], [0], [1]]


def test_a_similarity_is_read_from_a_file_of_a_matrix_or_of_one_value_per_item(tmp_path: Path) -> None:
    (tmp_path / "alike.csv").write_text("item,bib,cot\nbib,1,0.5\ncot,0.5,1\n")
    assert read_similarity(tmp_path / "alike.csv", ["bib", "cot"]).tolist() == [[1, 0.5], [0.5, 1]]
    (tmp_path / "kinds.csv").write_text("item,kind\nbib,meal\ncot,bed\ncrib,bed\nmug,\n")
    expected = read_similarity(["meal", "bed", "bed", None], ITEMS)
    for kinds in (tmp_path / "kinds.csv", pandas.read_csv(tmp_path / "kinds.csv")):
        np.testing.assert_array_equal(read_similarity(kinds, ITEMS), expected)
