"""The one exception for what a user can put right, and the one warning."""

from numbers import Integral
from typing import Any


class InputError(ValueError):
    """Something that came in cannot be used: the message says what came, what was expected and what to do."""


class InputWarning(UserWarning):
    """Something that came in was usable only after a change, or deserves a second look."""


def whole_number(name: str, value: Any, least: int) -> int:
    """The value, if it is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number, {least} or more")
    return int(value)
