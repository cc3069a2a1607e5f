"""Recommendations of a model store for many baskets equal those computed for each basket and category alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.distributions.components import sets_of
from dpplearn.models.model import SetModel
from dpplearn.models.store import ModelStore
from helpers.problems import as_mixture, random_mixture
from helpers.stores import SHARES, three_categories, write_models

Row = list[tuple[object, ...]]


def many(store: ModelStore, baskets: list[list[str]], k: int = 4) -> list[Row]:
    found = store.recommend_many(dl.Baskets.from_lists(baskets, store.catalogue.labels), k, threads=2)
    rows = []
    for items, *columns in zip(*found[:4], strict=True):
        n = int((items >= 0).sum())
        assert (items[n:] == -1).all()
        rows.append(list(zip(store.catalogue.select(items[:n]), *(each[:n].tolist() for each in columns), strict=True)))
    return rows


def by_definition(store: ModelStore, basket: list[str], k: int = 4) -> Row:
    """Score every item of every category alone, sort, keep the first occurrence of an item."""
    entries = []
    for number, slug in enumerate(store):
        catalogue = store[slug].catalogue
        held = catalogue.positions([item for item in basket if item in catalogue])
        scores, probabilities = store.distributions[slug].next_items(sets_of([held], len(catalogue)))
        entries += [
            (-scores[0, i], -probabilities[0, i], number, i, str(item))
            for i, item in enumerate(catalogue.labels)
            if item not in basket and scores[0, i] > 0
        ]
    first: dict[str, tuple[object, ...]] = {}
    for score, probability, number, _, item in sorted(entries):
        first.setdefault(item, (item, -score, -probability, number))
    return list(first.values())[:k]


def random_baskets(items: tuple[str | int, ...], n: int = 60) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[], list(items), *(rng.permutation(items)[: rng.integers(1, len(items))].tolist() for _ in range(n))]


@pytest.mark.parametrize("shared", [True, False], ids=["an item of two categories", "distinct items"])
def test_each_basket_gets_the_best_items_of_all_categories(tmp_path: Path, shared: bool) -> None:
    models: dict[str, SetModel] = three_categories()
    if not shared:
        del models["wear"]
    store = ModelStore.open(write_models(tmp_path, models, SHARES))
    baskets = random_baskets(store.catalogue.labels)
    for basket, row in zip(baskets, many(store, baskets), strict=True):
        expected = by_definition(store, basket)
        assert [(item, number) for item, *_, number in row] == [(item, number) for item, *_, number in expected]
        for got, wanted in zip(row, expected, strict=True):
            np.testing.assert_allclose(got[1:3], wanted[1:3], rtol=1e-9)  # two summation orders of the same formula


def test_equal_scores_are_ordered_by_category(tmp_path: Path) -> None:
    segments = random_mixture(2, 5, seed=3)
    models = {"one": as_mixture(segments, [f"a{i}" for i in range(5)]), "two": as_mixture(segments, list("vwxyz"))}
    store = ModelStore.open(write_models(tmp_path, models, {"one": 0.5, "two": 0.5}))
    assert [category for *_, category in many(store, [[]])[0]] == [0, 1, 0, 1]


@pytest.mark.parametrize("nonempty", [True, False])
def test_a_store_of_one_file_ranks_as_its_model(tmp_path: Path, nonempty: bool) -> None:
    model = as_mixture(random_mixture(3, 7, seed=1), list("abcdefg"), nonempty=nonempty)
    model.save(tmp_path / "letters.safetensors")
    for path in (tmp_path, tmp_path / "letters.safetensors"):
        store = ModelStore.open(path)
        assert list(store) == ["letters"]
        baskets = random_baskets(tuple("abcdefg"), n=20)
        for basket, row in zip(baskets, many(store, baskets), strict=True):
            expected = model.recommend(basket, 4)
            assert [item for item, *_ in row] == [each.item for each in expected]
            for got, wanted in zip(row, expected, strict=True):
                np.testing.assert_allclose(got[1:3], wanted[1:], rtol=1e-12)


def test_a_basket_of_probability_zero_gets_nothing_and_the_others_theirs(tmp_path: Path) -> None:
    models = {
        "never": dl.Mixture.from_arrays([1.0], [[0.0, -np.inf]], np.zeros((2, 2)), items=["bib", "unicorn"]),
        "sleep": three_categories()["sleep"],
    }
    store = ModelStore.open(write_models(tmp_path, models, {"never": 0.5, "sleep": 0.3}))
    baskets = [["unicorn"], ["cot", "unicorn"], ["cot"]]
    found = store.recommend_many(dl.Baskets.from_lists(baskets, store.catalogue.labels), 4)
    assert found.possible.tolist() == [False, False, True]
    assert [len(row) for row in many(store, baskets)] == [0, 0, 3]
    with pytest.raises(dl.InputError):
        store.recommend(["unicorn"])


def test_a_replaced_model_is_seen_by_opening_again_and_a_conflict_is_refused(tmp_path: Path) -> None:
    before = ModelStore.open(write_models(tmp_path, three_categories(), SHARES))
    other = ModelStore.open(tmp_path)
    now = before.replace("sleep", before["sleep"].with_items(["night light"]))
    assert "night light" in ModelStore.open(tmp_path)["sleep"].items
    assert "night light" in now.catalogue
    assert "night light" not in before.catalogue
    assert now.verify() == []
    with pytest.raises(dl.InputError, match="sleep"):
        other.replace("sleep", other["sleep"])
