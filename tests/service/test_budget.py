"""The cost budget: estimates, rejected requests, bounded load, and health checks that do not wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpplearn as dl
from dpplearn.service.budget import MAX_EXPENSIVE, Budget, Costs
from dpplearn.service.errors import Problem
from helpers.problems import as_mixture, random_mixture
from helpers.service import Client, answer_of, problem_of


def mixture(n: int, segments: int) -> dl.Mixture:
    return as_mixture(random_mixture(segments, n), [f"item {i}" for i in range(n)], nonempty=True)


@pytest.mark.slow
def test_estimates_are_right_within_a_factor_of_five() -> None:
    """The aim is a factor of 2 on a quiet machine."""
    model = mixture(300, 10)
    costs = Costs.measure(model)
    basket = [f"item {i}" for i in range(0, 300, 10)]

    def seconds(work: Callable[[], Any]) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
        return min(times)

    for estimate, work in (
        (costs.of_recommend(30, 10), lambda: model.recommend(basket, 10)),
        (costs.explain(30), lambda: model.explain(basket, "item 7")),
        (costs.complete(30), lambda: model.complete([], 30)),
        (20 * costs.draw, lambda: model.sample(20, rng=1, threads=1)),
    ):
        assert 1 / 5 < estimate / seconds(work) < 5


def test_a_request_above_the_limit_is_rejected_and_what_would_pass_is_named(tmp_path: Path) -> None:
    mixture(60, 4).save(tmp_path / "shop.safetensors")
    basket = [f"item {i}" for i in range(40)]
    asks = Client(tmp_path)
    costs = asks.app.state.service.store.now.models["shop"].costs
    limit = costs.explain(20)
    asks.app.state.service.budget.max_cost = limit
    problem = problem_of(asks.post("/v1/models/shop/explain", json={"basket": basket, "item": "item 50"}), 422)
    assert problem["type"] == "problem:too-expensive"
    largest = problem["largest"]
    assert costs.explain(largest) <= limit < costs.explain(largest + 1)
    assert str(largest) in problem["detail"]
    answer_of(asks.post("/v1/models/shop/explain", json={"basket": basket[:largest], "item": "item 50"}))
    for path, body in (
        ("models/shop/recommend", {"basket": basket, "explain": True, "k": 60}),
        ("models/shop/recommend", {"baskets": [basket] * 400}),
        ("recommend", {"baskets": [basket] * 400}),
        ("models/shop/sample", {"n": 10**9}),
    ):
        found = problem_of(asks.post(f"/v1/{path}", json=body), 422)
        assert found["type"] == "problem:too-expensive", (path, found)


def test_more_expensive_requests_than_fit_are_rejected_and_cheap_ones_still_run() -> None:
    budget, release = Budget(1.0), threading.Event()

    async def run() -> list[Any]:
        running = [asyncio.create_task(budget.run(0.5, lambda _: release.wait(60))) for _ in range(MAX_EXPENSIVE)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as busy:
            await budget.run(0.5, lambda _: None)
        assert busy.value.kind == "busy"
        assert busy.value.response().headers["retry-after"] == "1"
        assert await budget.run(0.001, lambda _: "cheap") == "cheap"
        release.set()
        return list(await asyncio.gather(*running))

    assert asyncio.run(run()) == [True] * MAX_EXPENSIVE


def test_a_request_that_overruns_its_limit_is_stopped_between_rows() -> None:
    def endless(check: Callable[[], None]) -> None:
        while True:
            check()

    with pytest.raises(Problem) as stopped:
        asyncio.run(Budget(0.01).run(0.005, endless))
    assert stopped.value.status_code == 503


def test_readiness_ends_while_a_request_is_stuck_and_health_checks_still_answer(stored: Path) -> None:
    asks = Client(stored)
    assert answer_of(asks.get("/readyz"))["ready"]
    budget = asks.app.state.service.budget
    budget._in_flight["stuck"] = time.monotonic() - 3600, 0.5
    assert asks.get("/readyz").status_code == 503
    assert asks.get("/healthz").status_code == 200


def test_rows_with_unknown_items_are_not_compared_with_the_catalogue(
    asks: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    monkeypatch.setattr("difflib.get_close_matches", lambda word, *_, **__: compared.append(word) or [])
    body = {"baskets": [["crub", "lamb", "cott"]] * 100}
    rows = answer_of(asks.post("/v1/models/sleep/recommend", json=body))["rows"]
    assert {row["problem"]["type"] for row in rows} == {"problem:unknown-item"}
    assert compared == []
    problem_of(asks.post("/v1/models/sleep/recommend", json={"basket": ["crub", "lamb"]}), 422)
    assert compared == ["crub"]
