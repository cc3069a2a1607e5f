"""Items that are not in a catalogue: they raise an error, or are dropped and counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from dpplearn.data.catalogue import Catalogue, Label, as_list
from dpplearn.errors import InputError
from dpplearn.utils.text import contents, count

UNKNOWN = ("error", "drop")
ADVICE = "(unknown='drop', or --unknown drop, ignores such items)"
SHOWN = 3  # examples


@dataclass(frozen=True)
class LeftOut:
    """The items of baskets that were dropped because a catalogue does not have them.

    Examples
    --------
    >>> print(LeftOut(3, 2, 1, ("crip", "cott")))
    dropped 3 items of 2 baskets that the model does not have (for example crip; cott); 1 basket held nothing else
    """

    n_items: int = 0  # counted in every basket
    n_baskets: int = 0
    n_emptied: int = 0  # baskets that held nothing else
    examples: tuple[Label, ...] = ()  # the most frequent of the items

    def __bool__(self) -> bool:
        return self.n_items > 0

    def __str__(self) -> str:
        what = f"{count(self.n_items, 'item')} of {count(self.n_baskets, 'basket')} that the model does not have"
        emptied = f"; {count(self.n_emptied, 'basket')} held nothing else" if self.n_emptied else ""
        return f"dropped {what} (for example {contents(self.examples)}){emptied}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The summary as a list of remarks, empty if nothing was dropped."""
        return (f"{self}.",) if self else ()

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "examples": list(self.examples)}


def check_unknown(unknown: str) -> str:
    """Return the value of the option `unknown` after checking it."""
    if unknown not in UNKNOWN:
        raise InputError(f"unknown is {unknown!r}; expected one of {', '.join(UNKNOWN)}")
    return unknown


def known_items(items: Iterable[Any], catalogue: Catalogue, unknown: str) -> tuple[Iterable[Any], tuple[Label, ...]]:
    """Return the items that the catalogue has, and those that are dropped. With "error" nothing is dropped."""
    if check_unknown(unknown) == "error":
        return items, ()
    items = as_list(items)
    return [item for item in items if item in catalogue], tuple(item for item in items if item not in catalogue)
