"""Catalogue: the labels of the items of baskets or of a model, and the mapping from labels to positions."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Ints
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import count

Label = str | int

LARGEST = 10_000_000  # items of a numbered catalogue; beyond, the integers are more likely to be labels than positions
MOST_COMPARED = 2000  # labels that one is compared with in full, which takes a quarter of a second


@dataclass(frozen=True)
class Catalogue:
    """Labels in order: all strings (names), or all integers (data that had no names).

    A label is looked up as written, so in a catalogue of names the integer 12 finds the name "12", and in a
    catalogue of integers the string "12" finds 12. Nothing is ever looked up by position.
    """

    labels: tuple[Label, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return str(label) in self._position

    @classmethod
    def numbered(cls, n_items: int) -> Catalogue:
        """Return the catalogue with the labels 0, 1, ..., n_items - 1."""
        if whole_number("n_items", n_items, 0, np.inf) == 0:
            raise InputError("the catalogue has no item; pass items= or n_items=")
        if n_items > LARGEST:
            raise InputError(
                f"items 0 to {n_items - 1} are too many; if integers are labels, pass those that occur as items="
            )
        return cls(tuple(range(n_items)))

    @classmethod
    def of(cls, labels: Iterable[Any]) -> Catalogue:
        """Return the catalogue of these labels, after checking that they have one type and are distinct."""
        labels = tuple(as_label(label) for label in as_list(labels))
        if not labels:
            raise InputError("the catalogue is empty; a model needs at least one item")
        first = {type(label): label for label in reversed(labels)}
        if len(first) > 1:
            raise InputError(
                f"items are both names ({first[str]!r}) and integers ({first[int]}); make them all strings"
            )
        if len(set(labels)) < len(labels):
            raise InputError(f"item {Counter(labels).most_common(1)[0][0]!r} is listed twice; labels must be distinct")
        return cls(labels)

    @classmethod
    def union(cls, catalogues: Sequence[Catalogue]) -> Catalogue:
        """Return the labels of the first catalogue, followed by the new labels of each of the others.

        Names and integers cannot be mixed, because integers may be positions instead of labels.
        """
        if all(each is catalogues[0] or each == catalogues[0] for each in catalogues):
            return catalogues[0]
        return cls.of(dict.fromkeys(label for each in catalogues for label in each.labels))

    @property
    def named(self) -> bool:
        """Whether the labels are names."""
        return isinstance(self.labels[0], str)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {str(label): position for position, label in enumerate(self.labels)}

    def position(self, label: Any) -> int:
        """Return the position of a label. The error for an unknown label suggests similar ones."""
        found = self._position.get(str(as_label(label)))
        if found is None:
            raise InputError(self.unknown(label))
        return found

    def positions(self, labels: Iterable[Any]) -> Ints:
        """Return the positions of distinct labels."""
        found = np.array([self.position(label) for label in as_list(labels)], dtype=np.int64)
        if len(set(found.tolist())) < len(found):
            raise InputError(f"item {self.labels[np.bincount(found).argmax()]!r} is named twice; name it once")
        return found

    def select(self, positions: npt.NDArray[np.integer[Any]] | Sequence[int]) -> tuple[Label, ...]:
        """Return the labels at these positions."""
        return tuple(self.labels[position] for position in positions)

    def translation(self, other: Catalogue) -> Ints:
        """Return the position here of each label of the other catalogue, or −1."""
        return np.array([self._position.get(str(label), -1) for label in other.labels], dtype=np.int64)

    def close_to(self, label: Any) -> tuple[str, ...]:
        """Return the labels most similar to an unknown one. In large catalogues they begin alike."""
        text, among = str(label), list(self._position)
        if len(among) > MOST_COMPARED:
            begins = text[:3].lower()
            among = [each for each in among if each[:3].lower() == begins][:MOST_COMPARED]
        return tuple(difflib.get_close_matches(text, among, n=3, cutoff=0.5))

    def unknown(self, label: Any) -> str:
        """Return the error message for a label that is not in the catalogue."""
        close = self.close_to(label)
        known = f"the catalogue has {count(len(self), 'item')}, from {self.labels[0]!r} to {self.labels[-1]!r}"
        hint = f"did you mean {' or '.join(repr(name) for name in close)}?" if close else known
        return f"item {label!r} is not in the catalogue; {hint}"


def as_list(items: Any, what: str = "") -> list[Any]:
    """Return items as a list; raise an error, which begins with `what`, for a single item."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) == 0:
        raise InputError(f"{what}got {items!r} where a list of items was expected; write [{items!r}]")
    return items.tolist() if isinstance(items, np.ndarray) else list(items)


def as_label(label: Any) -> Label:
    """Return a string or an integer unchanged; raise an error for anything else."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, int | np.integer) and not isinstance(label, bool | np.bool_):
        return int(label)
    raise InputError(f"item {label!r} is of type {type(label).__name__}; an item is a string or an integer")


def labels_from_text(texts: Sequence[str]) -> list[Label]:
    """Return integers if every text is a plain integer, as in files of item numbers, else the texts."""
    if all(is_plain_integer(text) for text in texts):
        return [int(text) for text in texts]
    return list(texts)


def is_plain_integer(text: str) -> bool:
    """Return whether a text is a 64-bit integer in its usual form: "12" is, "012", "+1" and "1.0" are not."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 20 and -(2**63) <= int(text) < 2**63 and str(int(text)) == text
