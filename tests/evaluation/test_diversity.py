"""Diversity of lists: what the library recommends and completes, measured by plain loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpplearn import DPP, Baskets, Kernel
from dpplearn.arrays import Floats, Ints
from dpplearn.evaluation import diversity
from dpplearn.evaluation.baselines import baselines_of, of_model
from dpplearn.evaluation.outcomes import ask
from dpplearn.kernels.families import AnyKernel, law_of
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.models.mixture import Mixture
from dpplearn.models.training import Training
from helpers.problems import random_kernel, random_mixture, sampled

KS = (2, 3)


def measured(kernels: dict[str, AnyKernel], baskets: Baskets) -> dict[str, diversity.Diversity]:
    predictors = {name: of_model(law_of(kernel)) for name, kernel in kernels.items()}
    predictors |= baselines_of(Training.of(baskets))
    questions = ask(baskets, np.random.default_rng(1))
    found = diversity.diversity(predictors, list(kernels), questions, KS, np.random.default_rng(2))
    return {each.name: each for each in found}


@pytest.mark.parametrize("model", [DPP(random_kernel(np.random.default_rng(0), 8)), Mixture(random_mixture(2, 8))])
def test_similarity_and_coverage_are_those_of_what_the_library_recommends(model: DPP | Mixture) -> None:
    dpp, baskets = model, sampled(3, 80, 8)
    found = measured({"model": model.kernel}, baskets)
    assert list(found) == ["model", "model, diverse", "popularity", "item-to-item", "cosine", "EASE"]
    P, both = model.marginals(), model.law.pairs()
    questions = ask(baskets, np.random.default_rng(1))
    lists: dict[str, list[list[int]]] = {"model": [], "model, diverse": []}
    for place, row in enumerate(questions.ranked.tolist()):
        rest = [item for item in baskets[row] if item != questions.held[place]]
        lists["model"].append([each.item for each in dpp.recommend(rest, 3)])
        lists["model, diverse"].append(list(dpp.complete(rest, len(rest) + 3))[len(rest) :])
    for name, chosen in lists.items():
        for k in KS:
            means = [
                np.mean([max(1 - both[i, j] / (P[i] * P[j]), 0) for i, j in combinations(each[:k], 2)])
                for each in chosen
            ]
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

    def counted(law: SymmetricLaw, k: int, basket: Ints) -> tuple[Ints, Floats]:
        asked.append(basket)
        return greedy(law, k, basket)

    monkeypatch.setattr(diversity, "MOST_LISTS", 7)
    monkeypatch.setattr(diversity, "FEWEST_LISTS", 3)
    greedy = SymmetricLaw.greedy
    monkeypatch.setattr(SymmetricLaw, "greedy", counted)
    measured({"model": random_kernel(np.random.default_rng(0))}, sampled(0))
    assert len(asked) == 7


def test_items_that_are_independent_given_not_empty_have_no_similarity() -> None:
    rare = Kernel(np.array([0.2, 0.3, 0.1]), np.eye(3))  # empty half of the time, which says nothing of pairs
    np.testing.assert_allclose(diversity.similarities(law_of(rare, nonempty=True)), 0, atol=1e-9)
    apart = Kernel.from_K([[0.3, 0.2, 0], [0.2, 0.3, 0], [0, 0, 0.3]])
    found = diversity.similarities(law_of(apart))
    assert found[0, 1] == pytest.approx(0.2**2 / 0.3**2)
    np.testing.assert_allclose([found[0, 2], found[0, 0]], 0, atol=1e-12)


def test_items_that_attract_have_no_similarity() -> None:
    attracts = MixtureKernel(np.ones(1), np.array([[-2.0, -2.0]]), np.array([[[1.0, 2], [-2, 1]]]))
    np.testing.assert_array_equal(diversity.similarities(law_of(attracts)), 0)
