"""Tables as words: what is in them, and how plain text aligns it. The command line draws the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NUMBERS = ">"  # at the end of a heading: the column holds numbers


class TextTable(NamedTuple):
    """A column whose heading ends in `>` holds numbers, which stand to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def headings(self) -> list[str]:
        """The columns' names."""
        return [column.removesuffix(NUMBERS) for column in self.columns]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [column.endswith(NUMBERS) for column in self.columns]


class Facts(NamedTuple):
    """What is on the left, its value on the right."""

    title: str
    rows: Sequence[tuple[str, str]]


def aligned(table: TextTable) -> list[str]:
    """The lines of a table, its headings first.

    >>> print(*aligned(TextTable("", ["item", "baskets>"], [("crib", "7"), ("monitor", "12")])), sep="|\\n")
    item     baskets|
    crib           7|
    monitor       12
    """
    lines = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if numbers else cell.ljust(width)
            for cell, width, numbers in zip(line, widths, table.numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
