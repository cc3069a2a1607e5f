"""Numbers, names and tables as people read them."""

from __future__ import annotations

import pytest

from dpplearn.tools import tables, words


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


def test_short_names_fit_and_keep_beginning_and_end() -> None:
    names = ["Graco SnugRide Classic Connect 30 Infant Car Seat, Onyx Black : Baby", "Cot", 7]
    found = words.shortened(names, 40)
    assert found[1:] == ["Cot", "7"]
    assert found[0].startswith("Graco SnugRide Classic")
    assert found[0].endswith(": Baby")
    assert words.wide(found[0]) <= 40


def test_wide_letters_take_two_columns() -> None:
    (found,) = words.shortened(["電子レンジ対応保存容器セット"], 12)
    assert words.wide(found) <= 12
    assert found[0] == "電"
    assert found[-1] == "ト"
    assert [words.wide(each) for each in ("e\u0301", "\u0e17\u0e35\u0e48", "\u2764\ufe0f")] == [1, 1, 1]


LONG = "WHITE HANGING HEART T-LIGHT HOLDER OF THE SECOND KIND"


def lines(table: tables.TextTable, width: int) -> list[str]:
    return tables.aligned(table.fitted(width))


def test_a_table_fits_the_width_and_cuts_long_names_in_the_middle() -> None:
    table = tables.TextTable("", "", ["item", "n>"], [(LONG, "1"), ("cot", "1,200")])
    found = lines(table, 30)
    assert max(map(len, found)) <= 30
    assert found[1].startswith("WHITE")
    assert found[1].split()[-2:] == ["KIND", "1"]
    assert found[2].split() == ["cot", "1,200"]
    assert lines(table, 80)[1].startswith(LONG)


def test_a_pair_is_on_one_line_where_it_fits_and_on_two_where_not() -> None:
    table = tables.TextTable("", "", ["pair&", "n>"], [("tea\nmilk", "1"), (f"tea\n{LONG}", "2")])
    found = lines(table, 30)
    assert (len(found), max(map(len, found)) <= 30) == (4, True)
    assert len(lines(table, 80)) == 3


def test_a_list_is_broken_between_names_alone() -> None:
    table = tables.TextTable("", "", ["n>", "items;"], [("1", f"tea; red wine; white wine; {LONG}")])
    found = [line[3:] for line in lines(table, 30)][1:]
    assert "; ".join(found).replace(";; ", "; ").split("; ")[:3] == ["tea", "red wine", "white wine"]
    assert all(words.wide(line) <= 27 for line in found)
    assert sum("…" in line for line in found) == 1
