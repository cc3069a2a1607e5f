"""Summaries of a model: popular items, substitutes, complements, segments, sizes and how it was fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.data.catalogue import Label
from dpplearn.data.pairs import Pair
from dpplearn.models.answers import Relation, Segment
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.relations import RelatedPairs, related_pairs
from dpplearn.utils.text import Facts, Part, Result, TextTable, briefly, chance, count, number, share, signed

N_LIKED, N_LIKED_SHOWN = 10, 3  # items of a segment in `to_dict`, and in the table
FACTS = {
    "n_baskets": "baskets",
    "learner": "learner",
    "n_iter": "iterations",
    "stop": "stopped",
    "shrinkage": "shrinkage",
}
INTERVAL = (
    "lift: how many times as often as under independence a set contains both. 95% interval: of the same ratio in the "
    "training baskets. observed, expected: training baskets that contain both, and their expected number under "
    "independence; - if the model has no record of its training baskets."
)


@dataclass(frozen=True, repr=False)
class Description(Result):
    """A summary of a model.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> found = describe(model)
    >>> found.pairs.substitutes[0].first, found.pairs.substitutes[0].second, round(found.pairs.substitutes[0].lift, 2)
    ('cot', 'crib', 0.36)
    >>> round(found.to_dict()["size"]["expected"], 6)
    1.0
    """

    model: DPP | Mixture
    items: tuple[tuple[Label, float], ...]  # the most probable items and their probabilities
    pairs: RelatedPairs

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        model = self.model
        return {
            "kind": model.kind,
            "n_items": len(model.items),
            "nonempty": model.nonempty,
            "items": [{"item": item, "probability": p} for item, p in self.items],
            **{side: [each._asdict() for each in pairs] for side, pairs in self.pairs._asdict().items()},
            "segments": [each.to_dict() for each in _segments(model)],
            "size": self._size(),
            "learned": model.learned.to_dict(),
        }

    def _size(self) -> dict[str, float]:
        sizes, mean = self.model.size_distribution, self.model.expected_size
        low, high = np.searchsorted(np.cumsum(sizes), (0.05, 0.95)).tolist()
        return {
            "expected": mean,
            "standard_deviation": math.sqrt(float(sizes @ (np.arange(len(sizes)) - mean) ** 2)),
            "percentile_5": low,
            "percentile_95": high,
            "probability_empty": float(sizes[0]),
        }

    def tables(self) -> Iterator[Part]:
        """Yield what users ask first, and at the end how the model was fitted."""
        rows = [(str(item), chance(p)) for item, p in self.items]
        meaning = "Probability that a set contains the item."
        yield TextTable("Most probable items", meaning, ["item", "probability>"], rows)
        for side, pairs in self.pairs._asdict().items():
            yield _related_table(side, [(f"{each.first}\n{each.second}", each) for each in pairs])
        yield INTERVAL
        segments = []
        for place, each in enumerate(_segments(self.model), start=1):
            likes = ", ".join(f"{item} ({number(ratio, 1)})" for item, ratio in each.likes[:N_LIKED_SHOWN])
            segments.append((str(place), share(each.weight), number(each.expected_size, 1), likes))
        if len(segments) > 1:
            meaning = "In brackets: probability in the segment divided by the probability in all sets."
            yield TextTable("Segments", meaning, [">", "share>", "mean size>", "items that distinguish it"], segments)
        yield Facts("Model", list(self._facts()))

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield the size of sets, and how the model was fitted, as far as that is recorded."""
        size, learned = self._size(), self.model.learned.to_dict()
        yield "type", repr(self.model)
        yield "size", f"mean {number(size['expected'], 2)}, standard deviation {number(size['standard_deviation'], 2)}"
        yield "", f"90% of the sets have {size['percentile_5']} to {size['percentile_95']} items"
        yield "P(empty set)", "0 (excluded)" if self.model.nonempty else chance(size["probability_empty"])
        for name, heading in FACTS.items():
            if name in learned:
                yield heading, str(learned[name])
        if {"log_likelihood", "independent_log_likelihood"} <= learned.keys():
            gain = signed(learned["log_likelihood"] - learned["independent_log_likelihood"])
            yield "training gain", f"{gain} nats per basket compared with independent items"
        if {"unseen_gain", "unseen_error"} <= learned.keys():
            gain, error = signed(learned["unseen_gain"]), number(2 * learned["unseen_error"])
            yield "held-out gain", f"{gain} ± {error} nats per basket"


@dataclass(frozen=True)
class ItemDescription(Result):
    """The probability, substitutes and complements of one item.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> [each.item for each in describe_item(model, "cot").related["substitutes"]]
    ['crib']
    """

    item: Label
    probability: float
    related: dict[str, list[Relation]]  # "substitutes" and "complements"
    n_not_significant: dict[str, int]  # further ones

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        related = {side: [each._asdict() for each in found] for side, found in self.related.items()}
        alone = {"item": self.item, "probability": self.probability}
        return {**alone, **related, "not_significant": self.n_not_significant}

    def tables(self) -> Iterator[Part]:
        """Yield the probability and one table of substitutes and of complements."""
        yield Facts(briefly([self.item]), [("probability that a set contains it", chance(self.probability))])
        for side, found in self.related.items():
            yield _related_table(side, [(str(each.item), each) for each in found])
            more = self.n_not_significant[side]
            yield f"{more:,} more: the difference from independence is not significant." if more else ""
        yield INTERVAL


def _segments(model: DPP | Mixture) -> list[Segment]:
    return model.segments(N_LIKED) if isinstance(model, Mixture) else []


def _related_table(side: str, related: Sequence[tuple[str, Pair | Relation]]) -> Part:
    """Return a table of named pairs or items, or a sentence that there are none."""
    if not related:
        return f"{side.capitalize()}: none."
    rows = []
    for name, each in related:
        interval = f"{number(each.low, 2)} to {number(each.high, 2)}"
        rows.append((name, number(each.lift, 2), interval, count(each.observed), number(each.expected, 1)))
    often = {"substitutes": "less", "complements": "more"}[side]
    title = f"{side.capitalize()}: together {often} often than expected under independence"
    return TextTable(title, "", ["", "lift>", "95% interval>", "observed>", "expected>"], rows)


def describe(model: DPP | Mixture, top: int = 10) -> Description:
    """Summarise a model.

    Parameters
    ----------
    model : DPP or Mixture
    top : int, default 10
        Number of items, and of pairs of each kind.

    Returns
    -------
    Description
        Printed, it is a report.
    """
    p = model.marginals()
    best = np.argsort(-p, kind="stable")[:top]
    items = tuple((model.items[i], float(p[i])) for i in best)
    return Description(model, items, related_pairs(model, top))


def describe_item(model: DPP | Mixture, item: Label, top: int = 10) -> ItemDescription:
    """Summarise one item of a model.

    Parameters
    ----------
    model : DPP or Mixture
    item : label
    top : int, default 10
        Number of substitutes and of complements.

    Returns
    -------
    ItemDescription
    """
    position = model.catalogue.position(item)
    sides = {"substitutes": model.substitutes, "complements": model.complements}
    n = len(model.items)
    found = {side: related(item, n) for side, related in sides.items()}
    return ItemDescription(
        model.items[position],
        float(model.marginals()[position]),
        {side: each[:top] for side, each in found.items()},
        {side: len(related(item, n, level=None)) - len(found[side]) for side, related in sides.items()},
    )
