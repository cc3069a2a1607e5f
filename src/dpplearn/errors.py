"""The one exception for what a user can put right, and the one warning."""

from numbers import Integral
from typing import Any

MOST = 10**9  # of anything that is counted, where nothing says less


class InputError(ValueError):
    """Something that came in cannot be used: the message says what came, what was expected and what to do."""


class OutputExistsError(InputError):
    """The output path holds something that the output must not replace without `force`."""


class InputWarning(UserWarning):
    """Something that came in was usable only after a change, or deserves a second look."""


def whole_number(name: str, value: Any, least: int, most: float = MOST) -> int:
    """The value, if it is an integer of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number, {least} or more")
    number = int(value)
    if number > most:
        raise InputError(f"{name} is {number}; expected a whole number from {least} to {most:,}")
    return number
