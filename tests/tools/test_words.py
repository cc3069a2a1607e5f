"""Numbers, names and tables as people read them."""

from __future__ import annotations

import doctest

import pytest

from dpplearn.tools import tables, words


@pytest.mark.parametrize("module", [words, tables])
def test_the_examples_are_true(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (words.number(-0.00001), "0.0000"),
        (words.number(float("nan")), "-"),
        (words.number(float("inf")), "inf"),
        (words.signed(float("nan")), "-"),
        (words.signed(-1234.5, 1), "-1,234.5"),
        (words.percent(-0.001), "0.00%"),
        (words.percent(float("inf")), "+inf%"),
        (words.share(float("nan")), "-"),
        (words.count(0, "basket"), "0 baskets"),
        (words.count(None), "-"),
        (words.chance(0.0), "0.0000"),
        (words.chance(-12345.0), "-1.23e+04"),
        (words.chance(float("nan")), "-"),
        (words.small(float("nan")), "-"),
        (words.listed([]), ""),
        (words.listed(["a"]), "a"),
        (words.listed(("a", "b")), "a and b"),
        (words.shown("evil\x1b[2Jname"), "evil\\x1b[2Jname"),
    ],
)
def test_figures_and_names_are_written_as_a_reader_expects(written: str, expected: str) -> None:
    assert written == expected


def test_numbers_stand_to_the_right_and_names_to_the_left() -> None:
    table = tables.TextTable("", "", ["item", "n>", ""], [("crib", "7", "x"), ("cot", "1,200", "")])
    assert tables.aligned(table) == ["item      n", "crib      7  x", "cot   1,200"]


def test_short_names_fit_and_keep_beginning_and_end() -> None:
    names = ["Graco SnugRide Classic Connect 30 Infant Car Seat, Onyx Black : Baby", "Cot", 7]
    found = words.shortened(names, 40)
    assert found[1:] == ["Cot", "7"]
    assert found[0].startswith("Graco SnugRide Classic")
    assert found[0].endswith(": Baby")
    assert words.wide(found[0]) <= 40


def test_marks_take_no_column() -> None:
    assert [words.wide(each) for each in ("e\u0301", "\u0e17\u0e35\u0e48", "\u2764\ufe0f")] == [1, 1, 1]


def test_wide_letters_take_two_columns() -> None:
    (found,) = words.shortened(["電子レンジ対応保存容器セット"], 12)
    assert words.wide(found) <= 12
    assert found[0] == "電"
    assert found[-1] == "ト"


LONG = "WHITE HANGING HEART T-LIGHT HOLDER OF THE SECOND KIND"


def lines(table: tables.TextTable, width: int) -> list[str]:
    return tables.aligned(table.fitted(width))


def test_a_long_name_is_cut_in_the_middle_once_and_never_broken() -> None:
    found = lines(tables.TextTable("", "", ["item", "n>"], [(LONG, "1"), ("cot", "12")]), 30)
    assert found[1:] == ["WHITE HANGING HEA…OND KIND   1", "cot                         12"]
    assert max(map(len, found)) == 30


def test_a_pair_is_on_one_line_where_it_fits_and_on_two_where_not() -> None:
    table = tables.TextTable("", "", ["pair&", "n>"], [("tea\nmilk", "1"), (f"tea\n{LONG}", "2")])
    found = lines(table, 30)
    assert found[1].split() == ["tea", "and", "milk", "1"]
    assert found[2].split() == ["tea", "2"]
    assert found[3] == "  and WHITE HANGING…D KIND"
    assert max(map(len, found)) <= 30
    assert lines(table, 80)[2].startswith(f"tea and {LONG}")


def test_a_list_is_broken_between_names_alone() -> None:
    table = tables.TextTable("", "", ["n>", "items;"], [("1", f"tea; red wine; white wine; {LONG}")])
    found = [line[3:] for line in lines(table, 30)][1:]
    assert "; ".join(found).replace(";; ", "; ").split("; ")[:3] == ["tea", "red wine", "white wine"]
    assert all(words.wide(line) <= 27 for line in found)
    assert sum("…" in line for line in found) == 1


def test_a_name_is_not_cut_where_there_is_room() -> None:
    table = tables.TextTable("", "", ["left;", "n>"], [("other vegetables", "1"), ("soda", "2")])
    assert "other vegetables" in lines(table, 80)[1]


def test_a_heading_is_broken_where_its_column_has_less_room() -> None:
    table = tables.TextTable("", "", ["basket", "what it holds, and what to add;"], [(LONG, "tea"), (LONG, LONG)])
    found = lines(table, 40)
    assert max(map(len, found)) <= 40
    assert [line.split() for line in found[:2]] == [["basket", "what", "it", "holds,", "and"], ["what", "to", "add"]]
    assert lines(tables.TextTable("", "", ["", "n>"], [("", "1")]), 40) == ["  n", "  1"]


def test_sentences_are_broken_between_words_and_numbers_never() -> None:
    table = tables.TextTable("", "", ["claim~", "n>"], [("one two three four five six", "1,234,567,890")])
    found = lines(table, 30)[1:]
    assert " ".join(line[:15].strip() for line in found) == "one two three four five six"
    assert found[0].endswith("1,234,567,890")
