"""Prepare raw orders as baskets per category: rules, file formats, and the account of every row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dpplearn as dl
from helpers.order_files import LENIENT, random_orders, write_csv

COLUMNS = ("basket", "item", "category")

CATEGORY = {
    **dict.fromkeys("ant bee cat dog eel fox".split(), "toys"),
    **dict.fromkeys("cot cup".split(), "sleep"),
    **dict.fromkeys("ice ink".split(), "late"),
    **dict.fromkeys("pen pad".split(), "poor"),
    "one": "tiny",
    "zoo": "gone",
    "postage": "extra",
}
EARLY, LATE = "2026-01-15", "2026-02-15"
SIXTY = {  # 56 rows, and four bad ones below
    "1": "ant bee cat dog",
    "2": "ant bee cat dog",
    "3": "ant bee cat dog",
    "4": "ant bee cot cup",
    "5": "cot cup cup",
    "7": "cot cup",
    "8": "pen pad",
    "9": "pen pad",
    "10": "pen pad one",
    "11": "one cup",
    "12": "one bee",
    "13": "ice ink",
    "14": "ice ink",
    "15": "ice ink",
    "16": "ice ink ant",
    "17": "ant",
    "18": "ant bee cat dog cot",
    "19": "postage",
    "20": "ant postage bee",
    "21": "bee cat",
    "23": "eel fox",
    "24": "zoo",
}
BAD = [",bee,toys,1,2026-01-15", "98,bee,toys,many,2026-01-15", "98,bee,toys,1,soon", "98,bee"]


def sixty_rows(path: Path) -> Path:
    lines = ["basket,item,category,weight,day"]
    for basket, items in SIXTY.items():
        for number, item in enumerate(items.split()):
            weight = number + 1 if basket == "21" else 2
            day = LATE if basket in ("13", "14", "15", "16") else EARLY
            lines.append(f"{basket},{item},{CATEGORY[item]},{weight},{day}")
    path.write_text("\n".join([*lines, *BAD]) + "\n")
    assert len(lines) - 1 + len(BAD) == 60
    return path


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> dl.Prepared:
    folder = tmp_path_factory.mktemp("sixty")
    with pytest.warns(dl.InputWarning, match=r"4.*60"):
        return dl.prepare(
            sixty_rows(folder / "orders.csv"),
            folder / "out",
            weight="weight",
            time="day",
            split_time="2026-02-01",
            min_products=2,
            max_products=4,
            min_count=6,  # every basket counts twice, by its weight
            top_items=3,
            min_items=2,
            min_baskets_per_item=4,
            drop=["postage"],
        )


def test_every_rule_is_applied_and_every_row_accounted_for(sixty: dl.Prepared) -> None:
    found = {
        each["rule"]: (each["rows"], each["baskets"], each["items"], each["categories"])
        for each in sixty.manifest["account"]
    }
    assert found == {
        "drop": (2, 1, 1, 1),  # postage, with basket 19
        "weights": (2, 1, 0, 0),  # basket 21
        "min_products": (2, 2, 1, 1),  # baskets 17 and 24
        "max_products": (5, 1, 0, 0),  # basket 18
        "repeats": (1, 0, 0, 0),  # the second cup in basket 5
        "min_count": (2, 1, 2, 0),  # eel and fox, with basket 23
        "top_items": (3, 0, 1, 0),  # dog, as frequent as cat and after it
        "min_items": (3, 0, 1, 1),  # tiny
        "min_baskets_per_item": (6, 3, 2, 1),  # poor, with baskets 8, 9 and 10
        "split": (8, 3, 2, 1),  # late, with baskets 13 to 15
        "kept": (22, 10, 5, 2),
    }
    assert [sum(column) for column in zip(*found.values(), strict=True)] == [56, 22, 15, 7]


def test_the_right_baskets_are_kept_on_the_right_side(sixty: dl.Prepared) -> None:
    found = sixty
    assert [(each.slug, each.items, each.n_baskets) for each in found.categories] == [
        ("sleep", ("cot", "cup"), {"train": 4, "test": 0}),
        ("toys", ("ant", "bee", "cat"), {"train": 6, "test": 1}),
    ]
    train, test = found.train("toys"), found.test("toys")
    three, pair = ("ant", "bee", "cat"), ("ant", "bee")
    assert list(train) == [three, three, three, pair, ("bee",), pair]
    assert train.weights.tolist() == [2.0] * 6
    assert list(test) == [("ant",)]
    assert test.items == train.items == three
    assert list(found.train("sleep")) == [("cot", "cup")] * 3 + [("cup",)]
    assert found.test("sleep") is None
    assert found.manifest["lost_categories"] == {
        "extra": "drop",
        "gone": "min_products",
        "late": "split",
        "poor": "min_baskets_per_item",
        "tiny": "min_items",
    }
    examples = [row for each in sixty.manifest["bad_rows"] for row in each["examples"]]
    assert sorted(row["line"] for row in examples) == [58, 59, 60, 61]
    assert {Path(row["file"]).name for row in examples} == {"orders.csv"}
    assert sixty.manifest["n_rows"] == 60


def hashes(prepared: dl.Prepared) -> dict[str, str]:
    return {f"{each.slug} {side}": file.sha256 for each in prepared.categories for side, file in each.files.items()}


@pytest.mark.slow
def test_threads_memory_and_the_order_of_rows_make_no_difference(tmp_path: Path) -> None:
    rows = random_orders(2000)
    found = []
    for number, options in enumerate(({}, {"threads": 1}, {"threads": 3, "memory": "500MB"})):
        orders = write_csv(tmp_path / f"{number}.csv", COLUMNS, rows[:: -1 if number else 1])
        found.append(dl.prepare(orders, tmp_path / f"out {number}", min_count=3, min_items=2, **options))
    assert len({str((hashes(each), each.manifest["account"])) for each in found}) == 1


def test_baskets_count_with_their_weight_in_the_rules_and_in_the_shares(tmp_path: Path) -> None:
    rows = [(1, "bib", 5), (2, "cot", 1), (3, "cot", 1), (4, "bib", 5), (4, "cup", 5)]
    orders = write_csv(tmp_path / "orders.csv", ("basket", "item", "weight"), rows)
    found = dl.prepare(orders, tmp_path / "out", weight="weight", train=1, **{**LENIENT, "min_count": 5})
    assert found.categories[0].items == ("bib", "cup")  # cot is in two baskets, of weight 2 in all
    assert (found.categories[0].files["train"].weight, found.manifest["total_weight"]) == (10, 10)


def test_a_basket_is_split_by_the_time_of_its_latest_row(tmp_path: Path) -> None:
    rows = [
        (1, "bib", EARLY),
        (1, "cot", LATE),
        (2, "cot", EARLY),
        (2, "bib", EARLY),
        (3, "parcel", LATE),
        (3, "bib", EARLY),
    ]
    orders = write_csv(tmp_path / "orders.csv", ("basket", "item", "day"), rows)
    found = dl.prepare(orders, tmp_path / "out", time="day", split_time="2026-02-01", drop=["parcel"], **LENIENT)
    assert list(found.train("all")) == [("bib", "cot"), ("bib",)]  # a row of a dropped item has no part in it
    assert list(found.test("all")) == [("bib", "cot")]
    assert dl.read_baskets(orders, time="day").times.astype("datetime64[D]").astype(str).tolist() == [LATE, EARLY, LATE]


def test_a_column_of_later_json_lines_is_read(tmp_path: Path) -> None:
    lines = [{"basket": n, "item": "bib"} for n in range(1100)] + [{"basket": 9999, "item": "cot", "category": "sleep"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.warns(dl.InputWarning, match=r"1100 of 1101.*'category'"):
        found = dl.prepare(tmp_path / "a.jsonl", tmp_path / "out", train=1, **LENIENT)
    assert [each.name for each in found.categories] == ["sleep"]


def test_labels_that_differ_in_case_and_charges_are_reported(tmp_path: Path) -> None:
    rows = [(1, "Bib"), (1, "bib"), (2, "POSTAGE"), (2, "cot"), (3, "gift wrap large")]
    orders = write_csv(tmp_path / "orders.csv", ("basket", "item"), rows)
    with pytest.warns(dl.InputWarning, match=r"'Bib' and 'bib'|POSTAGE"):
        found = dl.prepare(orders, tmp_path / "out", train=1, **LENIENT)
    variants, charges = found.manifest["notes"]
    assert all(each in variants for each in ("'Bib'", "'bib'"))
    assert "(POSTAGE; gift wrap large)" in charges
    with pytest.warns(dl.InputWarning):
        found = dl.prepare(orders, tmp_path / "out", train=1, drop=["POST*", "gift*"], **LENIENT)
    assert (found.manifest["account"][0]["rows"], len(found.manifest["notes"])) == (2, 1)
    assert found.categories[0].items == ("Bib", "bib", "cot")


@pytest.mark.slow
def test_a_basket_is_on_one_side_in_all_its_categories_and_shares_are_close(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(400))
    found = dl.prepare(orders, tmp_path / "out", min_count=3, min_items=2)
    train, test = (
        {basket for each in found.categories for basket in read(each.slug).ids} for read in (found.train, found.test)
    )
    assert not train & test
    assert len(train | test) == found.manifest["account"][-1]["baskets"]
    # Of n baskets drawn at random, the share has a standard deviation of sqrt(0.21 / n); n is above 300 here.
    shares = [each.n_baskets["train"] / sum(each.n_baskets.values()) for each in found.categories]
    assert all(abs(share - 0.7) < 4 * (0.21 / 300) ** 0.5 for share in shares)
    other = dl.prepare(orders, tmp_path / "other", min_count=3, min_items=2, seed=1)
    assert hashes(other) != hashes(found)


def test_without_a_category_column_there_is_one_category_and_no_test_where_none_is_wanted(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", ("basket", "item"), [(1, 7), (1, 9), (2, 9), (2, 10)])
    found = dl.prepare(orders, tmp_path / "out", train=1, **LENIENT)
    assert [(each.slug, each.items) for each in found.categories] == [("all", (7, 9, 10))]
    assert list(found.train("all")) == [(7, 9), (9, 10)]
    assert found.test("all") is None
    with_one = write_csv(tmp_path / "more.csv", COLUMNS, [(1, 7, "x"), (1, 9, "y"), (2, 9, "y")])
    found = dl.prepare(with_one, tmp_path / "out", category=None, train=1, **LENIENT)
    assert [(each.slug, each.items) for each in found.categories] == [("all", (7, 9))]


def test_an_item_in_two_categories_is_one_product_and_its_rows_are_counted_once(tmp_path: Path) -> None:
    rows = [(1, "bib", "x"), (1, "bib", "y"), (2, "bib", "x"), (2, "cup", "x"), (3, "cup", "x"), (3, "cup", "x")]
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, rows)
    found = dl.prepare(orders, tmp_path / "out", **{**LENIENT, "train": 1, "min_products": 2})
    assert {each.slug: list(found.train(each.slug)) for each in found.categories} == {"x": [("bib", "cup")]}


def test_items_are_renamed_dropped_and_selected_by_identifier_or_name(tmp_path: Path) -> None:
    rows = [(1, "7", "x"), (1, "8", "x"), (2, "9", "x"), (2, "10", "x"), (2, "3", "x")]
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, rows)
    table = [("7", "crib"), ("8", "bib"), ("9", "bib"), ("3", "postage"), ("55", "unused")]
    names = write_csv(tmp_path / "names.csv", ("item", "title"), table)
    named = {"names": names, "name": "title", "train": 1, **LENIENT}
    with pytest.warns(dl.InputWarning, match="parcel"):
        found = dl.prepare(orders, tmp_path / "out", drop=["postage", "parcel"], **named)
    assert list(found.train("x")) == [("bib (8)", "crib"), ("10", "bib (9)")]  # two items share a name
    assert found.manifest["account"][0]["rows"] == 1
    some = dl.prepare(orders, tmp_path / "some", items=["crib", "8"], **named)
    assert list(some.train("x")) == [("bib", "crib")]
    with pytest.raises(dl.InputError, match=r"names.csv.*'name'"):
        dl.prepare(orders, tmp_path / "out", names=names, **LENIENT)


@pytest.mark.slow
def test_an_unreadable_file_stops_the_run_before_anything_is_written(tmp_path: Path) -> None:
    good = write_csv(tmp_path / "good.csv", COLUMNS, random_orders(40))
    cut, text = write_csv(tmp_path / "cut.csv.gz", COLUMNS, random_orders(1000)), tmp_path / "text.jsonl"
    cut.write_bytes(cut.read_bytes()[:-2000])
    text.write_text("no JSON at all\n")
    before = dl.prepare(good, tmp_path / "out", **LENIENT)
    for bad in (cut, text):
        for out in ("out", "new"):
            with pytest.raises(dl.InputError, match=re.escape(bad.name)):
                dl.prepare([good, bad], tmp_path / out, **LENIENT)
        assert not (tmp_path / "new").exists()
    left = {each.name.partition("-")[0] for each in (tmp_path / "out").iterdir()}
    assert left == {".prepare", "manifest.json", "baskets"}
    assert dl.Prepared.open(tmp_path / "out").manifest == before.manifest
    assert before.is_whole()


def test_a_malformed_or_older_manifest_is_an_error_that_names_the_file_and_prepare_replaces_it(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(60))
    good = dl.prepare(orders, tmp_path / "out", **LENIENT)
    path = tmp_path / "out" / "manifest.json"
    text = path.read_text()
    older = json.loads(text) | {"format": 1}
    del older["total_weight"]
    damaged: list[Any] = [older, [], 3, None]
    for name in ("format", "categories", "digest", "n_rows"):
        damaged += [{key: value for key, value in json.loads(text).items() if key != name}]
        damaged += [json.loads(text) | {name: value} for value in (None, "text", [1])]
    changed = json.loads(text)
    changed["categories"][0]["files"]["train"]["n_baskets"] += 1
    for content in (*map(json.dumps, [*damaged, changed]), text[:-9], "\x00"):
        path.write_text(content)
        with pytest.raises(dl.InputError, match=f"{re.escape(str(path))}.*run prepare again"):
            dl.Prepared.open(tmp_path / "out")
    path.write_text(json.dumps(older))
    again = dl.prepare(orders, tmp_path / "out", **LENIENT)
    assert again.new
    assert again.manifest == good.manifest == dl.Prepared.open(tmp_path / "out").manifest


def test_invalid_options_and_inputs_are_rejected_and_nothing_is_written(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(20))
    for options, message in (
        ({"item": "product"}, "'product'"),
        ({"category": "shelf"}, "'shelf'"),
        ({"min_products": 0}, "min_products.*0"),
        ({"min_products": 9, "max_products": 8}, "min_products.*9.*8"),
        ({"top_items": 5}, "top_items.*5"),
        ({"train": 0}, "train.*0"),
        ({"train": None}, "train.*None"),
        ({"split_time": "2026-10-01"}, "split_time"),
        ({"split_time": "October", "time": "item"}, "'October'"),
        ({"memory": "lots"}, "memory.*'lots'"),
        ({"min_items": 50}, "4.*min_count.*100"),  # no category is left
    ):
        with pytest.raises(dl.InputError, match=message):
            dl.prepare(orders, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
