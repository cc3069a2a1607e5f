"""Recommendations for many baskets at once equal those for each basket."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.many_baskets import OfModel, OfShelf, Recommender, Suggested
from dpplearn.models.model import SetModel
from dpplearn.models.shelf import Shelf
from helpers.problems import as_mixture, random_mixture
from helpers.shelves import SHARES, three_categories, write_shelf


def pairs_of(baskets: list[list[str]], recommender: Recommender) -> Suggested:
    catalogue = recommender.catalogue
    rows = np.repeat(np.arange(len(baskets)), [len(each) for each in baskets])
    labels = [sorted(catalogue.positions(each).tolist()) for each in baskets]
    return recommender.suggest(rows, np.array([i for each in labels for i in each], int), len(baskets), 4, 2)


def rows_of(found: Suggested, recommender: Recommender) -> list[list[tuple[object, ...]]]:
    rows = []
    for labels, *numbers in zip(*found[:3], found.categories, strict=True):
        n = int((labels >= 0).sum())
        assert (labels[n:] == -1).all()
        rows.append(
            list(zip(recommender.catalogue.select(labels[:n]), *(each[:n].tolist() for each in numbers), strict=True))
        )
    return rows


def random_baskets(items: tuple[str, ...], n: int = 60) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[], list(items), *(rng.permutation(items)[: rng.integers(1, len(items))].tolist() for _ in range(n))]


@pytest.mark.parametrize("shared", [True, False])
def test_by_a_shelf_each_basket_gets_what_recommend_says(tmp_path: Path, shared: bool) -> None:
    """With an item of two categories, and without one."""
    models: dict[str, SetModel] = three_categories()
    if not shared:
        del models["wear"]
    shelf = Shelf.open(write_shelf(tmp_path, models, SHARES))
    recommender = OfShelf(shelf)
    baskets = random_baskets(recommender.catalogue.labels)
    found = rows_of(pairs_of(baskets, recommender), recommender)
    slugs = list(shelf)
    for basket, row in zip(baskets, found, strict=True):
        expected = shelf.recommend(basket, 4)
        assert row == [(each.item, each.score, each.probability, slugs.index(each.category)) for each in expected]


def test_two_categories_that_are_alike_are_in_their_order(tmp_path: Path) -> None:
    """So that every score is there twice."""
    segments = random_mixture(2, 5, seed=3)
    models = {"one": as_mixture(segments, [f"a{i}" for i in range(5)]), "two": as_mixture(segments, list("vwxyz"))}
    shelf = Shelf.open(write_shelf(tmp_path, models, {"one": 0.5, "two": 0.5}))
    recommender = OfShelf(shelf)
    baskets: list[list[str]] = [[], ["a1", "w"], ["a1"], ["w"], ["a0", "a1", "a2", "a3", "w"]]
    found = rows_of(pairs_of(baskets, recommender), recommender)
    for basket, row in zip(baskets, found, strict=True):
        assert [item for item, *_ in row] == [each.item for each in shelf.recommend(basket, 4)]
    assert [category for *_, category in found[0]] == [0, 1, 0, 1]


@pytest.mark.parametrize("nonempty", [True, False])
def test_by_a_model_each_basket_gets_what_recommend_says(nonempty: bool) -> None:
    model = as_mixture(random_mixture(3, 7, seed=1), list("abcdefg"), nonempty=nonempty)
    recommender = OfModel(model)
    baskets = random_baskets(tuple("abcdefg"))
    for basket, row in zip(baskets, rows_of(pairs_of(baskets, recommender), recommender), strict=True):
        expected = model.recommend(basket, 4)
        assert str([each[:3] for each in row]) == str([tuple(each) for each in expected])  # NaN is NaN


def test_a_basket_that_cannot_be_gets_nothing_and_the_others_theirs(tmp_path: Path) -> None:
    models = {
        "never": dl.Mixture.from_arrays([1.0], [[0.0, -np.inf]], np.zeros((2, 2)), items=["bib", "unicorn"]),
        "sleep": three_categories()["sleep"],
    }
    shelf = Shelf.open(write_shelf(tmp_path, models, {"never": 0.5, "sleep": 0.3}))
    recommender = OfShelf(shelf)
    found = pairs_of([["unicorn"], ["cot", "unicorn"], ["cot"]], recommender)
    assert found.possible.tolist() == [False, False, True]
    assert [len(row) for row in rows_of(found, recommender)] == [0, 0, len(shelf.recommend(["cot"], 4))]
    with pytest.raises(dl.InputError):
        shelf.recommend(["unicorn"])
