"""How diverse recommended lists are, and how much of the catalogue they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT, Predictor
from dpplearn.evaluation.metrics import mean_similarity, weighted_mean
from dpplearn.evaluation.outcomes import Questions
from dpplearn.kernels.independent import IndependentItems
from dpplearn.kernels.interface import Law
from dpplearn.models.meetings import together

FEWEST_LISTS, MOST_LISTS = 50, 500  # partial baskets that lists are made for
WORK = 5_000_000  # a diverse list takes O(n_items²) and more

Lister = Callable[[Ints], Ints]


@dataclass(frozen=True)
class Diversity:
    """Of lists of every length k that was asked for: what to add to partial baskets, chosen in one way.

    `similarity` is the mean over the pairs of a list of the share of their meetings by chance that the model does not
    have, max(1 − P(i, j ∈ Y)/chance, 0); `coverage`, the share of the catalogue that is in some list.
    """

    name: str
    similarity: Mapping[int, float]
    coverage: Mapping[int, float]


def diversity(
    predictors: Mapping[str, Predictor],
    models: Sequence[str],
    questions: Questions,
    ks: Sequence[int],
    rng: np.random.Generator,
) -> tuple[Diversity, ...]:
    """Of top-k lists and of diverse sets, the similarity under the law of the first model for all."""
    law = _law(predictors[models[0]])
    most = int(np.clip(WORK // law.n_items**2, FEWEST_LISTS, MOST_LISTS))
    chosen = rng.permutation(len(questions.partial))[:most]
    partial = [questions.partial[each] for each in chosen]
    weights = np.array(
        [questions.baskets.weights[questions.ranked[questions.of_partial[each]]].sum() for each in chosen]
    )
    ways: dict[str, Lister] = {}
    for name, predictor in predictors.items():
        if name != INDEPENDENT:  # which ranks as popularity does
            ways[name] = _top(predictor, max(ks))
        if name in models and predictor.law is not None:
            ways[f"{name}, diverse"] = _diverse(_law(predictor), max(ks))
    lists = {name: list(map(way, partial)) for name, way in ways.items()}
    listed = np.unique(np.concatenate([NO_ITEMS, *(items for each in lists.values() for items in each)]))
    between = similarities(law, listed)
    placed = {name: [np.searchsorted(listed, items) for items in each] for name, each in lists.items()}
    return tuple(_of_lists(name, each, weights, between, ks, law.n_items) for name, each in placed.items())


def _law(predictor: Predictor) -> Law:
    assert predictor.law is not None
    assert not isinstance(predictor.law, IndependentItems)
    return predictor.law


def similarities(law: Law, items: Ints | None = None) -> Floats:
    """Of every two items the share of their meetings by chance that the law does not have, as `DPP.substitutes` has it;
    0 for those that meet as often or more often."""
    return np.maximum(together(law, items=items).substitution, 0)


def _top(predictor: Predictor, most: int) -> Lister:
    """What `recommend` gives: the best items that can be added."""

    def top(basket: Ints) -> Ints:
        scores = np.nan_to_num(predictor.scores(basket))
        scores[basket] = 0
        best = np.argsort(-scores, kind="stable")[:most]
        return best[scores[best] > 0]

    return top


def _diverse(law: Law, most: int) -> Lister:
    """What `complete` adds to a basket."""

    def diverse(basket: Ints) -> Ints:
        try:
            return law.greedy(len(basket) + most, basket)[0][len(basket) :]
        except InputError:
            return np.zeros(0, np.int64)

    return diverse


def _of_lists(
    name: str, lists: Sequence[Ints], weights: Floats, between: Floats, ks: Sequence[int], n_items: int
) -> Diversity:
    similarity, coverage = {}, {}
    for k in ks:
        each = np.array([mean_similarity(between, items[:k]) for items in lists])
        reached = np.unique(np.concatenate([np.zeros(0, np.int64), *(items[:k] for items in lists)]))
        similarity[k] = weighted_mean(each, weights)
        coverage[k] = len(reached) / n_items
    return Diversity(name, similarity, coverage)
