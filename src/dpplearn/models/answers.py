"""Answers of models: recommendations, selected sets, relations between items, segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpplearn.data.catalogue import Label
from dpplearn.data.writing import result_table
from dpplearn.utils.text import Part, Result, TextTable, as_often, briefly, chance, count, number, share, shown

PROBABILITY = "probability: that a basket with these items also contains this one"
RANKED = f"{PROBABILITY}. score: P(basket with the item) / P(basket), - if the basket has probability zero."
BLENDED = f"{PROBABILITY}, under the model alone. score: mean of the shares by the model and by item-to-item."


class Recommendation(NamedTuple):
    """An item to add to a basket A, its score P(A ∪ i)/P(A), and its probability P(i ∈ Y | A ⊆ Y).

    With `blend`, the score is the weighted mean of the shares by the model and by item-to-item.

    Examples
    --------
    >>> best = Recommendation("monitor", score=0.4, probability=0.3)
    >>> f"{best.item} with probability {best.probability:.0%}"
    'monitor with probability 30%'
    """

    item: Label
    score: float
    probability: float


class StoreRecommendation(NamedTuple):
    """An item recommended by a model store, and its category.

    Score and probability refer to the joint distribution over all categories.

    Examples
    --------
    >>> best = StoreRecommendation("monitor", score=0.4, probability=0.3, category="safety")
    >>> f"{best.item} ({best.category})"
    'monitor (safety)'
    """

    item: Label
    score: float
    probability: float
    category: str


@dataclass(frozen=True)
class Recommendations(Result):
    """Items to add to one basket, as a command prints them.

    Examples
    --------
    >>> print(Recommendations(("crib",), (Recommendation("monitor", 0.4, 0.3),), k=1))
    To add to: crib
    probability: that a basket with these items also contains this one. score:
    P(basket with the item) / P(basket), - if the basket has probability zero.
      item     probability   score
      monitor       0.3000  0.4000
    """

    basket: tuple[Label, ...]
    found: tuple[Recommendation | StoreRecommendation, ...]  # best first
    k: int  # how many were asked for
    unknown: tuple[Label, ...] = ()  # items of the basket that the model does not have
    caution: str = ""
    blended: bool = False  # whether item-to-item was blended into the scores

    @property
    def note(self) -> str:
        """Why there are fewer items than asked for; empty otherwise."""
        found = f"{len(self.found)} instead of {self.k}"
        return f"{found}: no other allowed item can be added to this basket." if len(self.found) < self.k else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "basket": list(self.basket),
            "recommendations": [each._asdict() for each in self.found],
            "note": self.note,
            "unknown": list(self.unknown),
            "caution": self.caution,
        }

    def tables(self) -> Iterator[Part]:
        """Yield one table, and remarks."""
        rows = [(str(each.item), chance(each.probability), chance(each.score), *each[3:]) for each in self.found]
        columns = ["item", "probability>", "score>", "category"][: max(map(len, rows), default=3)]
        yield TextTable(f"To add to: {briefly(self.basket)}", BLENDED if self.blended else RANKED, columns, rows)
        yield self.note
        yield self.caution
        yield f"Unknown items, ignored: {briefly(self.unknown)}." if self.unknown else ""


RECOMMENDATION_TABLE = result_table(
    "a table of recommendations",
    lambda columns: columns in [("basket", "rank", *each._fields) for each in (Recommendation, StoreRecommendation)],
)


@dataclass(frozen=True)
class Selection(Result):
    """A set of items in the order of selection, the factor by which each multiplied the probability, and log P(Y).

    Examples
    --------
    >>> chosen = Selection(("crib", "monitor"), gains=(1.9, 0.4), log_prob=-2.1)
    >>> len(chosen), list(chosen)
    (2, ['crib', 'monitor'])
    """

    items: tuple[Label, ...]
    gains: tuple[float, ...]
    log_prob: float
    note: str = ""  # why there are fewer items than asked for, or why the set is impossible; empty otherwise
    n_given: int = 0  # the first items are those of the basket

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        items = [
            {"item": item, "gain": gain, "given": place < self.n_given}
            for place, (item, gain) in enumerate(zip(self.items, self.gains, strict=True))
        ]
        return {"items": items, "log_prob": self.log_prob, "note": self.note}

    def tables(self) -> Iterator[Part]:
        """Yield the items in the order in which they were added, with their factors."""
        rows = [
            (str(place), f"{each['item']}{' (given)' if each['given'] else ''}", chance(each["gain"]))
            for place, each in enumerate(self.to_dict()["items"], start=1)
        ]
        meaning = "factor: probability of the set with the item / without it, - if that is zero."
        yield TextTable(f"Set of {count(len(self), 'item')}", meaning, [">", "item", "factor>"], rows)
        yield f"Log-probability of the set: {number(self.log_prob)}."
        yield self.note

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.items)


class Relation(NamedTuple):
    """An item, and the lift of its pair with another: P(i, j ∈ Y) divided by its value expected under independence.

    Below 1 the items are substitutes, above 1 complements. `observed` and `expected` are numbers of training
    baskets with both items, `low` and `high` the 95 % confidence interval of their ratio, and `p` the p-value of the
    test of independence; NaN if unknown.

    Examples
    --------
    >>> print(Relation("monitor", 2.0, observed=40, expected=20.0, low=1.4, high=2.7, p=1e-4))
    monitor: 2 times as often as expected (observed 40, expected 20.0)
    """

    item: Label
    lift: float
    observed: float
    expected: float
    low: float
    high: float
    p: float

    def __str__(self) -> str:
        counts = f"observed {count(self.observed)}, expected {number(self.expected, 1)}"
        return f"{shown(self.item)}: {as_often(self.lift)} as expected ({counts})"


@dataclass(frozen=True)
class Segment:
    """A segment: its share of the sets, its mean number of items, and the items that are more likely in it.

    Examples
    --------
    >>> print(Segment(0.25, 3.0, (("crib", 2.5),)))
    25% of the sets, of 3.0 items on average; likes crib (2.5 times as likely)
    """

    weight: float  # the share of the sets
    expected_size: float
    likes: tuple[tuple[Label, float], ...]  # items, and how many times as likely as in all sets, most distinctive first

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        likes = [{"item": item, "times_as_likely": ratio} for item, ratio in self.likes]
        return {"weight": self.weight, "expected_size": self.expected_size, "likes": likes}

    def __str__(self) -> str:
        likes = [f"{shown(item)} ({number(ratio, 1)} times as likely)" for item, ratio in self.likes]
        size = f"of {number(self.expected_size, 1)} items on average"
        return f"{share(self.weight)} of the sets, {size}; likes {', '.join(likes) or 'nothing in particular'}"
