"""Numbers and lists as the report writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "−"
LEARNERS = {"em": "EM", "ka": "K-Ascent"}  # by the prefix of their columns
MODELS = {**LEARNERS, "independent": "independent items"}


def number(value: float | None, digits: int = 2) -> str:
    """A minus sign for a minus, and a dash for what does not exist."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:,.{digits}f}"
    if text.startswith("-"):
        text = text[1:] if float(text.replace(",", "")) == 0 else MINUS + text[1:]
    return text


def percent(value: float | None, digits: int = 2) -> str:
    """A gain, with its sign."""
    text = number(value, digits)
    if value is not None and math.isfinite(value) and value > 0 and float(text.replace(",", "")) != 0:
        text = f"+{text}"
    return text if text == "–" else f"{text} %"


def share(value: float | None) -> str:
    return number(None if value is None else 100 * value, 0) + ("" if value is None or math.isnan(value) else " %")


def count(value: float | None) -> str:
    return number(value, 0)


def spread(quartiles: Sequence[float | None], digits: int = 2) -> str:
    """Median, and the first and third quartile in brackets."""
    first, median, third = (number(each, digits) for each in quartiles)
    return median if first == third == "–" else f"{median} [{first}, {third}]"


def small(value: float | None) -> str:
    """A difference that may be of rounding size."""
    if value is None or math.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:.0e}"


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
