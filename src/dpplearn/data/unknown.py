"""Items that a catalogue does not have, in what people bring: they are an error, or left out and counted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import NO_ITEMS, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import contents, count

UNKNOWN = ("error", "drop")
ADVICE = "(unknown='drop', or --unknown drop, leaves such items out)"
SHOWN = 3  # examples


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What baskets held that a catalogue does not have.

    Examples
    --------
    >>> print(LeftOut(3, 2, np.array([4]), ("crip", "cott")))
    3 items of 2 baskets are left out, as the model does not have them (for instance crip; cott)
    """

    n_items: int = 0  # counted in every basket
    n_baskets: int = 0
    emptied: Ints = field(default_factory=lambda: NO_ITEMS)  # the numbers of the baskets that held nothing else
    examples: tuple[Label, ...] = ()  # the most frequent of the items

    @classmethod
    def of(cls, unknown: npt.NDArray[np.integer[Any]], rows: Ints, sizes: Ints, labels: tuple[Label, ...]) -> LeftOut:
        """From which item, by its position among labels, was left out of which basket; and how many that held."""
        of_basket = np.bincount(rows, minlength=len(sizes))
        of_item = np.bincount(unknown, minlength=len(labels))
        most = np.argsort(-of_item, kind="stable")[: min(SHOWN, np.count_nonzero(of_item))]
        return cls(
            len(unknown),
            int(np.count_nonzero(of_basket)),
            np.flatnonzero((of_basket > 0) & (of_basket == sizes)),
            tuple(labels[i] for i in most.tolist()),
        )

    def __bool__(self) -> bool:
        return self.n_items > 0

    def __str__(self) -> str:
        what = f"{count(self.n_items, 'item')} of {count(self.n_baskets, 'basket')}"
        verb, them = ("is", "it") if self.n_items == 1 else ("are", "them")
        return f"{what} {verb} left out, as the model does not have {them} (for instance {contents(self.examples)})"

    @property
    def and_emptied(self) -> str:
        """Where baskets of nothing else are left out as well."""
        n = len(self.emptied)
        return f"{self}, and {count(n, 'basket')} of nothing else" if n else str(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of it, if anything."""
        return (f"{self.and_emptied}.",) if self else ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_items": self.n_items,
            "n_baskets": self.n_baskets,
            "n_emptied": len(self.emptied),
            "examples": list(self.examples),
        }

    def warn(self) -> None:
        if self:
            warnings.warn(str(self), InputWarning, stacklevel=3)


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
