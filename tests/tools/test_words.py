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


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (words.number(-0.001, 2), "0.00"),
        (words.number(-1234.5, 1), "−1,234.5"),
        (words.number(float("-inf")), "−∞"),
        (words.number(float("nan")), "–"),
        (f"{words.number(None)} ± {words.number(-1.0, 0)}, or {words.small(None)}", "– ± −1, or –"),
        (words.percent(0.004), "0.00 %"),
        (words.percent(2.5), "+2.50 %"),
        (words.percent(-2.5), "−2.50 %"),
        (words.percent(float("-inf")), "−∞ %"),
        (words.percent(None), "–"),
        (words.share(0.256), "26 %"),
        (words.spread([-1.0, 2.0, 3.0], 0), "2 [−1, 3]"),
        (words.spread([None, 2.0, 3.0], 0), "2 [–, 3]"),
        (words.spread([None, 2.0, None]), "2.00"),
        (words.small(0), "0"),
        (words.small(2.3e-13), "2e-13"),
        ("K-Ascent, 1-2", "K-Ascent, 1-2"),  # a hyphen is no minus
    ],
)
def test_a_page_has_signs_for_minus_infinity_and_percent(written: str, expected: str) -> None:
    assert words.typeset(written) == expected


def test_numbers_stand_to_the_right_and_names_to_the_left() -> None:
    table = tables.TextTable("", ["item", "n>", ""], [("crib", "7", "x"), ("cot", "1,200", "")])
    assert tables.aligned(table) == ["item      n", "crib      7  x", "cot   1,200"]
