"""Recommendations of a model store for baskets of several categories against enumeration; reading a store."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.distributions.components import sets_of
from dpplearn.models.store import ModelStore
from helpers.stores import SHARES, three_categories, write_models

Set = frozenset[str]


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore.open(write_models(tmp_path / "store", three_categories(), SHARES))


def all_sets(items: tuple[str, ...]) -> list[Set]:
    return [frozenset(each) for size in range(len(items) + 1) for each in combinations(items, size)]


def distribution_of(slug: str) -> dict[Set, float]:
    """Return the distribution of a category's part of a basket, which is empty with probability 1 − share."""
    model = three_categories()[slug]
    alone = {Y: float(np.exp(model.log_prob(sorted(Y)))) if Y else 0.0 for Y in all_sets(model.items)}
    total = sum(alone.values())
    return {Y: SHARES[slug] * p / total if Y else 1 - SHARES[slug] for Y, p in alone.items()}


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
    found = store.recommend(["cot"], 10)
    ties = [each for each in found if each.item == "tie"]
    nothing = {slug: sets_of([np.array([], int)], len(store[slug].items)) for slug in ("meals", "wear")}
    best = {slug: store.distributions[slug].next_items(none)[0][0, place]
            for (slug, none), place in zip(nothing.items(), (2, 1), strict=True)}  # fmt: skip
    assert [each.category for each in ties] == [max(best, key=best.__getitem__)]
    assert ties[0].score == pytest.approx(max(best.values()), rel=1e-12)
    assert len(found) == 6


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
