"""Summaries of a model: popular items, substitutes, complements, segments, sizes and how it was fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Label
from dpplearn.data.pairs import Pair
from dpplearn.models.answers import Relation, Segment
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.relations import related_pairs
from dpplearn.utils.text import (
    Facts,
    Part,
    TextTable,
    as_text,
    briefly,
    chance,
    count,
    number,
    share,
    signed,
    times_as_likely,
)

N_LIKED, N_LIKED_SHOWN = 10, 3  # items of a segment in `to_dict`, and in the table
MIN_SEGMENT = 0.005  # smaller segments are counted and not shown
EVERY = 10**9  # more than there are items
INTERVAL = (
    "lift: how many times as often as under independence a set contains both. 95% interval: of the same ratio in the "
    "training baskets. observed, expected: training baskets that contain both, and their expected number under "
    "independence."
)
NO_COUNTS = "There are no intervals, because the model has no record of its training baskets."


@dataclass(frozen=True)
class Description:
    """A summary of a model.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> found = describe(model)
    >>> found.substitutes[0].first, found.substitutes[0].second, round(found.substitutes[0].lift, 2)
    ('cot', 'crib', 0.36)
    >>> round(found.to_dict()["size"]["expected"], 6)
    1.0
    """

    kind: str  # "dpp" or "mixture"
    model: str  # type, number of items, ...
    n_items: int
    nonempty: bool
    items: tuple[tuple[Label, float], ...]  # the most probable items and their probabilities
    substitutes: tuple[Pair, ...]
    complements: tuple[Pair, ...]
    segments: tuple[Segment, ...]  # empty for a DPP
    sizes: Floats  # P(|Y| = k) for k = 0, 1, ...
    learned: dict[str, Any]  # the provenance of the model
    counted: bool  # whether the model knows the counts of its training baskets
    caution: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "kind": self.kind,
            "n_items": self.n_items,
            "nonempty": self.nonempty,
            "items": [{"item": item, "probability": p} for item, p in self.items],
            "substitutes": [each._asdict() for each in self.substitutes],
            "complements": [each._asdict() for each in self.complements],
            "segments": [
                {
                    "weight": each.weight,
                    "expected_size": each.expected_size,
                    "likes": [{"item": item, "times_as_likely": ratio} for item, ratio in each.likes],
                }
                for each in self.segments
            ],
            "size": self._size(),
            "learned": self.learned,
            "independent": bool(self.caution),
            "caution": self.caution,
        }

    def _size(self) -> dict[str, float]:
        k, below = np.arange(len(self.sizes)), np.cumsum(self.sizes)
        mean = float(self.sizes @ k)
        low, median, high = (min(int(np.searchsorted(below, q)), len(k) - 1) for q in (0.05, 0.5, 0.95))
        return {
            "expected": mean,
            "standard_deviation": math.sqrt(float(self.sizes @ (k - mean) ** 2)),
            "most_likely": int(np.argmax(self.sizes)),
            "percentile_5": low,
            "median": median,
            "percentile_95": high,
            "probability_empty": float(self.sizes[0]),
        }

    def tables(self) -> Iterator[Part]:
        """Yield what users ask first, and at the end how the model was fitted."""
        yield self.caution
        yield TextTable(
            "Most probable items",
            "Probability that a set contains the item.",
            ["item", "probability>"],
            [(str(item), chance(p)) for item, p in self.items],
        )
        yield from _pair_tables("Substitutes", "less", self.substitutes, self.counted)
        if self.kind == "dpp":
            yield "Complements: a DPP has none, because it expresses repulsion only. A mixture can have some."
        else:
            yield from _pair_tables("Complements", "more", self.complements, self.counted)
        yield INTERVAL if self.counted else NO_COUNTS
        yield from self._segment_tables()
        yield Facts("Model", [*self._facts(), *_fit_facts(self.learned)])

    def _segment_tables(self) -> Iterator[Part]:
        if len(self.segments) < 2:
            return
        rows: list[tuple[str, ...]] = []
        large = [each for each in self.segments if each.weight >= MIN_SEGMENT]
        for place, segment in enumerate(large, start=1):
            first = (str(place), share(segment.weight), number(segment.expected_size, 1))
            liked = [(str(item), number(ratio, 1)) for item, ratio in segment.likes[:N_LIKED_SHOWN]] or [("", "")]
            rows += [(*(("", "", "") if line else first), *each) for line, each in enumerate(liked)]
        columns = [">", "share>", "mean size>", "items that distinguish it", "ratio>"]
        meaning = "ratio: probability of the item in the segment divided by its probability in all sets."
        yield TextTable("Segments", meaning, columns, rows)
        small = len(self.segments) - len(large)
        if small:
            yield f"{count(small, 'more segment')} below {share(MIN_SEGMENT, 1)} each: --json lists them."

    def _facts(self) -> Iterator[tuple[str, str]]:
        size = self._size()
        yield "type", self.model
        yield "size", f"mean {number(size['expected'], 2)}, standard deviation {number(size['standard_deviation'], 2)}"
        yield "", f"90% of the sets have {size['percentile_5']} to {size['percentile_95']} items"
        empty = f"probability {chance(size['probability_empty'])}"
        yield "empty set", "excluded (the distribution is conditioned on nonempty sets)" if self.nonempty else empty

    def __str__(self) -> str:
        return as_text(self.tables())


@dataclass(frozen=True)
class ItemDescription:
    """The probability, substitutes and complements of one item.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> [each.item for each in describe_item(model, "cot").substitutes]
    ['crib']
    """

    item: Label
    probability: float
    substitutes: tuple[Relation, ...]
    complements: tuple[Relation, ...]
    n_not_significant: dict[str, int]  # further "substitutes" and "complements"
    counted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "item": self.item,
            "probability": self.probability,
            "substitutes": [each._asdict() for each in self.substitutes],
            "complements": [each._asdict() for each in self.complements],
            "not_significant": self.n_not_significant,
        }

    def tables(self) -> Iterator[Part]:
        """Yield the probability and one table of substitutes and of complements."""
        yield Facts(briefly([self.item]), [("probability that a set contains it", chance(self.probability))])
        sides = (("substitutes", "less", self.substitutes), ("complements", "more", self.complements))
        for name, side, related in sides:
            yield from _pair_tables(name.capitalize(), side, related, self.counted)
            more = self.n_not_significant[name]
            if more:
                yield f"{count(more, 'further item')} not listed: the difference from independence is not significant."
        yield INTERVAL if self.counted else NO_COUNTS

    def __str__(self) -> str:
        return as_text(self.tables())


def _pair_tables(title: str, side: str, related: Sequence[Pair | Relation], counted: bool) -> Iterator[Part]:
    """Yield a table of pairs, or a sentence that there are none."""
    if not related:
        yield f"{title}: none{' that are significant' if counted else ''}."
        return
    rows = []
    for each in related:
        names = f"{each.first}\n{each.second}" if isinstance(each, Pair) else str(each.item)
        interval = f"{number(each.low, 2)} to {number(each.high, 2)}" if math.isfinite(each.high) else "any"
        counts = (interval, count(each.observed), number(each.expected, 1))
        rows.append((names, number(each.lift, 2), *(counts if counted else ())))
    heading = "pair" if isinstance(related[0], Pair) else "item"
    columns = [heading, "lift>", *(["95% interval>", "observed>", "expected>"] if counted else [])]
    yield TextTable(f"{title}: together {side} often than expected under independence", "", columns, rows)


def _fit_facts(learned: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how the model was fitted, as far as that is recorded."""
    if not learned:
        yield "fitted", "not recorded: the model was not made by fit"
    if "n_baskets" in learned:
        distinct = f" ({count(learned['n_distinct'])} distinct)" if "n_distinct" in learned else ""
        yield "fitted to", f"{count(learned['n_baskets'], 'basket')}{distinct}"
    if "learner" in learned:
        start = f", start: {learned['start']}" if "start" in learned else ""
        yield "learner", f"{learned['learner']}{start}"
    if "stop" in learned:
        after = f" after {count(learned['n_iter'], 'iteration')}" if "n_iter" in learned else ""
        yield "stopped", f"{learned['stop'].lower().replace('_', ' ')}{after}"
    if learned.get("shrinkage"):
        chosen = ", chosen by cross-validation" if learned.get("shrinkage_chosen") else ""
        yield "shrinkage", f"{learned['shrinkage']:.3g}{chosen}"
    if {"log_likelihood", "independent_log_likelihood"} <= learned.keys():
        gain = learned["log_likelihood"] - learned["independent_log_likelihood"]
        yield "training gain", f"{signed(gain)} nats per basket compared with independent items"
    if {"unseen_gain", "unseen_error"} <= learned.keys():
        gain, error = learned["unseen_gain"], 2 * learned["unseen_error"]
        yield "held-out gain", f"{signed(gain)} ± {number(error)} nats per basket ({times_as_likely(gain)})"


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
    p, pairs = model.marginals(), related_pairs(model, top)
    best = np.argsort(-p, kind="stable")[:top]
    return Description(
        kind=model.kind,
        model=repr(model),
        n_items=len(model.items),
        nonempty=model.nonempty,
        items=tuple((model.items[i], float(p[i])) for i in best),
        substitutes=tuple(pairs.substitutes),
        complements=tuple(pairs.complements),
        segments=tuple(model.segments(N_LIKED)) if isinstance(model, Mixture) else (),
        sizes=model.size_distribution,
        learned=model.learned.to_dict(),
        counted=model.training is not None,
        caution=model.caution,
    )


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
    related = {"substitutes": model.substitutes, "complements": model.complements}
    significant = {name: find(item, EVERY) for name, find in related.items()}
    return ItemDescription(
        model.items[position],
        float(model.marginals()[position]),
        tuple(significant["substitutes"][:top]),
        tuple(significant["complements"][:top]),
        {name: len(find(item, EVERY, level=None)) - len(significant[name]) for name, find in related.items()},
        model.training is not None,
    )
