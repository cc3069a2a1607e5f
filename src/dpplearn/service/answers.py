"""Answers of one model: what was asked, by name, to what goes out as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.models.dpp import DPP
from dpplearn.models.explaining import Explanation, explanation
from dpplearn.service import schemas as ask
from dpplearn.service.problems import Problem, shortened
from dpplearn.service.shelves import ServedModel

ROUNDING = 1e-6  # of a factor: what is nearer to 1 pushes neither way
ORDERS = 50  # random orders that influences of large baskets are averaged over
LIKES = 8  # items named of a segment
TOLD = 3  # unknown items that are named, with suggestions

Json = dict[str, Any]


class Question(NamedTuple):
    """What can be asked of a model: the request, the answer, and how long it may take. What is quick is answered at
    once; the rest by threads, so that others need not wait."""

    request: type[Any]
    reply: type[Any]
    answer: Callable[[ServedModel, Any], Json]
    quick: bool
    about: str


class Known:
    """The items of a question that a catalogue knows; others are an error, or ignored and kept here."""

    def __init__(self, catalogue: Catalogue, unknown: str) -> None:
        self._catalogue, self._ignore = catalogue, unknown == "ignore"
        self.ignored: list[Label] = []

    def __call__(self, items: Iterable[Label]) -> list[Label]:
        items = list(items)
        unknown = [item for item in items if item not in self._catalogue]
        if not unknown:
            return items
        if not self._ignore:
            raise UnknownItems(self._catalogue, unknown)
        self.ignored += unknown
        return [item for item in items if item in self._catalogue]


class UnknownItems(Exception):
    """Some, of a catalogue. What might have been meant takes time to find out, and is found out when it is told."""

    def __init__(self, catalogue: Catalogue, items: list[Label]) -> None:
        super().__init__(items)
        self.catalogue, self.items = catalogue, items

    def problem(self) -> Problem:
        close = [self.catalogue.close_to(item) for item in self.items[:TOLD]]
        meant = f" did you mean {' or '.join(map(shortened, close[0]))}?" if close[0] else ""
        others = f" (and {len(self.items) - 1} more)" if len(self.items) > 1 else ""
        what = f"item {shortened(self.items[0])}{others} is not known here;{meant}"
        told = [{"item": item, "suggestions": found} for item, found in zip(self.items, close, strict=False)]
        detail = f'{what} name other items, or send "unknown": "ignore" to leave it out'
        return Problem("unknown-item", detail, unknown=told)


def figure(value: float) -> float | str | None:
    """As strict JSON has it."""
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "inf" if value > 0 else "-inf"


def recommend(served: ServedModel, asked: ask.AskRecommend) -> Json:
    known = Known(served.model.catalogue, asked.unknown)
    basket, deny = known(asked.basket), known(asked.deny)
    allow = None if asked.allow is None else known(asked.allow)
    found = served.model.recommend(basket, asked.k, allow=allow, deny=deny)
    items: list[Json] = [
        {"item": item, "score": figure(score), "probability": figure(probability)} for item, score, probability in found
    ]
    if asked.explain:
        for each in items:
            each |= _pushed(served.model.explain(basket, each["item"], n_orders=ORDERS))
    return {"items": items, "ignored": known.ignored}


def _pushed(why: Explanation) -> Json:
    return {"alone": figure(why.alone), "influences": influences(why)}


def influences(why: Explanation) -> list[Json]:
    return [
        {"item": item, "factor": figure(factor), "direction": _direction(factor)} for item, factor, _ in why.influences
    ]


def _direction(factor: float) -> str:
    return "none" if abs(factor - 1) < ROUNDING else "up" if factor > 1 else "down"


def explained_within(distribution: SetDistribution, catalogue: Catalogue, basket: Iterable[Label], item: Label) -> Json:
    """Return the influences under another distribution, as that of a store of models."""
    return _pushed(explanation(distribution, catalogue, catalogue.positions(basket), catalogue.position(item), ORDERS))


def complete(served: ServedModel, asked: ask.AskComplete) -> Json:
    known = Known(served.model.catalogue, asked.unknown)
    basket = known(asked.basket)
    found = served.model.complete(basket, asked.k)
    return {
        "items": list(found.items),
        "added": list(found.items[len(basket) :]),
        "log_prob": figure(found.log_prob),
        "note": found.note,
        "ignored": known.ignored,
    }


def sample(served: ServedModel, asked: ask.AskSample) -> Json:
    known = Known(served.model.catalogue, asked.unknown)
    basket = known(asked.basket)
    if asked.k is not None and asked.k < len(basket):
        raise Problem("cannot-answer", f"k is {asked.k}, but the basket already has {len(basket)} items; k counts them")
    seed = int(np.random.default_rng().integers(2**31)) if asked.seed is None else asked.seed
    model, k = served.model, asked.k
    if basket:
        model, k = model.given(include=basket), None if k is None else k - len(basket)
    sets = [basket + found for found in model.sample(asked.n, k, rng=seed, threads=1)]
    return {"sets": sets, "seed": seed, "ignored": known.ignored}


def explain(served: ServedModel, asked: ask.AskExplain) -> Json:
    known = Known(served.model.catalogue, asked.unknown)
    basket = known(asked.basket)
    (item,) = Known(served.model.catalogue, "error")([asked.item])
    why = served.model.explain(basket, item)
    return {
        "item": why.item,
        "alone": figure(why.alone),
        "probability": figure(why.given),
        "score": figure(why.score),
        "influences": influences(why),
        "n_orders": why.n_orders,
        "ignored": known.ignored,
    }


def substitutes(served: ServedModel, asked: ask.AskRelated) -> Json:
    model = served.model
    (item,) = Known(model.catalogue, "error")([asked.item])
    return _related(item, model.substitutes(item, asked.k), "")


def complements(served: ServedModel, asked: ask.AskRelated) -> Json:
    model = served.model
    (item,) = Known(model.catalogue, "error")([asked.item])
    if isinstance(model, DPP):
        return _related(item, [], "this model is a DPP, in which no two items go together; a mixture knows such pairs")
    return _related(item, model.complements(item, asked.k), "")


def _related(item: Label, found: Iterable[Any], note: str) -> Json:
    items = [
        {"item": each, "lift": figure(lift), "low": figure(low), "high": figure(high)}
        for each, lift, _, _, low, high in found
    ]
    return {"item": item, "items": items, "note": note}


def segments(served: ServedModel, asked: ask.Ask) -> Json:
    model, known = served.model, Known(served.model.catalogue, asked.unknown)
    basket = known(asked.basket)
    if isinstance(model, DPP):
        note = "this model is a DPP, which knows one kind of people; a mixture knows several"
        return {"segments": [], "note": note, "ignored": known.ignored}
    found = [
        {
            "share": kind.weight,
            "probability": figure(probability),
            "expected_size": kind.expected_size,
            "likes": [{"item": item, "ratio": ratio} for item, ratio in kind.likes],
        }
        for kind, probability in zip(model.segments(LIKES), model.segment_of(basket).tolist(), strict=True)
    ]
    return {"segments": found, "note": "", "ignored": known.ignored}


QUESTIONS: Mapping[str, Question] = {
    "recommend": Question(ask.AskRecommend, ask.Recommendations, recommend, True, "The best items to add to a basket"),
    "complete": Question(
        ask.AskComplete, ask.Completion, complete, False, "A diverse set that holds the basket, or from nothing"
    ),
    "sample": Question(ask.AskSample, ask.Samples, sample, False, "Sets drawn from the law, all with the basket"),
    "explain": Question(
        ask.AskExplain, ask.Explanation, explain, False, "Which items of the basket push one up or down"
    ),
    "substitutes": Question(ask.AskRelated, ask.Relations, substitutes, False, "What stands in for an item"),
    "complements": Question(ask.AskRelated, ask.Relations, complements, False, "What goes with an item"),
    "segments": Question(ask.Ask, ask.Segments, segments, False, "Which kinds of people a basket may be of"),
}
