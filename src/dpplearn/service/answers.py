"""Answers to requests: item names to model calls to response models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError
from dpplearn.models.explaining import Explanation, explanation
from dpplearn.models.mixture import Mixture
from dpplearn.service import schemas
from dpplearn.service.budget import Budget, Check
from dpplearn.service.errors import Problem, quoted
from dpplearn.service.loader import ServedModel, ServedStore
from dpplearn.service.middleware import utc

N_LIKES = 8  # items named per segment
MAX_SUGGESTED_NAME = 80  # characters of an unknown item that is compared with the catalogue
MAX_UNKNOWN = 20  # unknown items that a problem lists
MAX_ANSWER = 10_000  # items of one answer; encoding more as JSON would hold up other requests


class Known(NamedTuple):
    """The known items of a basket, each once, and the unknown ones that were dropped."""

    items: list[Label]
    dropped: list[Label]


class UnknownItems(Exception):
    """Items that a catalogue does not contain."""

    def __init__(self, catalogue: Catalogue, items: list[Label]) -> None:
        super().__init__(items)
        self.catalogue, self.items = catalogue, items

    def problem(self, *, suggest: bool) -> Problem:
        """Return the problem, with similar names for the first item if `suggest`; comparing takes milliseconds."""
        first = self.items[0]
        close = self.catalogue.close_to(first) if suggest and len(str(first)) <= MAX_SUGGESTED_NAME else ()
        hint = f"; did you mean {' or '.join(map(quoted, close))}?" if close else "."
        others = f" (and {len(self.items) - 1} more)" if len(self.items) > 1 else ""
        detail = f'unknown item {quoted(first)}{others}{hint} Send "unknown": "drop" to leave unknown items out'
        return Problem("unknown-item", detail, unknown=self.items[:MAX_UNKNOWN], suggestions=list(close))


def known(catalogue: Catalogue, items: Iterable[Label], unknown: str) -> Known:
    """Look up the items of a request. With unknown="error", unknown items raise an error."""
    items = list(dict.fromkeys(items))
    missing = [item for item in items if item not in catalogue]
    if missing and unknown == "error":
        raise UnknownItems(catalogue, missing)
    return Known([item for item in items if item in catalogue] if missing else items, missing)


def one_item(catalogue: Catalogue, item: Label) -> Label:
    """Return a known item. The text of an integer label is accepted, because addresses are text."""
    if item not in catalogue and isinstance(item, str) and item.isdecimal() and int(item) in catalogue:
        return int(item)
    return known(catalogue, [item], "error").items[0]


class OneModel:
    """Answers of one model. `about` has the fields of every answer, `label` is its name in logs and metrics."""

    def __init__(self, served: ServedModel) -> None:
        self.served, self.label, self.version = served, served.name, served.version
        self.catalogue = served.model.catalogue
        self.about: dict[str, Any] = {"model": served.name, "version": served.version, "warnings": served.warnings}
        self.compare_cost = served.costs.compare

    def check(self, asked: schemas.AskRecommend | schemas.AskComplete) -> None:
        if asked.categories is not None:
            raise Problem("invalid-request", "categories applies to requests to all models; leave it out")
        if isinstance(asked, schemas.AskRecommend) and asked.allow is not None:
            known(self.catalogue, asked.allow, asked.unknown)

    def recommend_cost(self, n_basket: int, asked: schemas.AskRecommend) -> float:
        return self.served.costs.of_recommend(n_basket, min(asked.k, len(self.catalogue)), asked.explain)

    def recommend(self, basket: list[Label], asked: schemas.AskRecommend) -> list[schemas.Suggestion]:
        model, deny = self.served.model, known(self.catalogue, asked.deny, "drop").items
        allow = None if asked.allow is None else known(self.catalogue, asked.allow, asked.unknown).items
        found = model.recommend(basket, asked.k, allow=allow, deny=deny)
        items = [schemas.Suggestion.model_validate(each) for each in found]
        for each in items if asked.explain else ():
            _add_influences(each, model.explain(basket, each.item))
        return items

    def complete_cost(self, n_basket: int, k: int) -> float:
        return self.served.costs.complete(min(k, len(self.catalogue)))

    def complete(self, basket: list[Label], asked: schemas.AskComplete, check_time: Check) -> dict[str, Any]:
        found = self.served.model.complete(basket, asked.k)
        return {"items": list(found.items), "log_prob": found.log_prob, "note": found.note}


class AllModels:
    """Answers of all models together."""

    label = "(all)"

    def __init__(self, store: ServedStore) -> None:
        self.store, self.models, self.version = store, store.all_models, store.version
        self.catalogue = store.all_models.catalogue
        warnings = [f"{name}: {text}" for name, each in store.models.items() for text in each.warnings]
        self.about: dict[str, Any] = {"version": store.version, "versions": store.versions, "warnings": warnings}
        self.compare_cost = sum(each.costs.compare for each in store.models.values())

    def check(self, asked: schemas.AskRecommend | schemas.AskComplete) -> None:
        if isinstance(asked, schemas.AskRecommend) and asked.allow is not None:
            raise Problem("invalid-request", "allow applies to requests to one model; leave it out")
        for name in asked.categories or ():
            if name not in self.store.models:
                names = ", ".join(self.store.models)
                raise Problem("invalid-request", f"unknown category {quoted(name)}; expected one of {names}")

    def recommend_cost(self, n_basket: int, asked: schemas.AskRecommend) -> float:
        k, costs = min(asked.k, len(self.catalogue)), [each.costs for each in self.store.models.values()]
        explain = k * max(each.explain(n_basket) for each in costs) if asked.explain else 0
        return explain + sum(each.of_recommend(n_basket, k) for each in costs)

    def recommend(self, basket: list[Label], asked: schemas.AskRecommend) -> list[schemas.Suggestion]:
        deny = known(self.catalogue, asked.deny, "drop").items
        found = self.models.recommend(basket, asked.k, categories=asked.categories, deny=deny)
        items = [schemas.Suggestion.model_validate(each) for each in found]
        parts = self.models.by_category(basket).items if asked.explain else {}
        for each in items if asked.explain else ():
            slug = str(each.category)
            catalogue, distribution = self.models[slug].catalogue, self.models.distribution(slug)
            part = catalogue.positions(parts.get(slug, ()))
            _add_influences(each, explanation(distribution, catalogue, part, catalogue.position(each.item)))
        return items

    def complete_cost(self, n_basket: int, k: int) -> float:
        k = min(k, len(self.catalogue))
        return max(k - n_basket, 0) * sum(each.costs.recommend(k) for each in self.store.models.values())

    def complete(self, basket: list[Label], asked: schemas.AskComplete, check_time: Check) -> dict[str, Any]:
        """Add the item with the highest score until there are k: the greedy rule of `complete` for one model."""
        items, categories, note = list(basket), list[str](), ""
        while len(items) < asked.k:
            check_time()
            best = self.models.recommend(items, 1, categories=asked.categories)
            if not best:
                note = f"stopped at {len(items)} of {asked.k} items: no further item can be added"
                break
            items.append(best[0].item)
            categories.append(best[0].category)
        return {"items": items, "categories": categories, "note": note}


Source = OneModel | AllModels


def _add_influences(suggestion: schemas.Suggestion, why: Explanation) -> None:
    suggestion.alone = why.alone
    suggestion.influences = [schemas.Influence.model_validate(each) for each in why.influences]


def recommend_cost(source: Source, basket: list[Label], asked: schemas.AskRecommend, budget: Budget) -> float:
    """Return the cost of one basket or of all, or raise the problem that names what would pass."""
    if asked.baskets is None:
        return budget.check(lambda n: source.recommend_cost(n, asked), len(basket), "basket items")
    k, n = max(min(asked.k, len(source.catalogue)), 1), len(asked.baskets)
    if n * k > MAX_ANSWER:
        detail = f"{n} baskets with {k} items each exceed the limit of {MAX_ANSWER} items in an answer"
        raise Problem("too-expensive", f"{detail}; up to {MAX_ANSWER // k} baskets would pass", largest=MAX_ANSWER // k)
    sizes = Counter(map(len, asked.baskets))
    mean = sum(times * source.recommend_cost(size, asked) for size, times in sizes.items()) / max(n, 1)
    return budget.check(lambda rows: rows * mean, n, "baskets of these sizes")


def recommend(source: Source, basket: Known, asked: schemas.AskRecommend, check_time: Check) -> schemas.Recommendations:
    """Answer one basket, or each of many by itself."""
    about = {**source.about, "dropped": basket.dropped}
    if asked.baskets is None:
        return schemas.Recommendations(**about, items=source.recommend(basket.items, asked))
    rows = [_row(source, each, asked, check_time) for each in asked.baskets]
    return schemas.Recommendations(**about, rows=rows)


def _row(source: Source, items: list[Label], asked: schemas.AskRecommend, check_time: Check) -> schemas.Row:
    """Answer one of many baskets. Errors become the problem of this row, without suggestions for unknown items."""
    check_time()
    try:
        basket = known(source.catalogue, items, asked.unknown)
        return schemas.Row(items=source.recommend(basket.items, asked), dropped=basket.dropped)
    except UnknownItems as error:
        problem = error.problem(suggest=False)
    except InputError as error:
        problem = Problem("cannot-answer", str(error))
    return schemas.Row(problem=schemas.ProblemDocument(**problem.document()))


def check_size(k: int, basket: Sequence[Label]) -> None:
    """Raise a problem if a set of k items cannot contain the basket."""
    if k < len(basket):
        raise Problem("cannot-answer", f"k is {k}, but the basket has {len(basket)} items, which k includes")


def complete(source: Source, basket: Known, asked: schemas.AskComplete, check_time: Check) -> schemas.Completion:
    """Return a set that contains the basket."""
    fields = source.complete(basket.items, asked, check_time)
    added = fields["items"][len(basket.items) :]
    return schemas.Completion(**source.about, dropped=basket.dropped, added=added, **fields)


def sample(source: OneModel, basket: Known, asked: schemas.AskSample) -> schemas.Samples:
    """Draw sets that contain the basket."""
    if asked.k is not None:
        check_size(asked.k, basket.items)
    seed = int(np.random.default_rng().integers(2**31)) if asked.seed is None else asked.seed
    model, k = source.served.model, asked.k
    if basket.items:
        model, k = model.given(include=basket.items), None if k is None else k - len(basket.items)
    sets = [basket.items + found for found in model.sample(asked.n, k, rng=seed, threads=1)]
    return schemas.Samples(**source.about, dropped=basket.dropped, sets=sets, seed=seed)


def explain(source: OneModel, basket: Known, item: Label) -> schemas.Explanation:
    """Return the influence of each basket item on another item."""
    why = source.served.model.explain(basket.items, item)
    return schemas.Explanation(**source.about, dropped=basket.dropped, **vars(why))


def related(source: OneModel, item: Label, k: int) -> schemas.RelatedItems:
    """Return substitutes and complements."""
    model = source.served.model
    found: Any = {"substitutes": model.substitutes(item, k), "complements": model.complements(item, k)}
    return schemas.RelatedItems(**source.about, item=item, **found)


def segments(served: ServedModel, basket: list[Label] | None) -> list[schemas.Segment]:
    """Return the segments of a mixture, with their probabilities given a basket if there is one."""
    model = served.model
    if not isinstance(model, Mixture):
        return []
    found = model.segments(N_LIKES)
    given: Sequence[float | None] = [None] * len(found) if basket is None else model.segment_of(basket).tolist()
    return [
        schemas.Segment(
            share=each.weight,
            probability=probability,
            expected_size=each.expected_size,
            likes=[schemas.Liked(item=item, ratio=ratio) for item, ratio in each.likes],
        )
        for each, probability in zip(found, given, strict=True)
    ]


def segments_of_basket(source: OneModel, basket: Known) -> schemas.Segments:
    """Return the segments with their probabilities given the basket."""
    found = segments(source.served, basket.items)
    return schemas.Segments(**source.about, dropped=basket.dropped, segments=found)


def entry(served: ServedModel) -> dict[str, Any]:
    """Return the fields of a model in a list."""
    kind = "mixture" if isinstance(served.model, Mixture) else "dpp"
    names = {"name": served.name, "title": served.category.name, "version": served.version}
    return {**names, "kind": kind, "n_items": len(served.model.items)}


def list_models(store: ServedStore) -> schemas.ModelList:
    """Return all models."""
    models = [schemas.ModelEntry(**entry(each)) for each in store.models.values()]
    return schemas.ModelList(**AllModels(store).about, models=models, broken=list(store.broken))


def about_model(served: ServedModel) -> schemas.ModelAbout:
    """Return the description of a model."""
    model, learned = served.model, served.model.learned
    return schemas.ModelAbout(
        **entry(served),
        n_segments=model.distribution.components.m,
        expected_size=model.expected_size,
        share=served.category.share or 1.0,
        learned_from=learned.n_baskets or 0,
        learner=learned.learner or "",
        modified=utc(served.modified),
        loaded=utc(served.loaded),
        old=served.category.old and "it could not be fitted again; the log of fit-all gives the reason",
        warnings=served.warnings,
    )


def catalogue_items(source: OneModel, search: str, limit: int) -> schemas.Items:
    """Return the items that contain all words, the most likely first."""
    words, labels = search.lower().split(), source.served.model.items
    marginals: Any = source.served.model.marginals()
    order = np.argsort(-marginals, kind="stable").tolist()
    found = (i for i in order if all(word in str(labels[i]).lower() for word in words))
    items = [schemas.CatalogueItem(item=labels[i], probability=float(marginals[i])) for i in islice(found, limit)]
    return schemas.Items(**source.about, items=items, n_items=len(labels))
