"""Numbers, names and lists as people read them: on a terminal, in a printed result, on a page.

Every function gives plain ASCII for what it writes itself, with `-` for a value that does not exist; `typeset` makes of
such a text what a page shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

MISSING = "-"


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


def spread(quartiles: Sequence[float | None], digits: int = 2) -> str:
    """The median, and the first and third quartile in brackets.

    >>> spread([1.0, 2.0, 3.0], 0), spread([None, 2.0, None])
    ('2 [1, 3]', '2.00')
    """
    first, median, third = (number(each, digits) for each in quartiles)
    return median if first == third == MISSING else f"{median} [{first}, {third}]"


def duration(seconds: float) -> str:
    """In the largest unit of which there are two or more.

    >>> duration(90), duration(150), duration(86400)
    ('90 seconds', '2 minutes', '24 hours')
    """
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


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


def typeset(text: str) -> str:
    """What the functions above wrote as a page shows it: with a minus sign, a sign for infinity, a dash for what does
    not exist, and the percent sign set apart.

    >>> typeset(number(-1234.5, 1)), typeset(number(float("-inf"))), typeset(number(None)), typeset(percent(2.5))
    ('−1,234.5', '−∞', '–', '+2.50 %')
    """
    text = re.sub(r"(?<![\w.])-(?![^\s,;.\])])", "–", re.sub(r"\binf\b", "∞", text))
    text = re.sub(r"(?<=[\d∞])%", " %", text)
    return re.sub(r"(?<![\w.])-(?=[\d∞])", "−", text)


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
