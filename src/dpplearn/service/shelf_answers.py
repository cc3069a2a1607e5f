"""Answers of all models together, to baskets of several categories."""

from __future__ import annotations

from collections.abc import Sequence

from dpplearn.data.catalogue import Label
from dpplearn.service import schemas as ask
from dpplearn.service.answers import Json, Known, explained_within, figure
from dpplearn.service.problems import Problem, shortened
from dpplearn.service.shelves import PreparedShelf


def chosen(served: PreparedShelf, categories: Sequence[str] | None) -> list[str] | None:
    """The names of the models to choose from, each of which there is."""
    wrong = next((name for name in categories or () if name not in served.models), None)
    if wrong is not None:
        raise Problem("invalid-request", f"categories has {shortened(wrong)}; there are {', '.join(served.models)}")
    return None if categories is None else list(categories)


def recommend(served: PreparedShelf, asked: ask.AskShelf) -> Json:
    shelf, known = served.shelf, Known(served.shelf.catalogue, asked.unknown)
    basket, deny = known(asked.basket), known(asked.deny)
    found = shelf.recommend(basket, asked.k, categories=chosen(served, asked.categories), deny=deny)
    items: list[Json] = [
        {"item": item, "score": figure(score), "probability": figure(probability), "category": category}
        for item, score, probability, category in found
    ]
    if asked.explain:
        parts = shelf.parts(basket).items
        for each in items:
            slug = each["category"]
            part = parts.get(slug, ())
            each |= explained_within(shelf.distribution(slug), served.models[slug].model.catalogue, part, each["item"])
    return {"items": items, "ignored": known.ignored}


def complete(served: PreparedShelf, asked: ask.AskCompleteShelf) -> Json:
    """Grown greedily, as one model does it: the factor by which an item multiplies the probability is its score."""
    known = Known(served.shelf.catalogue, asked.unknown)
    basket, categories = known(asked.basket), chosen(served, asked.categories)
    if asked.k < len(basket):
        raise Problem("cannot-answer", f"k is {asked.k}, but the basket already has {len(basket)} items; k counts them")
    added: list[Label] = []
    of: list[str] = []
    note = ""
    while len(basket) + len(added) < asked.k:
        best = served.shelf.recommend([*basket, *added], 1, categories=categories)
        if not best:
            note = f"stopped at {len(basket) + len(added)} of {asked.k} items: no further item can be added"
            break
        added.append(best[0].item)
        of.append(best[0].category)
    items = [*basket, *added]
    return {"items": items, "added": added, "categories": of, "note": note, "ignored": known.ignored}
