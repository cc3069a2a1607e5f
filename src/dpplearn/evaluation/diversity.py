"""How diverse recommended lists are, and how much of the catalogue they reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT, Predictor
from dpplearn.evaluation.metrics import mean_similarity, weighted_mean
from dpplearn.evaluation.outcomes import Questions
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.selection import greedy_map

FEWEST_LISTS, MOST_LISTS = 50, 500  # partial baskets that lists are made for
WORK = 5_000_000  # a diverse list takes O(n_items²) and more

Lister = Callable[[Ints], Ints]


@dataclass(frozen=True)
class Diversity:
    """Of lists of every length k that was asked for: what to add to partial baskets, chosen in one way.

    `similarity` is the mean of K_ij²/(K_ii K_jj) over the pairs of a list; `coverage`, the share of the catalogue that
    is in some list.
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
    """Of top-k lists and of diverse sets, the similarity under the kernel of the first model for all."""
    kernel = predictors[models[0]].kernel
    assert kernel is not None
    most = int(np.clip(WORK // kernel.n_items**2, FEWEST_LISTS, MOST_LISTS))
    chosen = rng.permutation(len(questions.partial))[:most]
    partial = [questions.partial[each] for each in chosen]
    weights = np.array(
        [questions.baskets.weights[questions.ranked[questions.of_partial[each]]].sum() for each in chosen]
    )
    ways: dict[str, Lister] = {}
    for name, predictor in predictors.items():
        if name != INDEPENDENT:  # which ranks as popularity does
            ways[name] = _top(predictor, max(ks))
        if name in models:
            ways[f"{name}, diverse"] = _diverse(predictor.kernel, max(ks))
    return tuple(_of_lists(name, list(map(way, partial)), weights, kernel, ks) for name, way in ways.items())


def _top(predictor: Predictor, most: int) -> Lister:
    """What `recommend` gives: the best items that can be added."""

    def top(basket: Ints) -> Ints:
        scores = np.nan_to_num(predictor.scores(basket))
        scores[basket] = 0
        best = np.argsort(-scores, kind="stable")[:most]
        return best[scores[best] > 0]

    return top


def _diverse(kernel: Kernel | None, most: int) -> Lister:
    """What `complete` adds to a basket."""
    assert kernel is not None

    def diverse(basket: Ints) -> Ints:
        try:
            return greedy_map(kernel, len(basket) + most, basket).positions[len(basket) :]
        except InputError:
            return np.zeros(0, np.int64)

    return diverse


def _of_lists(name: str, lists: Sequence[Ints], weights: Floats, kernel: Kernel, ks: Sequence[int]) -> Diversity:
    similarity, coverage = {}, {}
    for k in ks:
        each = np.array([mean_similarity(kernel.repulsion, items[:k]) for items in lists])
        reached = np.unique(np.concatenate([np.zeros(0, np.int64), *(items[:k] for items in lists)]))
        similarity[k] = weighted_mean(each, weights)
        coverage[k] = len(reached) / kernel.n_items
    return Diversity(name, similarity, coverage)
