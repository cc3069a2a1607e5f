"""Answers to requests. Each function returns the cost of the request and the work that makes the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, zip_longest
from typing import Any, NoReturn, TypeVar

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.relations import MANY_ITEMS, RelatedPairs, pair_table, related_pairs
from dpplearn.service import schemas
from dpplearn.service.budget import Budget, Check
from dpplearn.service.errors import Problem, quoted
from dpplearn.service.loader import ServedModel, ServedStore
from dpplearn.service.middleware import utc

N_LIKES = 8  # items named per segment
MAX_SUGGESTED_NAME = 80  # characters of an unknown item that are compared with the catalogue
MAX_UNKNOWN = 20  # unknown items that a problem lists
MAX_ANSWER = 10_000  # items of one answer; encoding more as JSON would hold up other requests
MAX_MAP_ITEMS = 24  # items of the map, those of the strongest pairs
MAX_PAIRS = 12  # pairs named of each kind

Source = ServedModel | ServedStore
Plan = tuple[float, Callable[[Check], schemas.Answer]]  # cost in CPU-seconds, and the work that makes the answer
Asked = TypeVar("Asked", bound=schemas.Ask)


class UnknownItems(Exception):
    """Items that a catalogue does not contain."""

    def __init__(self, catalogue: Catalogue, items: list[Label]) -> None:
        super().__init__(items)
        self.catalogue, self.items = catalogue, items

    def problem(self, close: Sequence[str] = ()) -> Problem:
        """Return the problem, with names that are close to the first item."""
        first = self.items[0]
        hint = f"did you mean {' or '.join(map(quoted, close))}? " if close else ""
        detail = f'unknown item {quoted(first)}; {hint}"unknown": "drop" leaves unknown items out'
        return Problem("unknown-item", detail, unknown=self.items[:MAX_UNKNOWN], suggestions=list(close))

    def refuse(self, _: Check) -> NoReturn:
        """Raise the problem with suggestions; comparing takes up to a quarter of a second."""
        raise self.problem(self.catalogue.close_to(str(self.items[0])[:MAX_SUGGESTED_NAME]))


def known(catalogue: Catalogue, items: Iterable[Label], unknown: str = "error") -> tuple[list[Label], list[Label]]:
    """Return the items of the catalogue, each once, and the others, which are an error with unknown="error"."""
    items = list(dict.fromkeys(items))
    missing = [item for item in items if item not in catalogue]
    if missing and unknown == "error":
        raise UnknownItems(catalogue, missing)
    return [item for item in items if item in catalogue] if missing else items, missing


def one_item(catalogue: Catalogue, item: Label) -> Label:
    """Return a known item. The text of an integer label is accepted, because addresses are text."""
    if item not in catalogue and isinstance(item, str) and item.isdecimal() and int(item) in catalogue:
        return int(item)
    return known(catalogue, [item])[0][0]


def look_up(source: Source, asked: Asked) -> tuple[Asked, dict[str, Any]]:
    """Return the request with known items only, each once, and the first fields of the answer."""
    catalogue = source.catalogue
    items: dict[str, Any] = {}
    items["basket"], dropped = known(catalogue, asked.basket, asked.unknown)
    if isinstance(asked, schemas.AskBaskets):
        items["deny"] = known(catalogue, asked.deny, "drop")[0]
    if isinstance(asked, schemas.AskRecommend) and asked.allow is not None:
        items["allow"] = known(catalogue, asked.allow, asked.unknown)[0]
    if isinstance(asked, schemas.AskRecommendOfAll | schemas.AskCompleteOfAll) and isinstance(source, ServedStore):
        for name in asked.categories or ():
            source.store.entry(name)  # raises an error if there is no such category
    return asked.model_copy(update=items), {**source.head, "dropped": dropped}


def recommend(source: Any, asked: schemas.AskBaskets, budget: Budget) -> Plan:
    """Recommend items to add to one basket, or to each of many by itself."""
    asked, head = look_up(source, asked)
    n_items = min(asked.k, len(source.catalogue))

    def cost(n_basket: int) -> float:
        return source.costs.of_recommend(n_basket, n_items, asked.explain)  # type: ignore[no-any-return]

    def items(basket: list[Label]) -> list[schemas.Suggestion]:
        found = source.recommend(basket, asked)
        if not asked.explain:
            return [schemas.Suggestion(**each._asdict()) for each in found]
        explained = ((each, source.explain(basket, each)) for each in found)
        return [
            schemas.Suggestion(**each._asdict(), alone=why.alone, influences=why.influences) for each, why in explained
        ]

    def row(basket: list[Label], check_time: Check) -> schemas.Row:
        """Answer one of many baskets. Errors become the problem of this row, without suggestions for unknown items."""
        check_time()
        try:
            basket, dropped = known(source.catalogue, basket, asked.unknown)
            return schemas.Row(items=items(basket), dropped=dropped)
        except UnknownItems as error:
            problem = error.problem()
        except InputError as error:
            problem = Problem("cannot-answer", str(error))
        return schemas.Row(problem=schemas.ProblemDocument(**problem.document()))

    baskets = asked.baskets
    if baskets is None:
        found = budget.check(cost, len(asked.basket), "basket items")
        return found, lambda _: schemas.Recommendations(**head, items=items(asked.basket))
    if len(baskets) * n_items > MAX_ANSWER:
        detail = f"{len(baskets)} baskets with {n_items} items each exceed the limit of {MAX_ANSWER} items in an answer"
        raise Problem("too-expensive", detail, largest=MAX_ANSWER // n_items)
    sizes = Counter(map(len, baskets))
    mean = sum(times * cost(size) for size, times in sizes.items()) / max(len(baskets), 1)
    found = budget.check(lambda rows: rows * mean, len(baskets), "baskets of these sizes")
    return found, lambda check: schemas.Recommendations(**head, rows=[row(basket, check) for basket in baskets])


def complete(source: Any, asked: schemas.AskComplete, budget: Budget) -> Plan:
    """Return a diverse set that contains the basket."""
    asked, head = look_up(source, asked)
    n, most = _check_size(asked.k, asked.basket), len(source.catalogue)
    cost = budget.check(lambda k: source.costs.complete(min(k, most)), asked.k, "items (k)")

    def work(check_time: Check) -> schemas.Completion:
        fields = source.complete(asked, check_time)
        return schemas.Completion(**head, added=fields["items"][n:], **fields)

    return cost, work


def _check_size(k: int, basket: Sequence[Label]) -> int:
    """Return the size of the basket, or raise a problem if a set of k items cannot contain it."""
    if k < len(basket):
        raise Problem("cannot-answer", f"k is {k}, but the basket has {len(basket)} items, which k includes")
    return len(basket)


def sample(served: ServedModel, asked: schemas.AskSample, budget: Budget) -> Plan:
    """Draw sets that contain the basket."""
    asked, head = look_up(served, asked)
    n_basket, basket = len(asked.basket), asked.basket
    k = None if asked.k is None else asked.k - _check_size(asked.k, basket)
    cost = budget.check(lambda n: served.costs.of_sample(n_basket, n), asked.n, "sets (n)")

    def work(_: Check) -> schemas.Samples:
        seed = int(np.random.default_rng().integers(2**31)) if asked.seed is None else asked.seed
        model = served.model.given(include=basket) if basket else served.model
        sets = [basket + found for found in model.sample(asked.n, k, rng=seed, threads=1)]
        return schemas.Samples(**head, sets=sets, seed=seed)

    return cost, work


def explain(served: ServedModel, asked: schemas.AskExplain, budget: Budget) -> Plan:
    """Return the influence of each basket item on another item."""
    asked, head = look_up(served, asked)
    item = one_item(served.catalogue, asked.item)
    cost = budget.check(served.costs.explain, len(asked.basket), "basket items")
    return cost, lambda _: schemas.Explanation(**head, **vars(served.model.explain(asked.basket, item)))


def segments(served: ServedModel, asked: schemas.Ask, budget: Budget) -> Plan:
    """Return the segments with their probabilities given the basket."""
    asked, head = look_up(served, asked)
    cost = budget.check(served.costs.recommend, len(asked.basket), "basket items")
    return cost, lambda _: schemas.Segments(**head, segments=segments_of(served, asked.basket))


def segments_of(served: ServedModel, basket: list[Label] | None) -> list[schemas.Segment]:
    """Return the segments of a mixture, with their probabilities given a basket if there is one."""
    model = served.model
    if not isinstance(model, Mixture):
        return []
    found = model.segments(N_LIKES)
    given: Sequence[float | None] = [None] * len(found) if basket is None else model.segment_of(basket).tolist()
    shown = []
    for each, probability in zip(found, given, strict=True):
        likes = [schemas.Liked(item=item, ratio=ratio) for item, ratio in each.likes]
        size = each.expected_size
        shown.append(schemas.Segment(share=each.weight, expected_size=size, likes=likes, probability=probability))
    return shown


def related(served: ServedModel, asked: schemas.AskRelated, budget: Budget) -> Plan:
    """Return substitutes and complements."""
    item, model = one_item(served.catalogue, asked.item), served.model

    def work(_: Check) -> schemas.RelatedItems:
        found: Any = {"substitutes": model.substitutes(item, asked.k), "complements": model.complements(item, asked.k)}
        return schemas.RelatedItems(**served.head, item=item, **found)

    return budget.check(lambda _: served.costs.relate, 1, "item"), work


def catalogue_items(served: ServedModel, asked: schemas.AskItems, budget: Budget) -> Plan:
    """Return the items that contain all words, the most likely first."""

    def work(_: Check) -> schemas.Items:
        words, labels = asked.search.lower().split(), served.model.items
        marginals: Any = served.model.marginals()
        order = np.argsort(-marginals, kind="stable").tolist()
        found = (i for i in order if all(word in str(labels[i]).lower() for word in words))
        some = islice(found, asked.limit)
        items = [schemas.CatalogueItem(item=labels[i], probability=float(marginals[i])) for i in some]
        return schemas.Items(**served.head, items=items, n_items=len(labels))

    return served.costs.compare, work


def entry(served: ServedModel) -> dict[str, Any]:
    """Return the fields of a model in a list."""
    names = {"name": served.name, "title": served.entry.name, "version": served.version}
    return {**names, "kind": served.model.kind, "n_items": len(served.model.items)}


def all_models(store: ServedStore, asked: object, budget: Budget) -> Plan:
    """Return all models."""
    models = [schemas.ModelEntry(**entry(each)) for each in store.models.values()]
    return 0.0, lambda _: schemas.ModelList(**store.head, models=models, broken=list(store.broken))


def about_model(served: ServedModel, asked: object, budget: Budget) -> Plan:
    """Return the description of a model."""
    model, learned = served.model, served.model.learned
    return 0.0, lambda _: schemas.ModelAbout(
        **entry(served),
        n_segments=model.distribution.components.m,
        expected_size=model.expected_size,
        share=1 - model.distribution.p_empty if served.entry.share is None else served.entry.share,
        learned_from=learned.n_baskets or 0,
        learner=learned.learner or "",
        modified=utc(served.modified),
        loaded=utc(served.loaded),
        old=served.entry.old and "it could not be fitted again; the log of fit-all gives the reason",
        warnings=served.warnings,
    )


def analysis_of_store(store: ServedStore, asked: object, budget: Budget) -> Plan:
    """Return the scores of all models."""
    scores = [_score(each) for each in store.models.values()]
    return 0.0, lambda _: schemas.StoreAnalysis(**store.head, models=scores)


def _score(served: ServedModel) -> schemas.ModelScore:
    """Return the results of fit-all, or the training log-likelihood if there are none."""
    learned = served.model.learned
    fields: dict[str, Any] = {**entry(served), **(served.result or {"on": "train", "n_baskets": learned.n_baskets})}
    if not served.result:
        model, independent = learned.log_likelihood, learned.independent_log_likelihood
        gain = None if model is None or independent is None else model - independent
        fields |= {"log_likelihood": model, "gain": gain}
    return schemas.ModelScore(**fields)


def analysis_of_model(served: ServedModel, asked: object, budget: Budget) -> Plan:
    """Return segments, pairs and calibration of a model."""

    def work(_: Check) -> schemas.ModelAnalysis:
        if "analysis" not in served.cache:
            served.cache["analysis"] = _analysis(served)
        found: schemas.ModelAnalysis = served.cache["analysis"]
        return found

    return 0.0 if served.cache else budget.max_cost, work  # computed once, in the thread for expensive requests


def _analysis(served: ServedModel) -> schemas.ModelAnalysis:
    model = served.model
    # Without training counts the lifts of all pairs would be needed: too many in a large catalogue.
    known = model.training is not None or len(model.items) <= MANY_ITEMS
    pairs = related_pairs(model, MAX_PAIRS) if known else RelatedPairs([], [])
    fields: dict[str, Any] = pairs._asdict()
    return schemas.ModelAnalysis(
        **served.head,
        **fields,
        title=served.entry.name,
        segments=segments_of(served, None),
        map=_lift_map(model, pairs),
        calibration=_calibration(served),
    )


def _lift_map(model: SetModel, pairs: RelatedPairs) -> schemas.LiftMap:
    """Return the lifts among the items of the strongest pairs, of both kinds in turn. Pairs are neighbours."""
    in_turn = [each for both in zip_longest(*pairs) for each in both if each is not None]
    labels = list(dict.fromkeys(label for pair in in_turn for label in (pair.first, pair.second)))[:MAX_MAP_ITEMS]
    items = model.catalogue.positions(labels)
    return schemas.LiftMap(items=labels, lift=pair_table(model.distribution, items, items).lift.tolist())


def _calibration(served: ServedModel) -> schemas.Calibration | None:
    """Return predicted and observed probabilities as fit-all measured them."""
    result = served.result or {}
    return schemas.Calibration(on=result["on"], rows=result["calibration"]["rows"]) if "calibration" in result else None
