"""Recommendations of a model store for baskets of several categories against enumeration; reading a store."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.answers import StoreRecommendation
from dpplearn.models.store import ModelStore
from helpers import oracle
from helpers.problems import as_mixture, random_mixture
from helpers.stores import SHARES, three_categories, write_models


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore.open(write_models(tmp_path / "store", three_categories(), SHARES))


def distribution_of(slug: str) -> dict[frozenset[object], float]:
    """Return the distribution of a category's part of a basket, which is empty with probability 1 − share."""
    model = three_categories()[slug]
    sets = [frozenset(model.catalogue.select(Y)) for Y in oracle.subsets(len(model.items))]
    p = np.array([np.exp(model.log_prob(Y)) if Y else 0.0 for Y in sets])
    P = np.where(p > 0, SHARES[slug] * p / p.sum(), 1 - SHARES[slug])
    return dict(zip(sets, P.tolist(), strict=True))


def test_scores_and_probabilities_are_those_of_all_mixed_baskets(tmp_path: Path) -> None:
    models = {slug: model for slug, model in three_categories().items() if slug != "wear"}
    store = ModelStore.open(write_models(tmp_path, models, SHARES))
    joint = {A | B: p * q for A, p in distribution_of("meals").items() for B, q in distribution_of("sleep").items()}
    assert sum(joint.values()) == pytest.approx(1)
    for basket in ([], ["cup"], ["cup", "lamp"], ["bib", "cup", "tie"]):
        held = frozenset(basket)
        inside = sum(p for Y, p in joint.items() if held <= Y)
        found = store.recommend(basket, 6)
        assert {each.item for each in found} == set(chain(*(model.items for model in models.values()))) - held
        for each in found:
            assert each.score == pytest.approx(joint[held | {each.item}] / joint[held], rel=1e-9)
            both = sum(p for Y, p in joint.items() if held | {each.item} <= Y)
            assert each.probability == pytest.approx(both / inside, rel=1e-9)
            assert each.item in models[each.category].items
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        assert store.recommend(basket, 2) == found[:2]


def test_an_item_of_two_categories_is_held_in_both_and_recommended_once(store: ModelStore) -> None:
    assert store.by_category(["tie", "cot"]) == {"meals": ("tie",), "sleep": ("cot",), "wear": ("tie",)}
    assert "tie" not in {each.item for each in store.recommend(["tie"], 10)}
    assert len({each.item for each in store.recommend(["cot"], 10)}) == len(store.recommend(["cot"], 10)) == 6


def test_items_that_no_category_has_are_an_error_or_left_out_and_named(store: ModelStore) -> None:
    with pytest.raises(dl.InputError, match=r"'crip'.*'crib'"):
        store.recommend(["cup", "crip"])
    assert store.recommend(["cup", "crip"], unknown="drop") == store.recommend(["cup"])
    assert store.by_category(["cup", "crip"], unknown="drop") == {"meals": ("cup",)}
    with pytest.raises(dl.InputError, match=r"unknown.*'ignore'"):
        store.recommend(["cup"], unknown="ignore")
    with pytest.raises(dl.InputError, match="'cup'"):
        store.recommend("cup", unknown="drop")


def test_categories_and_items_can_be_left_out(store: ModelStore) -> None:
    everything = store.recommend(["cup"], 10)
    sleep = [each for each in everything if each.category == "sleep"]
    assert store.recommend(["cup"], 10, categories=["sleep"]) == sleep
    assert store.recommend(["cup"], 10, deny=["crib"]) == [each for each in everything if each.item != "crib"]
    with pytest.raises(dl.InputError, match="'toys'"):
        store.recommend(["cup"], categories=["toys"])


def test_models_are_loaded_when_first_asked_for_and_kept(store: ModelStore) -> None:
    (store.folder / "wear.safetensors").unlink()
    assert (list(store), len(store), "wear" in store) == (["meals", "sleep", "wear"], 3, True)
    model = store["meals"]
    assert model.items == ("bib", "cup", "tie")
    (store.folder / "meals.safetensors").unlink()
    assert store["meals"] is model
    with pytest.raises(dl.InputError, match=r"wear\.safetensors"):
        store["wear"]


def test_versions_tell_models_apart_and_damage_is_found(store: ModelStore) -> None:
    assert len(set(store.versions.values())) == 3
    assert store.verify() == []
    with open(store.folder / "sleep.safetensors", "ab") as file:
        file.write(b"x")
    assert store.verify() == ["sleep"]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    for text in ("{", '{"kind": "prepared", "format": 1}', '{"kind": "store", "format": 99}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(dl.InputError, match=tmp_path.name):
            ModelStore.open(tmp_path)


def many(store: ModelStore, baskets: list[list[str]]) -> list[list[StoreRecommendation]]:
    found, _ = store.recommend_many(dl.Baskets.from_lists(baskets, store.catalogue.labels), 4, threads=2)
    rows: list[list[StoreRecommendation]] = [[] for _ in baskets]
    for number, rank, item, category, score, probability in found.tolist():
        label, slug = store.catalogue.labels[item], list(store)[category]
        rows[number].append(StoreRecommendation(label, score, probability, slug))
        assert len(rows[number]) == rank
    return rows


def random_baskets(items: tuple[str | int, ...], n: int = 60) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[], list(items), *(rng.permutation(items)[: rng.integers(1, len(items))].tolist() for _ in range(n))]


def test_each_of_many_baskets_gets_the_best_items_of_all_categories(store: ModelStore) -> None:
    baskets = random_baskets(store.catalogue.labels)
    for basket, row in zip(baskets, many(store, baskets), strict=True):
        of_each = [each for slug in store for each in store.recommend(basket, 99, categories=[slug])]
        best: dict[object, StoreRecommendation] = {}
        for each in sorted(of_each, key=lambda each: (-each.score, -each.probability)):
            best.setdefault(each.item, each)
        expected = list(best.values())[:4]
        assert [(each.item, each.category) for each in row] == [(each.item, each.category) for each in expected]
        np.testing.assert_allclose([each[1:3] for each in row], [each[1:3] for each in expected], rtol=1e-9)


def test_equal_scores_are_ordered_by_category(tmp_path: Path) -> None:
    segments = random_mixture(2, 5, seed=3)
    models = {"one": as_mixture(segments, [f"a{i}" for i in range(5)]), "two": as_mixture(segments, list("vwxyz"))}
    store = ModelStore.open(write_models(tmp_path, models, {"one": 0.5, "two": 0.5}))
    assert [each.category for each in many(store, [[]])[0]] == ["one", "two", "one", "two"]


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
            assert [each.item for each in row] == [each.item for each in expected]
            np.testing.assert_allclose([each[1:3] for each in row], [each[1:] for each in expected], rtol=1e-12)


def test_a_basket_of_probability_zero_gets_nothing_and_the_others_theirs(tmp_path: Path) -> None:
    models = {
        "never": dl.Mixture.from_arrays([1.0], [[0.0, -np.inf]], np.zeros((2, 2)), items=["bib", "unicorn"]),
        "sleep": three_categories()["sleep"],
    }
    store = ModelStore.open(write_models(tmp_path, models, {"never": 0.5, "sleep": 0.3}))
    baskets = [["unicorn"], ["cot", "unicorn"], ["cot"]]
    _, possible = store.recommend_many(dl.Baskets.from_lists(baskets, store.catalogue.labels), 4)
    assert possible.tolist() == [False, False, True]
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
