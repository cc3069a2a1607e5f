"""Diversity of lists: what the library recommends and completes, measured by plain loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Kernel
from dpplearn.arrays import Ints
from dpplearn.evaluation import diversity
from dpplearn.evaluation.baselines import baselines_of, of_model
from dpplearn.evaluation.outcomes import ask
from dpplearn.kernels.symmetric.selection import Greedy, greedy_map
from dpplearn.models.training import Training
from helpers.problems import random_kernel, sampled

KS = (2, 3)


def measured(kernels: dict[str, Kernel], baskets: Baskets) -> dict[str, diversity.Diversity]:
    predictors = {name: of_model(kernel) for name, kernel in kernels.items()} | baselines_of(Training.of(baskets))
    questions = ask(baskets, np.random.default_rng(1))
    found = diversity.diversity(predictors, list(kernels), questions, KS, np.random.default_rng(2))
    return {each.name: each for each in found}


def test_similarity_and_coverage_are_those_of_what_the_library_recommends() -> None:
    kernel = random_kernel(np.random.default_rng(0), 8)
    dpp, baskets = DPP(kernel), sampled(3, 80, 8)
    found = measured({"model": kernel}, baskets)
    assert list(found) == ["model", "model, diverse", "popularity", "item-to-item"]
    questions = ask(baskets, np.random.default_rng(1))
    lists: dict[str, list[list[int]]] = {"model": [], "model, diverse": []}
    for place, row in enumerate(questions.ranked.tolist()):
        rest = [item for item in baskets[row] if item != questions.held[place]]
        lists["model"].append([each.item for each in dpp.recommend(rest, 3)])
        lists["model, diverse"].append(list(dpp.complete(rest, len(rest) + 3))[len(rest) :])
    for name, chosen in lists.items():
        for k in KS:
            means = [np.mean([kernel.repulsion[pair] for pair in combinations(each[:k], 2)]) for each in chosen]
            assert found[name].similarity[k] == pytest.approx(np.mean(means))
            assert found[name].coverage[k] == len({item for each in chosen for item in each[:k]}) / 8
    assert found["model, diverse"].similarity[3] < found["model"].similarity[3]


def test_popularity_recommends_the_most_frequent_that_are_not_there_yet() -> None:
    baskets = sampled(6, 80, 8)
    found = measured({"model": random_kernel(np.random.default_rng(0), 8)}, baskets)["popularity"]
    by_frequency = np.argsort(-baskets.frequencies(), kind="stable").tolist()
    questions = ask(baskets, np.random.default_rng(1))
    reached = {i for rest in questions.partial for i in [i for i in by_frequency if i not in rest][:3]}
    assert found.coverage[3] == len(reached) / 8


def test_all_lists_are_compared_under_the_kernel_of_the_first_model() -> None:
    rng = np.random.default_rng(4)
    first, second = random_kernel(rng), random_kernel(rng)
    one, other = (measured(kernels, sampled(5)) for kernels in ({"a": first, "b": second}, {"b": second, "a": first}))
    assert one["popularity"].similarity[3] == pytest.approx(
        measured({"a": first}, sampled(5))["popularity"].similarity[3]
    )
    assert one["popularity"].similarity[3] != pytest.approx(other["popularity"].similarity[3])
    assert one["b"].coverage == other["b"].coverage


def test_partial_baskets_that_are_impossible_get_no_list() -> None:
    kernel = Kernel(np.array([0.0, 0.0, 0.5, 0.5]), np.eye(4))
    found = measured({"model": kernel}, Baskets.from_lists([[0, 1], [2, 3], [0, 1, 2]], n_items=4))
    assert found["model"].coverage[3] <= 0.5
    assert found["model, diverse"].coverage[3] <= 0.5


def test_no_more_lists_are_made_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(kernel: Kernel, k: int, basket: Ints) -> Greedy:
        asked.append(basket)
        return greedy_map(kernel, k, basket)

    monkeypatch.setattr(diversity, "MOST_LISTS", 7)
    monkeypatch.setattr(diversity, "FEWEST_LISTS", 3)
    monkeypatch.setattr(diversity, "greedy_map", counted)
    measured({"model": random_kernel(np.random.default_rng(0))}, sampled(0))
    assert len(asked) == 7
