"""Numbers, names and lists as people read them: on a terminal, in a printed result, on a page.

Every function gives plain ASCII for what it writes itself, but for the mark of what was cut, with `-` for a value that
does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, east_asian_width

MISSING = "-"
CUT = "…"  # in the place of what was cut from a name
LARGEST_EXPONENT = 700.0  # exp of more overflows
MARKS = ("Mn", "Me")  # categories of what stands above, below or around a letter
LISTED = 40  # columns of a name in a list that would not fit on a line
LINE = 66  # columns of such a list, beside what comes before it


def number(value: float | None, digits: int = 4) -> str:
    """With thousands set apart, and never a minus before a zero.

    >>> number(-1234.5, 1), number(-0.001, 2), number(float("-inf")), number(None)
    ('-1,234.5', '0.00', '-inf', '-')
    """
    return MISSING if _missing(value) else f"{value:z,.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    """A difference.

    >>> signed(2.5, 2), signed(-0.001, 2)
    ('+2.50', '+0.00')
    """
    return MISSING if _missing(value) else f"{value:+z,.{digits}f}"


def percent(value: float | None, digits: int = 2) -> str:
    """A difference that is in percent already.

    >>> percent(2.5), percent(0.004), percent(None)
    ('+2.50%', '0.00%', '-')
    """
    if value is None or math.isnan(value):
        return MISSING
    text = number(value, digits)
    return f"{'+' if value > 0 and text != number(0, digits) else ''}{text}%"


def share(value: float | None, digits: int = 0) -> str:
    """A part of a whole, from 0 to 1.

    >>> share(0.256), share(0.0312, 1)
    ('26%', '3.1%')
    """
    return MISSING if value is None or math.isnan(value) else f"{number(100 * value, digits)}%"


def count(value: float | None, what: str = "") -> str:
    """A whole number, and of what.

    >>> count(1234), count(1, "basket"), count(2, "basket")
    ('1,234', '1 basket', '2 baskets')
    """
    return f"{number(value, 0)} {what}{'' if value == 1 else 's'}" if what else number(value, 0)


def likelier(gain: float | None) -> str:
    """Return the ratio of probabilities that a gain in nats corresponds to.

    >>> likelier(0.044), likelier(-0.05), likelier(40.0), likelier(None)
    ('1.04 times as likely', '0.951 times as likely', '2.35e+17 times as likely', '-')
    """
    if gain is None or not math.isfinite(gain):
        return MISSING
    return f"{math.exp(min(gain, LARGEST_EXPONENT)):.3g} times as likely"


def as_often(lift: float | None) -> str:
    """Return a lift in words.

    >>> as_often(0.49), as_often(7.31), as_often(None)
    ('0.49 times as often', '7.31 times as often', '-')
    """
    return MISSING if lift is None or not math.isfinite(lift) else f"{lift:.3g} times as often"


def chance(value: float) -> str:
    """A probability or a factor, with digits left where it is small or large.

    >>> chance(0.25), chance(0.00012)
    ('0.2500', '1.20e-04')
    """
    return number(value) if value == 0 or 0.001 <= abs(value) < 1000 or _missing(value) else f"{value:.2e}"


def small(value: float | None) -> str:
    """What may be of rounding size.

    >>> small(2.3e-13), small(0)
    ('2e-13', '0')
    """
    return MISSING if _missing(value) else "0" if value == 0 else f"{value:.0e}"


def duration(seconds: float) -> str:
    """In the largest unit of which there are two or more.

    >>> duration(1.2), duration(90), duration(150), duration(86400)
    ('1 second', '90 seconds', '2 minutes', '24 hours')
    """
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return count(round(seconds), "second")


def listed(names: Sequence[str]) -> str:
    """In a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shown(label: Any) -> str:
    """A label or a path without what would upset a terminal, such as line ends or escape sequences.

    >>> print(shown("two\\nlines"))
    two\\nlines
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(label))


def contents(labels: Iterable[Any]) -> str:
    """What a basket holds; names may have commas in them.

    >>> contents(["crib, white", "cot"]), contents([])
    ('crib, white; cot', '(nothing)')
    """
    return "; ".join(map(shown, labels)) or "(nothing)"


def briefly(labels: Sequence[Any]) -> str:
    """The same in a heading or a sentence: long names are cut if all would not fit on a line.

    >>> briefly(["cot", "crib"])
    'cot; crib'
    """
    whole = contents(labels)
    return whole if wide(whole) <= LINE else contents(shortened(labels, LISTED if len(labels) > 1 else LINE))


def wide(text: str) -> int:
    """How many columns of a terminal a line takes.

    >>> wide("crib"), wide("寝台")
    (4, 4)
    """
    return sum(0 if category(each) in MARKS else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def shortened(labels: Sequence[Any], width: int) -> list[str]:
    """Return labels of at most `width` columns, cut in the middle.

    >>> shortened(["WHITE HANGING HEART T-LIGHT HOLDER", "cot"], 20)
    ['WHITE HANGING…HOLDER', 'cot']
    """
    return [without_middle(shown(label), width) for label in labels]


def without_middle(name: str, width: int) -> str:
    """A name of at most so many columns: two thirds for its beginning, the rest for its end.

    >>> without_middle("Infant Optics Digital Video Baby Monitor", 20)
    'Infant Optics…onitor'
    """
    if wide(name) <= width:
        return name
    end = _first(name[::-1], (width - 1) // 3)[::-1]
    return f"{_first(name, width - 1 - wide(end)).rstrip()}{CUT}{end.lstrip()}"


def _first(name: str, width: int) -> str:
    """As much of its beginning as fits."""
    taken = 0
    for place, each in enumerate(name):
        taken += wide(each)
        if taken > width:
            return name[:place]
    return name


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
