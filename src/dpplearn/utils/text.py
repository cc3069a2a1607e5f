"""Numbers, names and tables as text.

Numbers are ASCII. A value that does not exist (None or NaN) is written `-`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "-"
WIDTH = 80  # columns of plain text
MAX_EXPONENT = 700.0  # exp of more overflows
MAX_NAME = 40  # columns of one name in a heading that would not fit on a line
MAX_NAMES = 66  # columns of a list of names in a heading
MIN_CELL = 12  # columns of a cell of text, however narrow the table
MAX_TABLE_WIDTH = 10_000  # columns, far more than any table has


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with thousands separators and without a negative zero.

    >>> number(-1234.5, 1), number(-0.001, 2), number(float("-inf")), number(None)
    ('-1,234.5', '0.00', '-inf', '-')
    """
    return MISSING if _missing(value) else f"{value:z,.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference, always with a sign.

    >>> signed(2.5, 2), signed(-0.001, 2)
    ('+2.50', '+0.00')
    """
    return MISSING if _missing(value) else f"{value:+z,.{digits}f}"


def share(value: float | None, digits: int = 0) -> str:
    """Return a fraction from 0 to 1 as a percentage.

    >>> share(0.256), share(0.0312, 1)
    ('26%', '3.1%')
    """
    return MISSING if value is None or math.isnan(value) else f"{number(100 * value, digits)}%"


def count(value: float | None, what: str = "") -> str:
    """Return a whole number, with the noun in the right number if one is given.

    >>> count(1234), count(1, "basket"), count(2, "basket")
    ('1,234', '1 basket', '2 baskets')
    """
    return f"{number(value, 0)} {what}{'' if value == 1 else 's'}" if what else number(value, 0)


def times_as_likely(gain: float | None) -> str:
    """Return the ratio of probabilities that a gain in nats corresponds to.

    >>> times_as_likely(0.044), times_as_likely(-0.05), times_as_likely(40.0), times_as_likely(None)
    ('1.04 times as likely', '0.951 times as likely', '2.35e+17 times as likely', '-')
    """
    if gain is None or not math.isfinite(gain):
        return MISSING
    return f"{math.exp(min(gain, MAX_EXPONENT)):.3g} times as likely"


def as_often(lift: float | None) -> str:
    """Return a lift in words.

    >>> as_often(0.49), as_often(7.31), as_often(None)
    ('0.49 times as often', '7.31 times as often', '-')
    """
    return MISSING if lift is None or not math.isfinite(lift) else f"{lift:.3g} times as often"


def chance(value: float) -> str:
    """Return a probability or a ratio, in scientific notation if it is small or large.

    >>> chance(0.25), chance(0.00012)
    ('0.2500', '1.20e-04')
    """
    return number(value) if value == 0 or 0.001 <= abs(value) < 1000 or _missing(value) else f"{value:.2e}"


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shown(label: Any) -> str:
    """Return a label with control characters escaped, so that a terminal does not interpret them.

    >>> print(shown("two\\nlines"))
    two\\nlines
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(label))


def contents(labels: Iterable[Any]) -> str:
    """Return the items of a basket, separated by semicolons because names may contain commas.

    >>> contents(["crib, white", "cot"]), contents([])
    ('crib, white; cot', '(nothing)')
    """
    return "; ".join(map(shown, labels)) or "(nothing)"


def briefly(labels: Sequence[Any]) -> str:
    """Return the items of a basket for a heading, with long names shortened if the list does not fit on a line.

    >>> briefly(["cot", "crib"])
    'cot; crib'
    """
    whole = contents(labels)
    if len(whole) <= MAX_NAMES:
        return whole
    return contents(shortened(labels, MAX_NAME if len(labels) > 1 else MAX_NAMES))


def shortened(labels: Sequence[Any], width: int) -> list[str]:
    """Return labels of at most `width` columns."""
    return [without_middle(shown(label), width) for label in labels]


def display_width(text: str) -> int:
    """Return how many terminal columns a text takes: two for each Chinese, Japanese or Korean letter."""
    from rich.cells import cell_len

    return cell_len(text)


def without_middle(name: str, width: int) -> str:
    """Return a name of at most `width` terminal columns: two thirds from its beginning, the rest from its end.

    >>> without_middle("Infant Optics Digital Video Baby Monitor", 20)
    'Infant Optics…onitor'
    """
    from rich.cells import set_cell_size

    if display_width(name) <= width:
        return name
    end = set_cell_size(name[::-1], (width - 1) // 3)[::-1]
    return f"{set_cell_size(name, width - 1 - display_width(end)).rstrip()}…{end.lstrip()}"


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


class TextTable(NamedTuple):
    """Rows under headings. A column whose heading ends in `>` holds numbers: right-aligned, never wrapped."""

    title: str
    meaning: str  # one sentence: what the table shows, or how to read it
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Facts(NamedTuple):
    """Names on the left, values on the right."""

    title: str
    rows: Sequence[tuple[str, str]]


Part = TextTable | Facts | str  # a result is printed as tables and sentences; empty sentences are left out


class Result:
    """A result that prints as tables and sentences."""

    def tables(self) -> Iterable[Part]:
        """Yield tables and sentences."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self.tables())


def as_text(parts: Iterable[Part], width: int = WIDTH) -> str:
    """Return tables and sentences as plain text of at most `width` columns.

    Control characters are escaped, so that a name in the data cannot control a terminal. A line break within a cell
    is kept.

    >>> print(as_text([TextTable("Items", "", ["item", "baskets>"], [("crib", "7"), ("monitor", "12")]), "Two items."]))
    Items
      item     baskets
      crib           7
      monitor       12
    <BLANKLINE>
    Two items.
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    # rich prints nothing wider than its console; a table whose numbers do not fit is wider than `width`.
    plain = StringIO()
    console = Console(file=plain, width=MAX_TABLE_WIDTH, color_system=None, legacy_windows=False)
    after_table = False
    for part in (each for each in parts if each):
        is_table = not isinstance(part, str)
        if is_table or after_table:
            console.print()
        sentences = [part] if isinstance(part, str) else [part.title, *part[1:2] * isinstance(part, TextTable)]
        for sentence in filter(None, sentences):
            console.print(Text(shown(sentence)), width=width)
        if not isinstance(part, str):
            table = _rich_table(part)
            least = 2 + sum((column.min_width or 0) + 2 for column in table.columns)
            console.print(Padding(table, (0, 0, 0, 2)), width=max(width, least))
        after_table = is_table
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines()).removeprefix("\n")


def _rich_table(part: TextTable | Facts) -> Table:
    """Return the rows as a rich table that fits any width."""
    from rich.table import Table
    from rich.text import Text

    columns = ["", ""] if isinstance(part, Facts) else part.columns
    rows = [["\n".join(map(shown, cell.split("\n"))) for cell in row] for row in part.rows]
    table = Table(show_header=isinstance(part, TextTable), pad_edge=False, box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(columns):
        widest = max((display_width(line) for row in rows for line in row[place].split("\n")), default=0)
        numbers = heading.endswith(">")
        table.add_column(
            Text(heading.removesuffix(">")),
            justify="right" if numbers else "left",
            min_width=widest if numbers or (isinstance(part, Facts) and place == 0) else min(widest, MIN_CELL),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return table
