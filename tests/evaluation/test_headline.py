"""A few figures of a model, and a model beside the one before it."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.evaluation.headline import background, beside, headline
from helpers.problems import random_mixture

ITEMS = ["bib", "cot", "crib", "cup", "lamp", "sock"]


def baskets() -> dl.Baskets:
    rng = np.random.default_rng(0)
    lists = [rng.permutation(ITEMS)[: rng.integers(1, 6)].tolist() for _ in range(40)]
    return dl.Baskets.from_lists(lists, items=ITEMS, weights=rng.random(40))


def test_the_figures_are_those_of_evaluate() -> None:
    model = dl.Mixture(random_mixture(2, seed=1), ITEMS, nonempty=True)
    found, expected = headline(model, baskets()), dl.evaluate(model, baskets(), resamples=10)
    assert found.log_likelihood == pytest.approx(expected.estimate("model").value)
    assert found.gain == pytest.approx(expected.difference("model", "independent items").value)
    assert found.percentile_rank == pytest.approx(expected.estimate("model", "percentile_rank").value)


def test_what_figures_are_seen_against_is_that_of_evaluate() -> None:
    model = dl.fit(baskets(), segments=2, rng=0, max_iter=5).model
    found, expected = background(model, baskets()), dl.evaluate(model, baskets(), resamples=10)
    assert set(found.percentile_ranks) == {"popularity", "item-to-item", "cosine", "EASE"}
    for name, rank in found.percentile_ranks.items():
        assert rank == pytest.approx(expected.estimate(name, "percentile_rank").value)
    assert found.reliability.error == pytest.approx(expected.reliability["model"].error)
    unknown = dl.Mixture(random_mixture(2, seed=1), ITEMS, nonempty=True)
    assert background(unknown, baskets()).percentile_ranks == {}


def test_a_model_of_the_same_items_in_another_order_is_the_same_model() -> None:
    model = dl.Mixture(random_mixture(2, seed=1), ITEMS, nonempty=True)
    order = [3, 1, 5, 0, 2, 4]
    kernel = model.kernel
    assert isinstance(kernel, dl.MixtureKernel)
    interaction = kernel.interaction[:, np.array(order)[:, None], order]
    other = dl.Mixture(
        dl.MixtureKernel(kernel.weights, kernel.log_odds[:, order], interaction),
        [ITEMS[i] for i in order],
        nonempty=True,
    )
    found = beside(model, headline(model, baskets()), other, baskets())
    assert found.n_items == 6
    assert found.before.log_likelihood == pytest.approx(found.now.log_likelihood, rel=1e-12)
    assert found.before.percentile_rank == pytest.approx(found.now.percentile_rank, rel=1e-12)


def test_models_of_other_items_are_judged_by_what_is_seen_of_the_common_ones() -> None:
    """By enumeration: the probability of what is seen is the sum over all that is not."""
    model = dl.Mixture(random_mixture(2, 4, seed=1), ["bib", "cot", "crib", "cup"], nonempty=True)
    last = dl.Mixture(random_mixture(3, 4, seed=2), ["cup", "lamp", "bib", "cot"], nonempty=True)
    lists = [["bib", "crib"], ["crib"], ["cup", "cot"], ["bib", "cot", "cup"]]
    given = dl.Baskets.from_lists(lists, items=model.items)
    found = beside(model, headline(model, given), last, given)
    assert found.n_items == 3
    for each, only, figures in ((model, "crib", found.now), (last, "lamp", found.before)):
        seen = [[item for item in basket if item != "crib"] for basket in lists]
        p = [sum(np.exp(each.log_prob(rest)) for rest in (basket, [*basket, only])) for basket in seen]
        assert figures.log_likelihood == pytest.approx(float(np.mean(np.log(p))))


def test_models_without_a_common_item_are_refused() -> None:
    one, two = (dl.Mixture(random_mixture(1, 2), names) for names in (["a", "b"], ["y", "z"]))
    given = dl.Baskets.from_lists([["a"]], items=["a", "b"])
    with pytest.raises(dl.InputError, match="no item in common"):
        beside(one, headline(one, given), two, given)
