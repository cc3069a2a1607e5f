"""Whether recent baskets are still what a model expects: what was compared, by which rule, and in words.

A difference is drift where it is larger than chance explains, the chance of the model's own training data included, and
large enough to matter: with many baskets, differences that matter to nobody are beyond chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

from dpplearn.data.catalogue import Label
from dpplearn.data.unknown import LeftOut
from dpplearn.tools.tables import WIDTH, TextTable, as_plain_text
from dpplearn.tools.words import count, likelier, number, share, shown

LEVEL = 0.0025  # of each of the four comparisons, so that all together raise a false alarm in at most 1 % of cases
LIKELIHOOD_SHIFT = 0.15  # standard deviations of the log-likelihood of a basket
SIZE_SHIFT = 0.1  # of the mean size
ITEM_SHIFT, PICKS_SHIFT = 0.25, 0.02  # of how often an item is picked; and of all picks, for the items that moved
UNKNOWN_SHARE, IMPOSSIBLE_SHARE = 0.05, 0.01  # of the baskets
FEW = 100  # baskets, of which only large shifts can be seen
SHOWN = 10  # items in the table


@dataclass(frozen=True)
class Shift:
    """A mean that was expected, and what was found; `p` is how likely chance makes a difference as large."""

    expected: float
    found: float
    spread: float  # the standard deviation over baskets
    p: float

    @property
    def difference(self) -> float:
        """Found less expected."""
        return self.found - self.expected

    @property
    def by_chance(self) -> bool:
        """Whether chance explains it."""
        return not self.p < LEVEL


@dataclass(frozen=True)
class ItemShift:
    """An item whose frequency moved by more than chance and a quarter of itself."""

    item: Label
    expected: float  # share of the baskets
    found: float
    p: float  # after Holm's correction for all items


@dataclass(frozen=True)
class Drift:
    """Recent baskets beside what a model expects. Printed, it begins with the verdict.

    Examples
    --------
    >>> same = Shift(-4.0, -4.1, 2.0, 0.2)
    >>> print(Drift(500, same, Shift(2.0, 2.02, 1.0, 0.7), (), 0.0, LeftOut(), 0.0, 0.0, 0.01, ()).verdict)
    No drift: 500 baskets look like those that the model was learned from.
    """

    n_baskets: int
    likelihood: Shift
    size: Shift
    moved: tuple[ItemShift, ...]  # the largest shifts first
    moved_picks: float  # by how much of all picks they moved
    left_out: LeftOut
    unknown: float  # share of the baskets that hold items which the model does not have
    impossible: float  # share of the baskets that it holds impossible
    sizes_off_by: float  # total variation between the sizes of baskets and those that the model expects
    alarms: tuple[str, ...]  # which of the comparisons found drift

    @property
    def drifted(self) -> bool:
        """Whether any comparison found drift."""
        return bool(self.alarms)

    @property
    def verdict(self) -> str:
        """In one sentence."""
        if not self.drifted:
            look = "looks" if self.n_baskets == 1 else "look"
            return f"No drift: {count(self.n_baskets, 'basket')} {look} like those that the model was learned from."
        likely = "less likely" if self.likelihood.difference < 0 else "likelier"
        words = {
            "likelihood": f"baskets are {likely} than expected",
            "impossible": f"{share(self.impossible, 1)} of the baskets are impossible under the model",
            "size": f"baskets are {'smaller' if self.size.difference < 0 else 'larger'}",
            "items": f"{count(len(self.moved), 'item')} moved",
            "unknown": f"{share(self.unknown)} of the baskets hold items that the model does not have",
        }
        return f"Drift: {'; '.join(words[each] for each in self.alarms)}. Update the model (dpplearn update)."

    @property
    def sentences(self) -> Iterator[str]:
        """What was compared, one after another."""
        if self.impossible == 1:
            yield "All baskets are impossible under the model, so that nothing is to be said of how likely they are."
        else:
            yield _of_likelihood(self.likelihood)
        if 0 < self.impossible < 1:
            yield f"{share(self.impossible, 1)} of the baskets are impossible under the model, and not in that mean."
        yield _of_size(self.size)
        if self.moved:
            up = sum(each.found > each.expected for each in self.moved)
            yield (
                f"{count(len(self.moved), 'item')} moved by more than chance and a quarter of what was expected, "
                f"{up} up and {len(self.moved) - up} down: together by {share(self.moved_picks, 1)} of what was "
                "expected of all items."
            )
        else:
            yield "No item moved by more than chance and a quarter of what was expected."
        if self.left_out:
            yield f"{share(self.unknown, 1)} of the baskets hold items that the model does not have: {self.left_out}."
        if self.n_baskets < FEW:
            few = "1 basket is" if self.n_baskets == 1 else f"{count(self.n_baskets)} baskets are"
            yield f"{few} few: only large shifts can be seen."

    @property
    def table(self) -> TextTable:
        """The items that moved most."""
        rows = [
            (shown(each.item), share(each.expected, 1), share(each.found, 1), _times(each))
            for each in self.moved[:SHOWN]
        ]
        meaning = "The share of baskets that were expected to hold the item, and of those that do."
        return TextTable("Items that moved most", meaning, ["item", "expected>", "found>", "times>"], rows)

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON.

        Returns
        -------
        dict

        Examples
        --------
        >>> same = Shift(-4.0, -4.1, 2.0, 0.2)
        >>> Drift(500, same, same, (), 0.0, LeftOut(), 0.0, 0.0, 0.01, ()).to_dict()["drifted"]
        False
        """
        return {
            "verdict": self.verdict,
            "drifted": self.drifted,
            "alarms": list(self.alarms),
            "n_baskets": self.n_baskets,
            "log_likelihood": asdict(self.likelihood),
            "size": asdict(self.size),
            "sizes_off_by": self.sizes_off_by,
            "moved": [asdict(each) for each in self.moved],
            "moved_picks": self.moved_picks,
            "unknown": {"share": self.unknown, **self.left_out.to_dict()},
            "impossible": self.impossible,
        }

    def __str__(self) -> str:
        lines = [fill(each, WIDTH, break_on_hyphens=False) for each in (self.verdict, *self.sentences)]
        return "\n".join([*lines, *(as_plain_text(self.table) if self.moved else [])])


def _of_likelihood(shift: Shift) -> str:
    figures = f"log-likelihood {number(shift.found, 3)} found, {number(shift.expected, 3)} expected"
    likely = likelier(shift.difference)
    return f"A basket is {likely}, compared with what the model expects, on average ({figures}){_chance(shift)}."


def _of_size(shift: Shift) -> str:
    return (
        f"A basket holds {number(shift.found, 2)} items on average, and {number(shift.expected, 2)} were expected"
        f"{_chance(shift)}."
    )


def _chance(shift: Shift) -> str:
    return ", which chance explains" if shift.by_chance else ", which chance does not explain"


def _times(each: ItemShift) -> str:
    return number(each.found / each.expected, 2) if each.expected else "new"
