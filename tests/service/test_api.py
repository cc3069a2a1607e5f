"""The API, called in this process: every answer is that of the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest

import dpplearn as dl
from dpplearn.pipeline.fit_all import result_of
from dpplearn.utils.files import digest
from helpers.problems import as_mixture, random_mixture
from helpers.service import Client, answer_of, problem_of
from helpers.stores import edit_category


@pytest.fixture(scope="module")
def store(stored: Path) -> dl.ModelStore:
    return dl.ModelStore.open(stored)


def ask(asks: Client, what: str, body: dict[str, Any], name: str = "sleep") -> dict[str, Any]:
    return answer_of(asks.post(f"/v1/models/{name}/{what}", json=body))


def test_recommendations_are_those_of_the_model(asks: Client, store: dl.ModelStore) -> None:
    found = ask(asks, "recommend", {"basket": ["crib"], "k": 2})
    assert found["items"] == [each._asdict() for each in store["sleep"].recommend(["crib"], 2)]
    assert len(found["items"]) == 2
    allowed = ask(asks, "recommend", {"basket": ["crib"], "allow": ["lamp"]})
    denied = ask(asks, "recommend", {"basket": ["crib"], "deny": ["lamp"]})
    assert [each["item"] for each in (*allowed["items"], *denied["items"])] == ["lamp", "cot"]
    unconditional = ask(asks, "recommend", {"k": 1})["items"][0]
    assert unconditional["score"] is None  # P(empty set) is 0, so the ratio does not exist
    assert unconditional["probability"] > 0


def test_the_factors_of_an_explanation_multiply_to_the_probability(asks: Client) -> None:
    found = ask(asks, "recommend", {"basket": ["crib", "lamp"], "explain": True})["items"]
    mixed = answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "bib"], "k": 9, "explain": True}))["items"]
    for each in (*found, *mixed):
        factors = [why["factor"] for why in each["influences"]]
        assert each["alone"] * math.prod(factors) == pytest.approx(each["probability"], rel=1e-9)
    assert {why["item"] for why in found[0]["influences"]} == {"crib", "lamp"}
    assert {each["category"]: len(each["influences"]) for each in mixed} == {"meals": 1, "sleep": 1, "wear": 0}


def test_a_completion_contains_the_basket(asks: Client, store: dl.ModelStore) -> None:
    model = store["sleep"]
    grown = ask(asks, "complete", {"basket": ["lamp"], "k": 2})
    assert grown["items"] == list(model.complete(["lamp"], 2).items)
    assert grown["items"] == ["lamp", *grown["added"]]
    assert ask(asks, "complete", {"k": 2})["items"] == list(model.complete([], 2).items)
    assert "3 of 5" in ask(asks, "complete", {"k": 5})["note"]


def test_samples_are_those_of_the_model_given_the_basket(asks: Client, store: dl.ModelStore) -> None:
    found = ask(asks, "sample", {"basket": ["crib"], "n": 20, "k": 2})
    assert all(len(each) == 2 and "crib" in each for each in found["sets"])
    again = ask(asks, "sample", {"basket": ["crib"], "n": 20, "k": 2, "seed": found["seed"]})
    assert again["sets"] == found["sets"]
    sets = ask(asks, "sample", {"basket": ["crib"], "n": 100, "seed": 1})["sets"]
    expected = store["sleep"].given(include=["crib"]).sample(100, rng=1)
    assert sets == [["crib", *each] for each in expected]


def test_an_item_is_explained_and_segments_depend_on_the_basket(asks: Client, store: dl.ModelStore) -> None:
    found, model = ask(asks, "explain", {"basket": ["crib"], "item": "cot"}), store["sleep"]
    why = model.explain(["crib"], "cot")
    assert (found["alone"], found["probability"], found["score"]) == (why.alone, why.given, why.score)
    assert found["influences"][0]["factor"] == why.influences[0].factor
    problem_of(asks.post("/v1/models/sleep/explain", json={"basket": ["cot"], "item": "cot"}), 422)
    segments = ask(asks, "segments", {"basket": ["crib"]})["segments"]
    assert [each["probability"] for each in segments] == pytest.approx(model.segment_of(["crib"]).tolist())
    assert [each["share"] for each in segments] == [each.weight for each in model.segments()]


def test_a_basket_of_several_categories_is_answered_by_all_models(asks: Client, store: dl.ModelStore) -> None:
    found = answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "tie"], "k": 3, "deny": ["sock"]}))
    assert found["items"] == [each._asdict() for each in store.recommend(["crib", "tie"], 3, deny=["sock"])]
    some = answer_of(asks.post("/v1/recommend", json={"basket": ["crib"], "categories": ["meals"]}))
    assert {each["category"] for each in some["items"]} == {"meals"}
    assert "'toys'" in problem_of(asks.post("/v1/recommend", json={"categories": ["toys"]}), 422)["detail"]
    grown = answer_of(asks.post("/v1/complete", json={"basket": ["crib"], "k": 3}))
    first = store.recommend(["crib"], 1)[0].item
    second = store.recommend(["crib", first], 1)[0]
    assert (grown["items"], grown["categories"][1]) == (["crib", first, second.item], second.category)
    problem_of(asks.post("/v1/complete", json={"basket": ["crib", "cot"], "k": 1}), 422)


def test_unknown_items_are_rejected_with_suggestions_or_dropped(asks: Client) -> None:
    problem = problem_of(asks.post("/v1/models/sleep/recommend", json={"basket": ["crub", "lamp"]}), 422)
    assert (problem["unknown"], problem["suggestions"]) == (["crub"], ["crib"])
    assert "'crub'" in problem["detail"]
    found = ask(asks, "recommend", {"basket": ["crub", "lamp"], "unknown": "drop"})
    assert found["dropped"] == ["crub"]
    assert found["items"] == ask(asks, "recommend", {"basket": ["lamp"]})["items"]


def test_a_basket_is_a_set_and_unknown_denied_items_are_ignored(asks: Client) -> None:
    once = ask(asks, "recommend", {"basket": ["lamp"]})["items"]
    assert ask(asks, "recommend", {"basket": ["lamp", "lamp"], "deny": ["never sold"]})["items"] == once
    of_all = answer_of(asks.post("/v1/recommend", json={"basket": ["lamp", "lamp"], "deny": ["never sold", "tie"]}))
    assert "tie" not in [each["item"] for each in of_all["items"]]


def test_pages_load_nothing_from_other_hosts(asks: Client) -> None:
    for path in ("/", "/analyst", "/assets/style.css", "/assets/basket.js", "/assets/analyst.js", "/assets/common.js"):
        page = asks.get(path)
        assert page.status_code == 200
        assert "http" not in page.text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'self'" in asks.get("/").headers["content-security-policy"]


def test_without_results_of_fit_all_the_score_is_that_of_the_training_baskets(tmp_path: Path) -> None:
    fitted = dl.fit([["cot", "lamp"], ["cot"], ["crib", "lamp"], ["crib"], ["cot", "bib"]] * 20, segments=1, rng=0)
    fitted.model.save(tmp_path / "sleep.safetensors")
    asks = Client(tmp_path)
    assert "calibration" not in answer_of(asks.get("/v1/models/sleep/analysis"))
    (score,) = answer_of(asks.get("/v1/analysis"))["models"]
    assert (score["on"], score["log_likelihood"]) == ("train", pytest.approx(fitted.log_likelihood))
    assert score["gain"] == pytest.approx(fitted.log_likelihood - fitted.model.learned.independent_log_likelihood)


def test_every_kind_of_model_is_served(asks: Client, store: dl.ModelStore, tmp_path: Path) -> None:
    for name, model in store.items():
        found = answer_of(asks.get(f"/v1/models/{name}/related?item={model.items[0]}"))
        for kind, relations in (("substitutes", model.substitutes), ("complements", model.complements)):
            lifts = [each.lift for each in relations(model.items[0])]
            assert [each["lift"] for each in found[kind]] == pytest.approx(lifts)
    assert ask(asks, "segments", {}, "wear")["segments"] == []  # a DPP has none
    one, other = (as_mixture(random_mixture(2, 3, seed=seed), ["cot", "crib", "lamp"]) for seed in (1, 2))
    model = dl.Mixture.of([one, other, dl.DPP.from_K(np.eye(3) / 4, ["cot", "crib", "lamp"])])
    model.save(tmp_path / "sleep.safetensors")
    given_models = Client(tmp_path / "sleep.safetensors")
    found = ask(given_models, "recommend", {"basket": ["cot"]})["items"]
    assert found == [each._asdict() for each in model.recommend(["cot"])]
    for what, body in (("segments", {}), ("explain", {"item": "lamp"}), ("complete", {"k": 2})):
        assert ask(given_models, what, {"basket": ["cot"], **body})


def test_a_model_without_a_recorded_share_has_its_own_probabilities(tmp_path: Path) -> None:
    dl.DPP.from_K(np.eye(2) * 1e-12, ["cot", "crib"]).save(tmp_path / "sleep.safetensors")
    found = answer_of(Client(tmp_path).post("/v1/recommend", json={}))["items"]
    assert [each["probability"] for each in found] == pytest.approx([1e-12, 1e-12])


def test_each_of_many_baskets_has_its_answer_or_its_problem(asks: Client) -> None:
    baskets = [["crib"], ["krib", "cot"], []]
    first, unknown, empty = ask(asks, "recommend", {"baskets": baskets, "k": 1})["rows"]
    assert unknown["problem"]["unknown"] == ["krib"]
    for found, basket in ((first, ["crib"]), (empty, [])):
        assert found["items"] == ask(asks, "recommend", {"basket": basket, "k": 1})["items"]
    _, dropped, _ = ask(asks, "recommend", {"baskets": baskets, "unknown": "drop", "k": 1})["rows"]
    assert dropped["dropped"] == ["krib"]
    assert dropped["items"] == ask(asks, "recommend", {"basket": ["cot"], "k": 1})["items"]
    (mixed,) = answer_of(asks.post("/v1/recommend", json={"baskets": [["crib", "bib"]], "k": 2}))["rows"]
    assert mixed["items"] == answer_of(asks.post("/v1/recommend", json={"basket": ["crib", "bib"], "k": 2}))["items"]
    for both in ({"baskets": [[]], "basket": ["cot"]}, {"baskets": [[]], "explain": True}):
        problem_of(asks.post("/v1/models/sleep/recommend", json=both), 422)


def test_the_version_of_the_model_is_in_every_answer_and_its_tag(asks: Client, store: dl.ModelStore) -> None:
    version = digest(store.folder / "sleep.safetensors")
    for response in (asks.post("/v1/models/sleep/explain", json={"item": "cot"}), asks.get("/v1/models/sleep")):
        assert answer_of(response)["version"] == version
        assert response.headers["etag"] == f'"{version}"'
    assert answer_of(asks.post("/v1/recommend", json={}))["versions"] == store.versions


def test_items_are_listed_by_probability_and_searched(asks: Client, store: dl.ModelStore) -> None:
    found = answer_of(asks.get("/v1/models/sleep/items"))["items"]
    assert [each["probability"] for each in found] == sorted(store["sleep"].marginals(), reverse=True)
    assert [each["item"] for each in answer_of(asks.get("/v1/models/sleep/items?search=CR"))["items"]] == ["crib"]
    assert len(answer_of(asks.get("/v1/models/sleep/items?limit=2"))["items"]) == 2


def test_the_analysis_has_the_lifts_of_the_model(asks: Client, store: dl.ModelStore) -> None:
    model = store["meals"]
    assert isinstance(model, dl.Mixture)
    found = answer_of(asks.get("/v1/models/meals/analysis"))
    shown = [model.catalogue.position(item) for item in found["map"]["items"]]
    assert sorted(shown) == [0, 1, 2]
    np.testing.assert_allclose(found["map"]["lift"], model.lift[np.ix_(shown, shown)], rtol=1e-9)
    assert all(each["lift"] < 1 for each in found["substitutes"])
    assert all(each["lift"] > 1 for each in found["complements"])
    assert len(found["substitutes"]) + len(found["complements"]) == 3


def test_the_analyst_sees_what_fit_all_measured_on_test_baskets(folder: Path, store: dl.ModelStore) -> None:
    test = dl.Baskets.from_lists(store["sleep"].sample(50, rng=0), items=store["sleep"].items)
    measured = result_of(store["sleep"], None, test, test)
    edit_category(folder, "sleep", result=measured)
    asks = Client(folder)
    found = answer_of(asks.get("/v1/models/sleep/analysis"))["calibration"]
    assert (found["on"], found["rows"]) == ("test", list(measured["calibration"]["rows"]))
    score = answer_of(asks.get("/v1/analysis"))["models"][1]
    assert (score["name"], score["gain"], score["baselines"]) == ("sleep", measured["gain"], measured["baselines"])


def test_the_service_changes_nothing_in_the_metrics_of_its_host_process(asks: Client) -> None:
    asks.get("/healthz")
    host = CollectorRegistry()
    Counter("orders", "Of the host.", registry=host).inc()
    assert b"orders_created" in generate_latest(host)  # a setting of the process can switch this off
    assert b"dpplearn" not in generate_latest(REGISTRY)


def test_metrics_leave_out_the_empty_file_of_a_worker_that_begins_or_was_killed_there(
    asks: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    (tmp_path / "counter_1.db").touch()
    assert asks.get("/metrics").status_code == 200
