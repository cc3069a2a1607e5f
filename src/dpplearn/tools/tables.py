"""Tables as words: what is in them, what it means, and how they fit on a line. The command line draws the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import NamedTuple

from dpplearn.tools.words import shortened, wide

WIDTH = 80  # columns of plain text
NUMBERS = ">"  # at the end of a heading: the column holds numbers
LISTS = ";"  # lists of names, with a semicolon between two
PAIRS = "&"  # two names, on lines of their own
WORDS = "~"  # sentences
KINDS = NUMBERS + LISTS + PAIRS + WORDS
LEAST = 12  # columns of a name, however little room there is


class TextTable(NamedTuple):
    """A column whose heading ends in `>` holds numbers, which stand to the right and are never cut; in `;`, lists of
    names, which are broken between two of them; in `&`, pairs of names, each on one line where it fits; in `~`,
    sentences, broken between words. Names of other columns are on one line, cut in the middle if they have to be."""

    title: str
    meaning: str  # one sentence: what the table says, or how it is read
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def headings(self) -> list[str]:
        """The columns' names."""
        return [column[:-1] if kind else column for column, kind in zip(self.columns, self.kinds, strict=True)]

    @property
    def kinds(self) -> list[str]:
        """`>`, `;`, `&`, `~` or nothing, of every column."""
        return [column[-1:] if column[-1:] in KINDS else "" for column in self.columns]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [kind == NUMBERS for kind in self.kinds]

    @property
    def widths(self) -> list[int]:
        """How wide every column is."""
        columns = [*zip(*self.rows, strict=True)] if self.rows else [()] * len(self.columns)
        return [_widest([heading, *cells]) for heading, cells in zip(self.headings, columns, strict=True)]

    def fitted(self, width: int, between: int = 2) -> TextTable:
        """The same with names that leave room for all columns in a line, with so much space between two."""
        rooms = _rooms(self, width - between * (len(self.columns) - 1))
        cells = [
            column if kind == NUMBERS or not column else FITTED[kind](column, room)
            for column, kind, room in zip(zip(*self.rows, strict=True), self.kinds, rooms, strict=False)
        ]
        headings = [
            f"{heading if wide(heading) <= room else fill(heading, room)}{kind}"
            for heading, kind, room in zip(self.headings, self.kinds, rooms, strict=True)
        ]
        return self._replace(columns=headings, rows=list(zip(*cells, strict=True)))

    def width(self, between: int = 2) -> int:
        """Of its lines, with so much space between two columns."""
        return sum(self.widths) + between * (len(self.columns) - 1)


class Facts(NamedTuple):
    """What is on the left, its value on the right."""

    title: str
    rows: Sequence[tuple[str, str]]


def aligned(table: TextTable) -> list[str]:
    """The lines of a table, its headings first.

    >>> print(*aligned(TextTable("", "", ["item", "baskets>"], [("crib", "7"), ("monitor", "12")])), sep="|\\n")
    item     baskets|
    crib           7|
    monitor       12
    """
    lines = [line for row in (table.headings, *table.rows) for line in _lines(row)]
    widths = [max(map(wide, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            f"{space}{cell}" if numbers else f"{cell}{space}"
            for cell, space, numbers in zip(line, _spaces(line, widths), table.numeric, strict=True)
        ).rstrip()
        for line in lines
    ]


def as_plain_text(table: TextTable) -> list[str]:
    """A table in lines of up to 80 columns: its title, what it means, and its rows, set in."""
    rows = aligned(table.fitted(WIDTH - 2))
    return [
        fill(table.title, WIDTH),
        *([fill(table.meaning, WIDTH)] if table.meaning else []),
        *(f"  {r}" for r in rows),
    ]


def _lines(row: Sequence[str]) -> Iterator[list[str]]:
    """One or more, where cells have several."""
    cells = [cell.split("\n") for cell in row]
    for place in range(max(map(len, cells))):
        yield [cell[place] if place < len(cell) else "" for cell in cells]


def _spaces(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [" " * (width - wide(cell)) for cell, width in zip(line, widths, strict=True)]


def _widest(cells: Sequence[str]) -> int:
    return max((wide(line) for cell in cells for line in cell.split("\n")), default=0)


def _rooms(table: TextTable, width: int) -> list[int]:
    """How wide every column may be: those of names that want more than their share get what the others leave."""
    columns = [*zip(*table.rows, strict=True)] if table.rows else [()] * len(table.columns)
    wanted = [
        max(_widest([heading]), _wanted(kind, cells))
        for heading, kind, cells in zip(table.headings, table.kinds, columns, strict=True)
    ]
    left = width - sum(want for want, numbers in zip(wanted, table.numeric, strict=True) if numbers)
    rooms, names = list(wanted), [place for place, numbers in enumerate(table.numeric) if not numbers]
    for already, place in enumerate(sorted(names, key=lambda each: wanted[each])):
        rooms[place] = min(wanted[place], max(left // (len(names) - already), LEAST))
        left -= rooms[place]
    return rooms


def _wanted(kind: str, cells: Sequence[str]) -> int:
    """The room of the widest cell: of pairs on one line, of lists with that of a semicolon after a name."""
    if kind == PAIRS:
        return _widest([cell.replace("\n", " and ") for cell in cells])
    return _widest(cells) + (kind == LISTS)


def _names(cells: Sequence[str], room: int) -> list[str]:
    lines = [line for cell in cells for line in cell.split("\n")]
    short = dict(zip(lines, shortened(lines, room), strict=True))
    return ["\n".join(short[line] for line in cell.split("\n")) for cell in cells]


def _pairs(cells: Sequence[str], room: int) -> list[str]:
    """`a and b` on one line, or on two where that does not fit."""
    joined = [cell.replace("\n", " and ") for cell in cells]
    apart = [cell.replace("\n", "\n  and ") for cell in _names(cells, room - len("  and "))]
    return [one if wide(one) <= room else two for one, two in zip(joined, apart, strict=True)]


def _lists(cells: Sequence[str], room: int) -> list[str]:
    """Broken between names alone."""
    names = [name for cell in cells for name in cell.split("; ")]
    short = dict(zip(names, shortened(names, room - 1), strict=True))
    return ["\n".join(_packed([short[name] for name in cell.split("; ")], room)) for cell in cells]


def _packed(names: Sequence[str], room: int) -> Iterator[str]:
    line = names[0]
    for name in names[1:]:
        if wide(f"{line}; {name};") > room:
            yield f"{line};"
            line = name
        else:
            line = f"{line}; {name}"
    yield line


def _sentences(cells: Sequence[str], room: int) -> list[str]:
    return [fill(cell, room) for cell in cells]


FITTED = {"": _names, PAIRS: _pairs, LISTS: _lists, WORDS: _sentences}
