"""Answers to requests: item names to model calls to response models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.explaining import Explanation, explanation
from dpplearn.models.mixture import Mixture
from dpplearn.service import schemas
from dpplearn.service.budget import Check
from dpplearn.service.errors import Problem, quoted
from dpplearn.service.loader import ServedModel, ServedStore
from dpplearn.service.middleware import utc

ROUNDING = 1e-6  # a factor nearer to 1 has no direction
LIKES = 8  # items named per segment
MAX_SUGGESTED_NAME = 80  # characters of an unknown item that is compared with the catalogue


class Names:
    """The known items of a request, each once. Unknown ones are an error, or dropped and kept in `dropped`."""

    def __init__(self, catalogue: Catalogue, unknown: str) -> None:
        self._catalogue, self._drop = catalogue, unknown == "drop"
        self.dropped: list[Label] = []

    def __call__(self, items: Iterable[Label]) -> list[Label]:
        items = list(dict.fromkeys(items))
        unknown = [item for item in items if item not in self._catalogue]
        if unknown and not self._drop:
            raise UnknownItems(self._catalogue, unknown)
        self.dropped += unknown
        return [item for item in items if item in self._catalogue] if unknown else items

    def ignoring(self, items: Iterable[Label]) -> list[Label]:
        """Return the known items without an error for the others."""
        return [item for item in dict.fromkeys(items) if item in self._catalogue]


class UnknownItems(Exception):
    """Items that a catalogue does not contain."""

    def __init__(self, catalogue: Catalogue, items: list[Label]) -> None:
        super().__init__(items)
        self.catalogue, self.items = catalogue, items

    def problem(self, *, suggest: bool) -> Problem:
        """Return the problem, with similar names for the first item if `suggest`; comparing takes milliseconds."""
        first = self.items[0]
        close = self.catalogue.close_to(first) if suggest and len(str(first)) <= MAX_SUGGESTED_NAME else ()
        hint = f"; did you mean {' or '.join(map(quoted, close))}?" if close else ""
        others = f" (and {len(self.items) - 1} more)" if len(self.items) > 1 else ""
        detail = f'unknown item {quoted(first)}{others}{hint} Send "unknown": "drop" to leave unknown items out'
        return Problem("unknown-item", detail, unknown=self.items, suggestions=list(close))


def one_item(catalogue: Catalogue, item: Label) -> Label:
    """Return a known item. The text of an integer label is accepted, because addresses are text."""
    if item not in catalogue and isinstance(item, str) and item.isdecimal() and int(item) in catalogue:
        return int(item)
    return Names(catalogue, "error")([item])[0]


def about(served: ServedModel) -> dict[str, Any]:
    """Return the fields of every answer of one model."""
    warnings = [served.model.caution] if served.model.caution else []
    return {"model": served.name, "version": served.version, "warnings": warnings}


def about_store(store: ServedStore) -> dict[str, Any]:
    return {"version": store.version, "versions": store.versions}


def recommend(
    served: ServedModel, basket: Sequence[Label], asked: schemas.AskRecommend, allow: list[Label] | None
) -> list[schemas.Suggestion]:
    names = Names(served.model.catalogue, "drop")
    found = served.model.recommend(basket, asked.k, allow=allow, deny=names.ignoring(asked.deny))
    items = [schemas.Suggestion(item=item, score=score, probability=p) for item, score, p in found]
    if asked.explain:
        for each in items:
            _add_influences(each, served.model.explain(basket, each.item))
    return items


def recommend_of_store(
    store: ServedStore, basket: Sequence[Label], asked: schemas.AskStoreRecommend
) -> list[schemas.Suggestion]:
    models, names = store.all_models, Names(store.all_models.catalogue, "drop")
    categories = chosen(store, asked.categories)
    found = models.recommend(basket, asked.k, categories=categories, deny=names.ignoring(asked.deny))
    items = [schemas.Suggestion(item=each, score=score, probability=p, category=c) for each, score, p, c in found]
    if asked.explain:
        parts = models.by_category(basket).items
        for each in items:
            assert each.category is not None
            catalogue = store.models[each.category].model.catalogue
            part = catalogue.positions(parts.get(each.category, ()))
            item = catalogue.position(each.item)
            _add_influences(each, explanation(models.distribution(each.category), catalogue, part, item))
    return items


def _add_influences(suggestion: schemas.Suggestion, why: Explanation) -> None:
    suggestion.alone, suggestion.influences = why.alone, influences(why)


def influences(why: Explanation) -> list[schemas.Influence]:
    return [
        schemas.Influence(item=item, factor=factor, direction=_direction(factor)) for item, factor, _ in why.influences
    ]


def _direction(factor: float) -> Any:
    return "none" if abs(factor - 1) < ROUNDING else "up" if factor > 1 else "down"


def chosen(store: ServedStore, categories: Sequence[str] | None) -> list[str] | None:
    """Return the names of the models to choose from, after checking that they exist."""
    wrong = next((name for name in categories or () if name not in store.models), None)
    if wrong is not None:
        raise Problem("invalid-request", f"unknown category {quoted(wrong)}; expected one of {', '.join(store.models)}")
    return None if categories is None else list(dict.fromkeys(categories))


def check_size(k: int, basket: Sequence[Label]) -> None:
    if k < len(basket):
        raise Problem("cannot-answer", f"k is {k}, but the basket has {len(basket)} items, which k includes")


def complete(served: ServedModel, basket: list[Label], asked: schemas.AskComplete) -> schemas.Completion:
    found = served.model.complete(basket, asked.k)
    added = list(found.items[len(basket) :])
    fields: dict[str, Any] = {
        "items": list(found.items),
        "added": added,
        "log_prob": found.log_prob,
        "note": found.note,
    }
    return schemas.Completion(**about(served), **fields)


def complete_of_store(
    store: ServedStore, basket: list[Label], asked: schemas.AskStoreComplete, check_time: Check
) -> schemas.StoreCompletion:
    """Add the item with the highest score until there are k: the greedy rule of `complete` for one model."""
    categories, items, of, note = chosen(store, asked.categories), list(basket), list[str](), ""
    while len(items) < asked.k:
        check_time()
        best = store.all_models.recommend(items, 1, categories=categories)
        if not best:
            note = f"stopped at {len(items)} of {asked.k} items: no further item can be added"
            break
        items.append(best[0].item)
        of.append(best[0].category)
    added = items[len(basket) :]
    return schemas.StoreCompletion(**about_store(store), items=items, added=added, categories=of, note=note)


def sample(served: ServedModel, basket: list[Label], asked: schemas.AskSample) -> schemas.Samples:
    if asked.k is not None:
        check_size(asked.k, basket)
    seed = int(np.random.default_rng().integers(2**31)) if asked.seed is None else asked.seed
    model, k = served.model, asked.k
    if basket:
        model, k = model.given(include=basket), None if k is None else k - len(basket)
    sets = [basket + found for found in model.sample(asked.n, k, rng=seed, threads=1)]
    return schemas.Samples(**about(served), sets=sets, seed=seed)


def explain(served: ServedModel, basket: list[Label], asked: schemas.AskExplain) -> schemas.Explanation:
    why = served.model.explain(basket, one_item(served.model.catalogue, asked.item))
    fields: dict[str, Any] = {"item": why.item, "alone": why.alone, "probability": why.given, "score": why.score}
    return schemas.Explanation(**about(served), **fields, influences=influences(why), n_orders=why.n_orders)


def related(served: ServedModel, item: Label, k: int) -> schemas.RelatedItems:
    """Return substitutes and complements; a DPP has no complements."""
    model = served.model
    item = one_item(model.catalogue, item)

    def rows(found: Iterable[Any]) -> list[schemas.Related]:
        return [schemas.Related(item=each.item, lift=each.lift, low=each.low, high=each.high) for each in found]

    complements = [] if isinstance(model, DPP) else model.complements(item, k)
    fields: dict[str, Any] = {"substitutes": rows(model.substitutes(item, k)), "complements": rows(complements)}
    return schemas.RelatedItems(**about(served), item=item, **fields)


def segments(served: ServedModel, basket: list[Label] | None) -> list[schemas.SegmentOfBasket]:
    """Return the segments of a mixture, with their probabilities given a basket if there is one."""
    model = served.model
    if not isinstance(model, Mixture):
        return []
    found = model.segments(LIKES)
    given: Sequence[float | None] = [None] * len(found) if basket is None else model.segment_of(basket).tolist()
    return [
        schemas.SegmentOfBasket(
            share=each.weight,
            probability=probability,
            expected_size=each.expected_size,
            likes=[schemas.Liked(item=item, ratio=ratio) for item, ratio in each.likes],
        )
        for each, probability in zip(found, given, strict=True)
    ]


def entry(served: ServedModel) -> dict[str, Any]:
    kind = "mixture" if isinstance(served.model, Mixture) else "dpp"
    names = {"name": served.name, "title": served.category.name, "version": served.version}
    return {**names, "kind": kind, "n_items": len(served.model.items)}


def listed(store: ServedStore) -> schemas.ModelList:
    models = [schemas.ModelEntry(**entry(each)) for each in store.models.values()]
    return schemas.ModelList(**about_store(store), models=models, broken=list(store.broken))


def about_model(served: ServedModel) -> schemas.ModelAbout:
    model, learned = served.model, served.model.learned
    return schemas.ModelAbout(
        **entry(served),
        n_segments=model.n_segments if isinstance(model, Mixture) else 1,
        expected_size=model.expected_size,
        share=served.category.share or 1.0,
        learned_from=learned.n_baskets or 0,
        learner=learned.learner or "",
        modified=utc(served.modified),
        loaded=utc(served.loaded),
        old=served.category.old and "it could not be fitted again; the log of fit-all gives the reason",
    )


def catalogue_items(served: ServedModel, search: str, limit: int) -> schemas.Items:
    words, labels = search.lower().split(), served.model.items
    marginals: Any = served.model.marginals()
    order = np.argsort(-marginals, kind="stable").tolist()
    found = (i for i in order if all(word in str(labels[i]).lower() for word in words))
    items = [schemas.CatalogueItem(item=labels[i], probability=float(marginals[i])) for i in islice(found, limit)]
    return schemas.Items(**about(served), items=items, n_items=len(labels))


def rows_of(
    baskets: list[list[Label]], answer: Any, catalogue: Catalogue, unknown: str, check_time: Check
) -> list[schemas.Row]:
    """Answer each basket by itself. Errors become problems of their row, without suggestions for unknown items."""
    rows = []
    for basket in baskets:
        check_time()
        names = Names(catalogue, unknown)
        try:
            rows.append(schemas.Row(items=answer(names(basket)), dropped=names.dropped))
        except UnknownItems as error:
            rows.append(schemas.Row(problem=error.problem(suggest=False).document()))
        except InputError as error:
            rows.append(schemas.Row(problem=Problem("cannot-answer", str(error)).document()))
    return rows
