"""Readers: every format gives the same baskets, and malformed files are rejected."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpplearn import Baskets, InputError, InputWarning, read_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.transactions import Transactions
from helpers.strategies import Lists, integers, label_lists, names, plain

READ = {"basket": "order", "item": "product", "weight": "times"}


def frame(lists: Lists, weights: Sequence[float]) -> pd.DataFrame:
    """One (basket, item, weight) a row; the identifiers reach past 9, so that their order as texts is another."""
    rows = [(number + 1, item, weights[number]) for number, basket in enumerate(lists) for item in basket]
    return pd.DataFrame(rows, columns=list(READ.values()))


def csv_text(table: pd.DataFrame, delimiter: str = ",") -> str:
    return table.to_csv(index=False, sep=delimiter, lineterminator="\r\n")


def parquet_bytes(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), buffer)
    return buffer.getvalue()


def labels(lists: Lists) -> list[Any]:
    return sorted({item for basket in lists for item in basket})


def matrix(lists: Lists) -> np.ndarray[Any, Any]:
    return np.array([[int(item in basket) for item in labels(lists)] for basket in lists])


def write(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


FILES: dict[str, Callable[[pd.DataFrame], str | bytes]] = {
    "a.csv": csv_text,
    "a.csv.gz": csv_text,
    "a.tsv": partial(csv_text, delimiter="\t"),
    "a.parquet": parquet_bytes,
}
TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "shuffled": lambda table: table.sample(frac=1, random_state=1)[["product", "times", "order"]],
    "categories": lambda table: table.astype({"product": pd.CategoricalDtype(table["product"].unique())}),
    "polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
    "dictionaries": lambda table: pa.table({name: pa.array(table[name]).dictionary_encode() for name in table}),
}
IN_MEMORY: dict[str, Callable[[Lists, Sequence[float]], Baskets]] = {
    "lists": lambda lists, w: Baskets.from_lists(lists, labels(lists), weights=w),
    "matrix": lambda lists, w: Baskets.from_matrix(matrix(lists), labels(lists), weights=w),
    "sparse": lambda lists, w: Baskets.from_matrix(sp.csc_matrix(matrix(lists)), labels(lists), weights=w),
    "columns": lambda lists, w: Baskets.from_matrix(pd.DataFrame(matrix(lists), columns=labels(lists)), weights=w),
}
LINES = {"commas": (",", "\n"), "CRLF": (",", "\r\n"), "blanks": (" ", "\n"), "tabs": ("\t", "\n")}
READERS = [*FILES, *TABLES, *IN_MEMORY, *LINES]


def read(reader: str, folder: Path, lists: Lists, weights: Sequence[float]) -> Baskets:
    if reader in IN_MEMORY:
        return IN_MEMORY[reader](lists, weights)
    if reader in LINES:
        delimiter, end = LINES[reader]
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(lists)
        return read_baskets(write(folder / "a.csv", text.getvalue().replace("\n", end)), format="lines")
    table = frame(lists, weights)
    if reader in TABLES:
        return Baskets.from_table(TABLES[reader](table), **READ)
    return read_baskets(write(folder / reader, FILES[reader](table)), **READ)


CASES: dict[str, Lists] = {
    "names": [["crib", "monitor"], ["Ünal"], ["🍎", "苹果", "crib"], *([name, "z"] for name in "jihgfedcba")],
    "one item": [["crib"], ["crib"]],
    "names like numbers": [["007", "7"], ["10", "9", "7"], ["-3", "1e5", "1.0", "007"], ["9", "NULL"]],
    "integers": [[10, 9], [2], [100, 2, 9, -5, -12, 10], [2**53, 2**53 + 1], [-5]],
    "commas, quotes and blanks": [['22" monitor, large', "crib"], ["a 'b'", '"', "semi;colon"], ["crib", "a\\b"]],
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_baskets(reader: str, tmp_path: Path) -> None:
    for case, lists in CASES.items():
        if reader in ("blanks", "tabs") and case == "commas, quotes and blanks":
            continue
        weights = [0.5 + number for number in range(len(lists))]
        expected = [1.0] * len(lists) if reader in LINES else weights
        found = read(reader, tmp_path, lists, weights)
        assert plain(found) == (tuple(labels(lists)), [sorted(basket) for basket in lists], expected), case


@pytest.mark.parametrize("reader", ["a.csv", "a.parquet", "pandas", "polars", "lists", "commas", "blanks"])
def test_repeated_items_are_merged_with_a_warning_that_counts_them(reader: str, tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match=r"3.*2.*1"):
        found = read(reader, tmp_path, [["a", "b"], ["b", "b", "a", "b"], ["a", "a"]], [1, 1, 1])
    assert list(found) == [("a", "b"), ("a", "b"), ("a",)]


bare_names = names.filter(lambda name: name == name.strip() and "\r" not in name)


@settings(max_examples=10)
@given(
    lists=label_lists(bare_names, min_size=1) | label_lists(integers, min_size=1),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
)
@example(lists=[["a,b", "a;b", "a\tb", "a|b"], ['a "b"', '"', "'"], ["a\nb"]], delimiter=",")
@example(lists=[["007", "7"], ["NULL", "nan"]], delimiter=";")
def test_any_labels_survive_a_csv_file_and_a_table(
    lists: Lists, delimiter: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = frame(lists, [1] * len(lists))
    path = write(tmp_path_factory.getbasetemp() / "labels.csv", csv_text(table, delimiter))
    found = read_baskets(path, **READ)
    assert [{*map(str, basket)} for basket in found] == [{*map(str, basket)} for basket in lists]
    assert {*map(str, found.items)} == {*map(str, labels(lists))}
    expected = tuple(labels(lists)), [sorted(basket) for basket in lists], [1.0] * len(lists)
    assert plain(Baskets.from_table(table, **READ)) == expected


def test_a_file_of_lines_has_one_basket_per_line(tmp_path: Path) -> None:
    found = read_baskets(write(tmp_path / "b.txt", "a b\n\n  \nb\n"))
    assert list(found) == [("a", "b"), (), (), ("b",)]  # an empty line is an empty basket
    write(tmp_path / "a.txt", "c\n")
    assert list(read_baskets(tmp_path / "*.txt")) == [("c",), *found]  # in the order of the names of files
    text = 'red apple , pear\n"fig, dried", 22" screen\npear\n'
    commas = read_baskets(write(tmp_path / "a.txt", text))
    assert list(commas) == [("pear", "red apple"), ('22" screen', "fig, dried"), ("pear",)]


def test_other_columns_a_byte_order_mark_and_blank_lines_are_no_part_of_the_data(tmp_path: Path) -> None:
    other_columns = ",Item,basket,item,note,note\n0,x,1,a,,\n1,x,1,b,,\n"  # an index without a name, as of pandas
    for text in (other_columns, "\ufeffbasket,item\r\n1,a\r\n\r\n1,b\r\n\r\n"):
        assert list(read_baskets(write(tmp_path / "a.csv", text))) == [("a", "b")]
    assert list(read_baskets(write(tmp_path / "a.txt", "\ufeffa b\n"))) == [("a", "b")]


def test_the_name_of_a_file_is_no_pattern_and_the_name_of_a_folder_no_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("orders1.csv", "orXders.csv"):
        write(tmp_path / other, "basket,item\n1,wrong\n")
    for name in ("orders[1].csv", "or*ders.csv", "or?ders.csv", "~orders.csv", "it's.csv"):
        write(tmp_path / name, "basket,item\n1,right\n")
        assert list(read_baskets(name)) == [("right",)]
        (tmp_path / name).unlink()
    folder = tmp_path / "item=wrong"
    folder.mkdir()
    assert list(read_baskets(write(folder / "a.csv", "basket,item\n1,right\n"))) == [("right",)]
    table = pd.DataFrame({"basket": [1], "item": ["right"]})
    assert list(read_baskets(write(folder / "a.parquet", parquet_bytes(table)))) == [("right",)]


def test_baskets_of_a_table_come_in_the_order_of_their_identifiers() -> None:
    dates = pd.to_datetime(["2003", "2002", "2001"])
    for identifiers in ([10.0, 9.0, -1.0], ["10", "9", "-1"], ["c", "b", "a"], dates):
        table = pd.DataFrame({"basket": identifiers, "item": ["last", "middle", "first"]})
        assert list(Baskets.from_table(table)) == [("first",), ("middle",), ("last",)]


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("a,b,c\nb,c,d\n", {}, "basket"),
        ("basket,thing\n1,a\n", {}, "item"),
        ("basket,item\n1,a\n", {"weight": "times"}, "'times'"),
        ("item,basket,item\nx,1,a\n", {}, "2.*'item'"),
        ("", {}, "a.csv"),
        ("basket,item\n", {}, "a.csv"),
        ("basket,item\n1,\n1,b\n2,\n", {}, "'item'"),
        ('basket,item\n1,""\n', {}, "'item'"),
        ("basket,item\n1,a\n1\n", {}, r"3.*a\.csv"),
        ("basket,item\n1,a,b\n", {}, r"2.*a\.csv"),
        ('basket,item\r\n1,"a\n1,b\n', {}, "2.*a.csv"),
        ("basket,item\n1," + "x" * 17_000_000, {}, r"a\.csv(.|\n){,900}$"),  # the message does not repeat the line
        (b"basket,item\n" + b"1,a\n" * 9000 + b"1,caf\xe9\n", {}, "encoding.*9002"),
        ("basket,item\n1,a\n".encode("utf-16"), {}, "UTF-8"),
        ("basket,item,w\n1,a,heavy\n", {"weight": "w"}, "'w'.*heavy"),
        ("basket,item,w\n1,a,2\n2,a,nan\n", {"weight": "w"}, "nan"),
        ("basket,item,w\n1,a,-2\n", {"weight": "w"}, "-2"),
        ("basket,item,w\n7,a,1\n7,b,2\n", {"weight": "w"}, "7"),
    ],
    ids=range(18),
)
def test_malformed_csv_files_are_rejected(
    text: str | bytes, options: dict[str, Any], value: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=value):
        read_baskets(write(tmp_path / "a.csv", text), **options)


@pytest.mark.parametrize(
    ("columns", "weight", "value"),
    [
        ({"place": [1], "item": ["a"]}, None, "basket"),
        ({"basket": pa.array([], pa.int64()), "item": pa.array([], pa.string())}, None, None),
        ({"basket": [1, 2], "item": ["a", None]}, None, "'item'"),
        ({"basket": [1, None], "item": [1, 2]}, None, "'basket'"),
        ({"basket": [1, 2], "item": [1.0, 2.5]}, None, "'item'"),
        ({"basket": [1, 2], "item": [["a"], ["a", "b"]]}, None, None),
        ({"basket": [1, 2], "item": pa.array(["a", None]).dictionary_encode()}, None, "'item'"),
        ({"basket": [1], "item": ["a"], "w": [float("nan")]}, "w", "'w'"),
        ({"basket": [1], "item": ["a"], "w": pa.array([1], pa.date32())}, "w", "'w'"),
        ({"basket": [7, 7], "item": ["a", "b"], "w": [1.5, 2]}, "w", "7.*1.5"),
    ],
    ids=range(10),
)
def test_invalid_tables_are_rejected_in_memory_and_in_parquet(
    columns: dict[str, Any], weight: str | None, value: str | None, tmp_path: Path
) -> None:
    table = pa.table(columns)
    with pytest.raises(InputError, match=value):
        Baskets.from_table(table, weight=weight)
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=value):
        read_baskets(tmp_path / "a.parquet", weight=weight)


def test_no_other_object_is_a_table_and_every_null_of_pandas_is_a_missing_value() -> None:
    for table in (None, 5, "orders.csv", [("1", "a")], {"basket": [1], "item": ["a"]}, pd.DataFrame()):
        with pytest.raises(InputError):
            Baskets.from_table(table)
    with pytest.raises(InputError, match=r"3 of 4 rows.*'item'"):
        Baskets.from_table(pd.DataFrame({"basket": range(4), "item": ["a", None, float("nan"), pd.NA]}))


def test_a_truncated_file_or_one_of_another_format_than_its_name_says_is_rejected(tmp_path: Path) -> None:
    parquet = parquet_bytes(frame(CASES["names"], [1.0] * 13))
    for content in (*(parquet[:kept] for kept in (1, 4, 11, 100, len(parquet) // 2, -9, -1)), "basket,item\n1,a\n" * 9):
        with pytest.raises(InputError, match=r"a\.parquet"):
            read_baskets(write(tmp_path / "a.parquet", content), **READ)
    for name in ("a.csv", "a.txt"):
        with pytest.raises(InputError, match="8"):
            read_baskets(write(tmp_path / name, parquet))
    write(tmp_path / "b.parquet", parquet)
    write(tmp_path / "c.parquet", parquet[:4] + bytes(40) + parquet[44:])
    with pytest.raises(InputError, match=r"c\.parquet"):  # the one of several that is damaged
        read_baskets([tmp_path / "b.parquet", tmp_path / "c.parquet"], **READ)


def test_malformed_files_of_lines_are_rejected(tmp_path: Path) -> None:
    for text, value in (
        ("", "a.txt"),
        ("a,b\na,,b\n", "2.*a.txt.*'a,,b'"),
        ('a,b\n"a,b\n', "2.*a.txt"),
        (b"a b\ncaf\xe9\n", "a.txt.*UTF-8"),
    ):
        with pytest.raises(InputError, match=value):
            read_baskets(write(tmp_path / "a.txt", text))


def test_a_damaged_gzip_file_is_rejected(tmp_path: Path) -> None:
    whole = gzip.compress(("basket,item\n" + "".join(f"{n},{n * n}\n" for n in range(500))).encode(), mtime=0)
    damaged = whole[: len(whole) // 2], whole[:-4], whole[:100] + bytes(100) + whole[200:]
    for content in (*damaged, b"basket,item\n1,a\n", gzip.compress(b"")):
        for name in ("a.csv.gz", "a.txt.gz"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(InputError, match=name):
                read_baskets(tmp_path / name)


def test_a_path_that_is_no_file_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in ("none.csv", "none-*.csv", ".", "a" * 300 + ".csv", "pipe.csv"):
        with pytest.raises(InputError):
            read_baskets(tmp_path / path)


def test_a_format_that_cannot_be_told_is_asked_for_and_never_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "orders.data", "basket,item\n1,a\n")
    with pytest.raises(InputError, match=r"orders.data.*--format"):
        read_baskets(path)
    with pytest.raises(InputError, match=r"format.*'excel'"):
        read_baskets(path, format="excel")
    assert list(read_baskets(path, format="csv")) == [("a",)]
    assert list(read_baskets(path, format="lines")) == [("basket", "item"), ("1", "a")]


def test_several_files_are_one_table_of_one_format_and_the_same_columns(tmp_path: Path) -> None:
    write(tmp_path / "a1.csv", "basket,item\n1,a\n")
    write(tmp_path / "a2.csv", "basket,item\n2,b\n1,c\n")
    assert list(read_baskets(tmp_path / "a*.csv")) == [("a", "c"), ("b",)]
    write(tmp_path / "a2.txt", "a b\n")
    with pytest.raises(InputError):
        read_baskets(tmp_path / "a*")
    write(tmp_path / "a2.csv", "item;note;basket\na;x;2\n")  # columns are matched by name
    assert list(read_baskets(tmp_path / "a*.csv")) == [("a",), ("a",)]
    write(tmp_path / "a2.csv", "")
    with pytest.raises(InputError, match=r"a2\.csv"):
        read_baskets(tmp_path / "a*.csv")
    pq.write_table(pa.table({"basket": [1], "item": ["a"]}), tmp_path / "a1.parquet")
    pq.write_table(pa.table({"basket": [2], "product": ["b"]}), tmp_path / "a2.parquet")
    with pytest.raises(InputError, match=r"a2\.parquet.*'item'"):
        read_baskets(tmp_path / "a*.parquet")


def test_columns_are_found_by_their_exact_name_next_to_others(tmp_path: Path) -> None:
    table = pa.table({"basket": [1], "Item": ["wrong"], "item": ["right"]})
    for found in (table, table.to_pandas(), pl.from_arrow(table)):
        assert list(Baskets.from_table(found)) == [("right",)]
    nested = {"x": [{"item": "no", "y": [1, 2]}], "item ": ["b"], "basket": [2], "Basket": [9], "note": ["n"]}
    pq.write_table(pa.table({"basket": [1], "item": ["a"]}), tmp_path / "a1.parquet")
    pq.write_table(pa.table(nested), tmp_path / "a2.parquet")
    assert list(read_baskets(tmp_path / "a*.parquet")) == [("a",), ("b",)]


def test_two_columns_of_one_name_are_rejected(tmp_path: Path) -> None:
    for name in ("item", " item"):
        table = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], names=["basket", "item", name])
        pq.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(InputError, match="'item'"):
            read_baskets(tmp_path / "a.parquet")
        for in_memory in (table, table.to_pandas()):
            with pytest.raises(InputError, match="'item'"):
                Baskets.from_table(in_memory)


def test_blanks_around_a_name_are_no_part_of_it_in_any_file(tmp_path: Path) -> None:
    """Of items, of identifiers and of columns, quoted or not, whatever blanks they are."""
    baskets, items = ["1", " 1", "2", "2\t"], [" a", "red apple ", "a\u00a0", " pear "]
    expected = [("a", "red apple"), ("a", "pear")]
    rows = [("basket", "item "), *zip(baskets, items, strict=True)]
    for line in ("{} , {}\n", '"{}" , "{}"\n'):
        write(tmp_path / "a.csv", "".join(line.format(*row) for row in rows))
        assert list(read_baskets(tmp_path / "a.csv")) == expected
        assert list(read_baskets(tmp_path / "a.csv", item=" item ")) == expected
    pq.write_table(pa.table({"basket": baskets, " item": items}), tmp_path / "a.parquet")
    assert list(read_baskets(tmp_path / "a.parquet")) == expected
    lines = " a, red apple \n" + '"a\u00a0" ," pear "\n'
    with pytest.raises(InputError, match="2"):  # a quoted item ends with its quote, or is no line of CSV
        read_baskets(write(tmp_path / "a.txt", lines))
    assert list(read_baskets(write(tmp_path / "a.txt", lines.replace('" ,', '",')))) == expected
    blanks = [chr(code) for code in range(0x11000) if chr(code).isspace()]  # and all others of Unicode
    kept = ["\u200ba\u200b", "\x00b"]  # invisible, but no blanks
    stripped = [f"{blank}a{blank}b{blank}{blank}" for blank in blanks]
    pq.write_table(pa.table({"basket": [1] * (len(blanks) + 2), "item": [*stripped, *kept]}), tmp_path / "a.parquet")
    assert read_baskets(tmp_path / "a.parquet").items == tuple(sorted([*(f"a{blank}b" for blank in blanks), *kept]))
    assert Baskets.from_table(pd.DataFrame({"basket": [1, 2], "item": [" a", "a"]})).items == ("a",)


@pytest.mark.parametrize("ends", [["\n", "\r\n", "\r\n"] * 2, ["\r"] * 5, ["\r", "\n", "\r\n"] * 2])
def test_lines_may_end_in_any_way(ends: list[str], tmp_path: Path) -> None:
    table = "".join(map("".join, zip(["basket,item", "1,a", '1,"b, c"', "2,b", '2,"a"'], ends, strict=False)))
    lines = "".join(map("".join, zip(["a,b", "b", "", '"a"', "b"], ends, strict=False)))
    for ending in ("", ".gz"):
        assert list(read_baskets(write(tmp_path / f"a.csv{ending}", table))) == [("a", "b, c"), ("a", "b")]
        found = read_baskets(write(tmp_path / f"a.txt{ending}", lines))
        assert list(found) == [("a", "b"), ("b",), (), ("a",), ("b",)]


FUZZED = {
    "a.csv": (b'basket,item,w\n1,a,1\n1,bottle,1\n2,"c,d",0.5\n', {"weight": "w"}),
    "a.txt": (b'a,b\n"c,d",a\n\nb\n', {}),
    "a.txt.gz": (gzip.compress(b"a b\nc a\n" * 20, mtime=0), {}),
    "a.parquet": (parquet_bytes(frame(CASES["names"], [1.0] * 13)), READ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpplearn.InputWarning")
@pytest.mark.parametrize("name", FUZZED)
def test_a_damaged_file_is_read_or_refused_and_never_fails_otherwise(name: str, tmp_path: Path) -> None:
    whole, options = FUZZED[name]
    rng = random.Random(name)
    refused = 0
    for _ in range(20 if name in ("a.csv", "a.parquet") else 60):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 5])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / name).write_bytes(rng.choice([content, content, content[: rng.randrange(1, len(content))]]))
        try:
            assert len(read_baskets(tmp_path / name, **options)) > 0
        except InputError:
            refused += 1
    assert refused > 0


def test_ctrl_c_while_a_file_is_read_is_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What duckdb raises then is a RuntimeError."""
    path = tmp_path / "orders.csv"
    path.write_text("basket,item\n1,a\n")

    def interrupted(*_: object, **__: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("dpplearn.data.transactions.Transactions._number_baskets", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_baskets(path)


def test_columns_of_usual_names_are_found_with_a_warning(tmp_path: Path) -> None:
    for text in ("order_id,sku\n1,a\n", "note,SKU,InvoiceNo\nx,a,1\n", "Product ID;Order\na;1\n"):
        with pytest.warns(InputWarning, match="guessed.*basket.*item"):
            assert list(read_baskets(write(tmp_path / "a.csv", text))) == [("a",)]


def test_bad_rows_are_skipped_if_asked_for(tmp_path: Path) -> None:
    text = "basket,item\n1,a\n1\n2,\n3,b,c\n4,d\n"
    with pytest.raises(InputError, match=r"3 of 5.*line 3"):
        read_baskets(write(tmp_path / "a.csv", text))
    assert list(read_baskets(tmp_path / "a.csv", on_bad_rows="skip")) == [("a",), ("d",)]
    with pytest.raises(InputError, match="'ignore'"):
        read_baskets(tmp_path / "a.csv", on_bad_rows="ignore")


def test_the_line_of_every_bad_row_is_right_whatever_ends_the_lines(tmp_path: Path) -> None:
    lines = ["basket,item", "1,a", "", " ,b", '1,"b"', "", "2,b,c", "3, ", "4,d"]
    for end in ("\n", "\r\n", "\r"):
        write(tmp_path / "a.csv", end.join(lines).encode() + b"\xe9" + end.encode())
        rejects = Transactions.open(tmp_path / "a.csv", on_bad_rows="skip").rejects
        assert sorted([row.line for row in each.examples] for each in rejects) == [[4], [7], [8], [9]]
    with pytest.raises(InputError, match=r"quote.*line 3"):  # nothing tells where the quote ends
        read_baskets(write(tmp_path / "a.csv", 'basket,item\r1,a\r2,"b\r3,c\r4,d\r'), on_bad_rows="skip")


def test_json_lines_and_several_batches_give_the_same_baskets(tmp_path: Path) -> None:
    rows = [{"basket": n // 3, "item": f"thing {n % 5}", "other": [n]} for n in range(60)]
    write(tmp_path / "a.jsonl.gz", "".join(json.dumps(row) + "\n" for row in rows))
    found = read_baskets(tmp_path / "a.jsonl.gz")
    assert plain(found) == plain(Baskets.from_table(pd.DataFrame(rows).drop(columns="other")))
    transactions = Transactions.open(tmp_path / "a.jsonl.gz")
    batches = list(transactions.iter_baskets(found.catalogue, 7))
    assert [len(each) for each in batches] == [7, 7, 6]
    assert plain(Baskets.together(batches)) == plain(found)
    assert transactions.unknown_items(Catalogue.of(["thing 0", "thing 1", "x"]))[0] == ("thing 2", 12)
