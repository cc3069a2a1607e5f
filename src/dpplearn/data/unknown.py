"""Items that a catalogue does not have, in what people bring: they are an error, or left out and counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError

UNKNOWN = ("error", "drop")


def check_unknown(unknown: str) -> str:
    """The word itself, if it is one of those known."""
    if unknown not in UNKNOWN:
        raise InputError(f"unknown is {unknown!r}; expected one of {', '.join(UNKNOWN)}")
    return unknown


def known_items(items: Iterable[Any], catalogue: Catalogue, unknown: str) -> tuple[Iterable[Any], tuple[Label, ...]]:
    """Those that the catalogue has, and those that are left out. With "error" all stay, for the catalogue to refuse."""
    if check_unknown(unknown) == "error" or isinstance(items, str | bytes):
        return items, ()
    items = list(items)
    return [item for item in items if item in catalogue], tuple(item for item in items if item not in catalogue)
