"""The API, asked in this process: every answer is what the model says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.shelf import Shelf
from dpplearn.tools.files import digest
from helpers.order_files import random_orders, write_csv
from helpers.problems import random_mixture
from helpers.service import Client, answer_of, client, problem_of
from helpers.shelves import SHARES, three_categories, write_shelf


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("shelves") / "shelf"
    return Shelf.open(write_shelf(folder, three_categories(), SHARES))


@pytest.fixture(scope="module")
def asks(shelf: Shelf) -> Iterator[Client]:
    with client(shelf.folder) as found:
        yield found


def ask(asks: Client, what: str, body: dict[str, Any], name: str = "sleep") -> dict[str, Any]:
    return answer_of(asks.post(f"/v1/models/{name}/{what}", json=body))


def as_told(found: list[Any]) -> list[dict[str, Any]]:
    return [{"item": each.item, "score": each.score, "probability": each.probability} for each in found]


def test_recommendations_are_those_of_the_model(asks: Client, shelf: Shelf) -> None:
    model = shelf["sleep"]
    found = ask(asks, "recommend", {"basket": ["crib"], "k": 2})
    assert found["items"] == as_told(model.recommend(["crib"], 2))
    assert len(found["items"]) == 2


def test_items_can_be_allowed_and_denied(asks: Client) -> None:
    allowed = ask(asks, "recommend", {"basket": ["crib"], "allow": ["lamp"]})
    denied = ask(asks, "recommend", {"basket": ["crib"], "deny": ["lamp"]})
    assert [each["item"] for each in allowed["items"]] == ["lamp"]
    assert [each["item"] for each in denied["items"]] == ["cot"]


def test_a_score_that_does_not_exist_is_null(asks: Client) -> None:
    found = ask(asks, "recommend", {"k": 1})  # under a law without empty sets there is no ratio to one
    assert found["items"][0]["score"] is None
    assert found["items"][0]["probability"] > 0


def test_explained_recommendations_add_up(asks: Client) -> None:
    found = ask(asks, "recommend", {"basket": ["crib", "lamp"], "explain": True})
    for each in found["items"]:
        factors = [why["factor"] for why in each["influences"]]
        assert each["alone"] * math.prod(factors) == pytest.approx(each["probability"], rel=1e-9)
        assert {why["item"] for why in each["influences"]} == {"crib", "lamp"}
        directions = ["up" if factor > 1 else "down" for factor in factors]
        assert [why["direction"] for why in each["influences"]] == directions


def test_a_completion_holds_the_basket_and_one_from_nothing_is_an_initial_registry(asks: Client, shelf: Shelf) -> None:
    model = shelf["sleep"]
    grown = ask(asks, "complete", {"basket": ["lamp"], "k": 2})
    assert grown["items"] == list(model.complete(["lamp"], 2).items)
    assert grown["items"] == ["lamp", *grown["added"]]
    assert ask(asks, "complete", {"k": 2})["items"] == list(model.complete([], 2).items)
    assert "stopped at 3 of 5" in ask(asks, "complete", {"k": 5})["note"]


def test_samples_hold_the_basket_and_repeat_with_their_seed(asks: Client) -> None:
    found = ask(asks, "sample", {"basket": ["crib"], "n": 20, "k": 2})
    assert {len(each) for each in found["sets"]} == {2}
    assert all("crib" in each for each in found["sets"])
    again = ask(asks, "sample", {"basket": ["crib"], "n": 20, "k": 2, "seed": found["seed"]})
    assert again["sets"] == found["sets"]


def test_samples_follow_the_law_given_the_basket(asks: Client, shelf: Shelf) -> None:
    sets = ask(asks, "sample", {"basket": ["crib"], "n": 100, "seed": 1})["sets"]
    expected = shelf["sleep"].given(include=["crib"]).sample(100, rng=1)
    assert sets == [["crib", *each] for each in expected]


def test_an_item_is_explained(asks: Client, shelf: Shelf) -> None:
    found = ask(asks, "explain", {"basket": ["crib"], "item": "cot"})
    why = shelf["sleep"].explain(["crib"], "cot")
    assert (found["alone"], found["probability"], found["score"]) == (why.alone, why.given, why.score)
    assert found["influences"][0]["factor"] == why.influences[0].factor
    told = problem_of(asks.post("/v1/models/sleep/explain", json={"basket": ["cot"], "item": "cot"}), 422)
    assert "in the basket already" in told["detail"]


def test_related_items_are_those_of_the_model(tmp_path: Path) -> None:
    attracts, apart = [[1, 2], [-2, 1]], [[2, 1], [1, 2]]
    both = np.block([[np.array(attracts), np.zeros((2, 2))], [np.zeros((2, 2)), np.array(apart)]])
    model = dl.Mixture(dl.MixtureKernel(np.ones(1), np.full((1, 4), -2.0), both[None]), ["crib", "Pad", "cot", "bed"])
    model.save(tmp_path / "sleep.safetensors")
    with client(tmp_path) as asks:
        found = answer_of(asks.get("/v1/models/sleep/items?search=pad"))["items"]
        together, instead = ask(asks, "complements", {"item": "crib"}), ask(asks, "substitutes", {"item": "cot"})
    assert [(each["item"], each["lift"]) for each in together["items"]] == [("Pad", model.complements("crib")[0].lift)]
    assert [(each["item"], each["lift"]) for each in instead["items"]] == [("bed", model.substitutes("cot")[0].lift)]
    assert [each["item"] for each in found] == ["Pad"]  # whatever its case
    assert together["items"][0]["low"] is None  # where nothing is known of the baskets learned from


def test_a_dpp_has_substitutes_and_says_why_it_has_nothing_else(asks: Client, shelf: Shelf) -> None:
    model = shelf["wear"]
    assert isinstance(model, dl.DPP)
    found = ask(asks, "substitutes", {"item": "sock"}, "wear")
    assert found["items"][0]["lift"] == pytest.approx(1 - model.substitutes("sock")[0].substitution)
    assert "DPP" in ask(asks, "complements", {"item": "sock"}, "wear")["note"]
    assert "DPP" in ask(asks, "segments", {}, "wear")["note"]


def test_segments_are_as_likely_as_the_basket_makes_them(asks: Client, shelf: Shelf) -> None:
    model = shelf["sleep"]
    assert isinstance(model, dl.Mixture)
    found = ask(asks, "segments", {"basket": ["crib"]})["segments"]
    assert [each["probability"] for each in found] == pytest.approx(model.segment_of(["crib"]).tolist())
    assert [each["share"] for each in found] == [each.weight for each in model.segments()]


def test_a_mixed_basket_is_answered_by_the_whole_shelf(asks: Client, shelf: Shelf) -> None:
    found = answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "tie"], "k": 3, "deny": ["sock"]}))
    assert found["items"] == [each._asdict() for each in shelf.recommend(["crib", "tie"], 3, deny=["sock"])]
    some = answer_of(asks.post("/v1/recommend", json={"basket": ["crib"], "categories": ["meals"]}))
    assert {each["category"] for each in some["items"]} == {"meals"}
    told = problem_of(asks.post("/v1/recommend", json={"categories": ["toys"]}), 422)
    assert "'toys'" in told["detail"]
    assert "meals, sleep, wear" in told["detail"]


def test_reasons_of_a_mixed_basket_add_up_under_the_law_of_the_shelf(asks: Client) -> None:
    found = answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "bib"], "k": 9, "explain": True}))
    assert {each["category"] for each in found["items"]} == {"meals", "sleep", "wear"}
    for each in found["items"]:
        whole = each["alone"] * math.prod(why["factor"] for why in each["influences"])
        assert whole == pytest.approx(each["probability"], rel=1e-9)
        assert len(each["influences"]) == (each["category"] != "wear")


def test_a_mixed_basket_is_completed_by_what_multiplies_its_probability_most(asks: Client, shelf: Shelf) -> None:
    found = answer_of(asks.post("/v1/complete", json={"basket": ["crib"], "k": 3}))
    first = shelf.recommend(["crib"], 1)[0].item
    second = shelf.recommend(["crib", first], 1)[0]
    assert found["items"] == ["crib", first, second.item]
    assert found["categories"][1] == second.category
    assert "no further" in answer_of(asks.post("/v1/complete", json={"k": 50}))["note"]
    problem_of(asks.post("/v1/complete", json={"basket": ["crib", "cot"], "k": 1}), 422)


def test_each_row_of_a_batch_has_its_answer_or_its_problem(asks: Client) -> None:
    rows = [{"basket": ["crib"]}, {"basket": ["krib"]}, {"basket": "crib"}, 7, {"basket": ["cot", "cot"]}, {"k": 1}]
    found = ask(asks, "recommend/batch", {"rows": rows})["rows"]
    assert found[0]["items"] == ask(asks, "recommend", {"basket": ["crib"]})["items"]
    assert found[5]["items"] == ask(asks, "recommend", {"k": 1})["items"]
    kinds = [each["problem"]["type"].split("problem-")[1] for each in found[1:5]]
    assert kinds == ["unknown-item", "invalid-request", "invalid-request", "cannot-answer"]
    mixed = answer_of(asks.post("/v1/recommend/batch", json={"rows": [{"basket": ["crib", "bib"], "k": 2}, {"k": -1}]}))
    alone = answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "bib"], "k": 2}))
    assert mixed["rows"][0]["items"] == alone["items"]
    assert mixed["rows"][1]["problem"]["status"] == 422


def test_unknown_items_are_an_error_that_suggests_or_are_ignored_and_told(asks: Client) -> None:
    told = problem_of(asks.post("/v1/models/sleep/recommend", json={"basket": ["crub", "lamp"]}), 422)
    assert "crib" in told["unknown"][0]["suggestions"]
    assert "did you mean 'crib'" in told["detail"]
    body = {"basket": ["crub", "lamp"], "deny": ["cott"], "unknown": "ignore"}
    found = ask(asks, "recommend", body)
    assert found["ignored"] == ["crub", "cott"]
    assert found["items"] == ask(asks, "recommend", {"basket": ["lamp"]})["items"]


def test_the_version_of_the_model_is_in_every_answer_and_its_tag(asks: Client, shelf: Shelf) -> None:
    version = digest(shelf.folder / "sleep.safetensors")
    bodies = {"explain": {"item": "cot"}, "substitutes": {"item": "cot"}, "complements": {"item": "cot"}}
    for what in ("recommend", "complete", "sample", "explain", "substitutes", "complements", "segments"):
        response = asks.post(f"/v1/models/sleep/{what}", json=bodies.get(what, {}))
        assert answer_of(response)["version"] == version
        assert response.headers["etag"] == f'"{version}"'
    about = asks.get("/v1/models/sleep")
    assert answer_of(about)["version"] == version
    assert answer_of(asks.post("/v1/recommend", json={}))["versions"] == shelf.versions


def test_items_are_found_by_words_the_likeliest_first(asks: Client, shelf: Shelf) -> None:
    found = answer_of(asks.get("/v1/models/sleep/items"))["items"]
    assert [each["probability"] for each in found] == sorted(shelf["sleep"].marginals(), reverse=True)
    assert [each["item"] for each in answer_of(asks.get("/v1/models/sleep/items?search=CR"))["items"]] == ["crib"]
    assert len(answer_of(asks.get("/v1/models/sleep/items?limit=2"))["items"]) == 2


def test_the_analysis_has_the_lifts_of_the_model(asks: Client, shelf: Shelf) -> None:
    model = shelf["meals"]
    assert isinstance(model, dl.Mixture)
    found = answer_of(asks.get("/v1/models/meals/analysis"))
    shown = [model.catalogue.position(item) for item in found["map"]["items"]]
    assert sorted(shown) == [0, 1, 2]
    np.testing.assert_allclose(found["map"]["lift"], model.lift[np.ix_(shown, shown)], rtol=1e-9)
    assert all(each["lift"] < 1 for each in found["substitutes"])
    assert all(each["lift"] > 1 for each in found["complements"])
    assert len(found["substitutes"]) + len(found["complements"]) == 3


def test_pages_and_their_parts_come_from_the_service_alone(asks: Client) -> None:
    for path in ("/", "/analyst", "/docs"):
        page = asks.get(path)
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "http" not in page.text.replace("http-equiv", "")
        for part in ("style.css", "icon.svg", "common.js"):
            assert asks.get(f"/assets/{part}").status_code == 200
    for script in ("registry", "analyst", "docs", "common"):
        text = asks.get(f"/assets/{script}.js").text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text


def test_health_is_told(asks: Client) -> None:
    assert answer_of(asks.get("/healthz")) == {"live": True}
    assert answer_of(asks.get("/readyz")) == {"ready": True}


def test_the_calibration_of_a_learned_model_compares_with_what_it_was_learned_from(tmp_path: Path) -> None:
    baskets = [["cot", "lamp"], ["cot"], ["crib", "lamp"], ["crib"], ["lamp", "bib"], ["cot", "bib"]] * 20
    write_shelf(tmp_path, {"sleep": dl.fit(baskets, segments=1, rng=0).model}, {"sleep": 0.5})
    with client(tmp_path) as asks:
        found = answer_of(asks.get("/v1/models/sleep/analysis"))["calibration"]
        fares = answer_of(asks.get("/v1/analysis"))["models"][0]
    assert found["on"] == "train"
    weight = sum(each["weight"] for each in found["rows"])
    # Given an item, another comes along 2 · 80 times among the 200 items of all baskets, each of which has 3 others.
    assert sum(each["observed"] * each["weight"] for each in found["rows"]) == pytest.approx(2 * 80)
    assert weight == pytest.approx(3 * 200)
    assert fares["gain"] == pytest.approx(fares["log_likelihood"] - fares["independent"])


def test_the_analyst_sees_what_fit_all_measured_on_baskets_to_test_on(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", ("basket", "item", "category"), random_orders(150))
    prepared = dl.prepare(orders, tmp_path / "prepared", min_count=3, min_items=2)
    shelf = dl.fit_all(prepared, tmp_path / "shelf", segments=1, max_iter=5, processes=1)
    slug = next(iter(shelf))
    measured = shelf.results[slug]
    with client(tmp_path / "shelf") as asks:
        found = answer_of(asks.get(f"/v1/models/{slug}/analysis"))["calibration"]
        fares = next(each for each in answer_of(asks.get("/v1/analysis"))["models"] if each["name"] == slug)
    assert (found["on"], found["rows"]) == ("test", measured["calibration"]["rows"])
    assert fares["baselines"] == measured["baselines"]
    assert fares["baselines"]["item-to-item"] > 0


def test_items_added_to_a_model_of_the_shelf_are_served_once_it_is_taken_over(tmp_path: Path) -> None:
    folder = write_shelf(tmp_path / "shelf", three_categories(), SHARES)
    with client(folder) as asks:
        listed = ask(asks, "recommend", {"basket": ["cot"], "k": 9})["items"]
        assert "hammock" not in {each["item"] for each in listed}
        now = dl.add_to_shelf(folder, "sleep", ["hammock"], like="crib")
        assert now.is_whole()
        assert now.category("sleep").n_items == 4
        asks.refresh()
        listed = ask(asks, "recommend", {"basket": ["cot"], "k": 9})["items"]
        assert {"crib", "hammock", "lamp"} == {each["item"] for each in listed}
        assert listed == as_told(now["sleep"].recommend(["cot"], k=9))


def test_a_mixture_of_given_models_is_served(tmp_path: Path) -> None:
    one, other = (dl.Mixture(random_mixture(2, 3, seed=seed), ["cot", "crib", "lamp"]) for seed in (1, 2))
    model = dl.Mixture.of([one, other, dl.DPP(dl.Kernel.from_K(np.eye(3) / 4), ["cot", "crib", "lamp"])])
    model.save(tmp_path / "sleep.safetensors")
    with client(tmp_path / "sleep.safetensors") as asks:
        assert ask(asks, "recommend", {"basket": ["cot"]})["items"] == as_told(model.recommend(["cot"]))
        assert ask(asks, "segments", {"basket": ["cot"]})
        assert ask(asks, "explain", {"basket": ["cot"], "item": "lamp"})
        assert ask(asks, "complete", {"basket": ["cot"], "k": 2})
