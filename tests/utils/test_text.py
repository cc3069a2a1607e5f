"""Numbers, names and tables as text."""

from __future__ import annotations

from rich.cells import cell_len

from dpplearn.utils import text


def test_missing_values_negative_zero_and_control_characters_are_written_safely() -> None:
    for write in (text.number, text.signed, text.share, text.chance):
        assert write(float("nan")) == "-"
    assert text.count(None) == "-"
    assert (text.number(-0.00001), text.share(-0.00001)) == ("0.0000", "0%")
    assert (text.number(float("inf")), text.signed(-1234.5, 1)) == ("inf", "-1,234.5")
    assert "\x1b" not in text.shown("evil\x1b[2Jname")


def test_shortened_names_fit_and_keep_beginning_and_end() -> None:
    names = ["Graco SnugRide Classic Connect 30 Infant Car Seat, Onyx Black : Baby", "Cot", 7]
    found = text.shortened(names, 40)
    assert found[1:] == ["Cot", "7"]
    assert found[0].startswith("Graco SnugRide Classic")
    assert found[0].endswith(": Baby")
    (wide,) = text.shortened(["電子レンジ対応保存容器セット"], 12)  # each character takes two columns
    assert (wide[0], wide[-1]) == ("電", "ト")
    assert (cell_len(found[0]) <= 40, cell_len(wide) <= 12) == (True, True)


LONG = "WHITE HANGING HEART T-LIGHT HOLDER OF THE SECOND KIND"


def lines_of(columns: list[str], rows: list[tuple[str, ...]], width: int = 80) -> list[str]:
    """Return the heading and the rows of a table without its indent."""
    lines = text.as_text([text.TextTable("", "", columns, rows)], width).splitlines()
    return [line.removeprefix("  ") for line in lines]


def test_a_table_fits_the_width_and_loses_neither_words_nor_digits() -> None:
    rows = [(LONG, "1"), ("cot", "123,456,789,000")]
    lines = lines_of(["item", "n>"], rows, 42)
    assert max(map(len, lines)) <= 40
    assert " ".join(line[:23].strip() for line in lines[1:-1]) == LONG
    assert lines[1].split()[-1] == "1"
    assert lines[-1].split() == ["cot", "123,456,789,000"]
    assert lines_of(["item", "n>"], rows)[1].startswith(LONG)


def test_numbers_are_never_cut_and_markup_is_printed_as_it_is() -> None:
    rows = [("cot", "123,456,789,000", "123,456,789,000")]
    lines = lines_of(["item", "n>", "m>"], rows, 20)  # too narrow
    assert lines[-1].split() == ["cot", "123,456,789,000", "123,456,789,000"]
    assert lines_of(["item"], [("[red]cot[/red] :smile:",)])[1] == "[red]cot[/red] :smile:"
