"""Numbers, names and tables as people read them."""

from __future__ import annotations

from dpplearn.tools import tables, words


def test_missing_values_negative_zero_and_control_characters_are_written_safely() -> None:
    for write in (words.number, words.signed, words.share, words.chance, words.small):
        assert write(float("nan")) == "-"
    assert words.count(None) == "-"
    assert (words.number(-0.00001), words.percent(-0.001)) == ("0.0000", "0.00%")
    assert (words.number(float("inf")), words.signed(-1234.5, 1)) == ("inf", "-1,234.5")
    assert "\x1b" not in words.shown("evil\x1b[2Jname")


def test_short_names_fit_and_keep_beginning_and_end() -> None:
    names = ["Graco SnugRide Classic Connect 30 Infant Car Seat, Onyx Black : Baby", "Cot", 7]
    found = words.shortened(names, 40)
    assert found[1:] == ["Cot", "7"]
    assert found[0].startswith("Graco SnugRide Classic")
    assert found[0].endswith(": Baby")
    (wide,) = words.shortened(["電子レンジ対応保存容器セット"], 12)  # letters of two columns
    assert (wide[0], wide[-1]) == ("電", "ト")
    assert (words.wide(found[0]) <= 40, words.wide(wide) <= 12) == (True, True)
    assert [words.wide(each) for each in ("e\u0301", "\u0e17\u0e35\u0e48", "\u2764\ufe0f")] == [1, 1, 1]


LONG = "WHITE HANGING HEART T-LIGHT HOLDER OF THE SECOND KIND"


def lines(table: tables.TextTable, width: int) -> list[str]:
    return tables.aligned(table.fitted(width))


def test_a_table_fits_the_width_and_cuts_or_breaks_long_names() -> None:
    table = tables.TextTable("", "", ["item", "n>"], [(LONG, "1"), ("cot", "1,200")])
    found = lines(table, 30)
    assert max(map(len, found)) <= 30
    assert found[1].startswith("WHITE")
    assert found[1].split()[-2:] == ["KIND", "1"]
    assert lines(table, 80)[1].startswith(LONG)
    pairs = tables.TextTable("", "", ["pair&", "n>"], [("tea\nmilk", "1"), (f"tea\n{LONG}", "2")])
    assert max(map(len, lines(pairs, 30))) <= 30
    assert len(lines(pairs, 80)) == 3  # on one line each where there is room
    lists = tables.TextTable("", "", ["n>", "items;"], [("1", f"tea; red wine; white wine; {LONG}")])
    broken = [line[3:] for line in lines(lists, 30)][1:]
    assert "; ".join(broken).replace(";; ", "; ").split("; ")[:3] == ["tea", "red wine", "white wine"]
    assert all(words.wide(line) <= 27 for line in broken)
