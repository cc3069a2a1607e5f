"""Rejected requests: malformed bodies, limits, unknown names, wrong keys, foreign origins."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpplearn.service.settings import is_loopback
from helpers import command
from helpers.service import Client, problem_of, server

JSON = {"content-type": "application/json"}


def malformed() -> list[bytes]:
    """Return 200 malformed bodies: broken, deep, huge, of wrong types, with odd characters, with wrong keys."""
    rng = np.random.default_rng(0)
    whole = json.dumps({"basket": ["crib"], "k": 3, "deny": [], "unknown": "drop"}).encode()
    wrong_list = 'null true 1.5 -1 "x" {} [[]] [null] [1.5] [true] NaN 1e400 [{}]'.split()
    wrong = {"basket": wrong_list, "k": [*wrong_list, "[]"], "unknown": [*wrong_list, "[]"], "deny": ["true", "{}"]}
    keys = ("Basket", "__proto__", "self", "items", "k ", "explain", "model_config")
    bodies = [whole[:cut] for cut in range(len(whole))]
    bodies += [f'{{"{name}": {value}}}'.encode() for name, values in wrong.items() for value in values]
    bodies += [b"[" * n for n in (1, 100, 15_000)] + [b'{"basket":' * n for n in (2, 1000)] + [b"x" * 300_000]
    bodies += [b'{"basket": ["\\ud800"]}', b'{"k": ' + b"9" * 5000 + b"}", b"\xff\xfe{}", b"\x00"]
    bodies += [f'{{"{name}": 1}}'.encode() for name in (*keys, "\u202e")]
    bodies += [json.dumps({"basket": basket}).encode() for basket in (["x" * 501], ["\u202ecrib", "日本", "\x00"])]
    # One error per element: without a stop at the first, validation of the largest body takes seconds.
    bodies += [b'{"basket": [' + b"1.5," * 60_000 + b"1]}", b'{"baskets": [' + b"[1.5]," * 40_000 + b"[]]}"]
    bodies += [bytes(rng.integers(0, 256, rng.integers(1, 60), dtype=np.uint8)) for _ in range(200 - len(bodies))]
    return bodies


def expensive() -> list[tuple[str, dict[str, Any]]]:
    """Return requests that are valid, but too expensive or impossible."""
    basket = ["crib", "cot", "lamp"]
    return [
        ("recommend", {"baskets": [basket] * 4000}),
        ("recommend", {"baskets": [[]] * 60_000}),
        ("recommend", {"baskets": [["x"]] * 4000, "unknown": "drop", "k": 10**18}),
        ("recommend", {"basket": [f"x{i}" for i in range(20_000)]}),
        ("recommend", {"basket": [f"x{i}" for i in range(20_000)], "unknown": "drop"}),
        ("recommend", {"basket": basket * 5000, "explain": True, "k": 10**9}),
        ("complete", {"basket": basket, "k": 10**12}),
        ("sample", {"n": 10**9}),
        ("sample", {"n": 10**9, "k": 10**9}),
        ("explain", {"basket": basket * 9000, "item": "x" * 400}),
        ("segments", {"basket": list(range(-20_000, 0))}),
        ("segments", {"basket": [10**400]}),
    ]


def test_500_hostile_requests_neither_fail_nor_stop_the_service(stored: Path, tmp_path: Path) -> None:
    routes = ["/v1/models/sleep/recommend", "/v1/models/sleep/explain", "/v1/recommend", "/v1/models/nope/complete"]
    hostile = [("POST", routes[number % len(routes)], body) for number, body in enumerate((3 * malformed())[:430])]
    for what, body in expensive():
        prefixes = ("", "models/sleep/", "models/wear/", "models/%00/", "models/..%2f/")
        hostile += [("POST", f"/v1/{prefix}{what}", body) for prefix in prefixes]
    odd = ("%00", "..%2f..%2fetc%2fpasswd", "x" * 3000, "%ff%fe", "sleep%0d%0aset-cookie:x", "%F0%9F%92%A9")
    queries = ("item=", f"item={'x' * 600}", "item=crib&k=-1", "item=crib&k=1e9", "item=%00", f"k={'9' * 5000}")
    hostile += [("GET", f"/v1/models/{name}/{what}", b"") for name in odd for what in ("items", "analysis")]
    hostile += [("GET", f"/v1/models/sleep/related?{query}", b"") for query in queries]
    wide = ("limit=-1", "limit=9e9", f"search={'a' * 300}")
    hostile += [("GET", f"/v1/models/sleep/items?{query}", b"") for query in wide]
    hostile += [("TRACE", "/v1/models", b""), ("PROPFIND", "/", b""), ("DELETE", "/v1/models/sleep", b"")]
    hostile += [("GET", f"/assets/{name}", b"") for name in odd]
    with server(stored, tmp_path / "log", "--max-cost", "0.1") as served:
        began = time.monotonic()
        for method, path, body in hostile:
            status, text = served.ask(method, path, body)
            assert status in (200, 400, 404, 405, 413, 422, 503), (method, path[:80], text[:300])
            assert len(text) < (300_000 if status == 200 else 3000)
        assert served.ask("POST", routes[0], {"basket": ["crib"]})[0] == 200
        assert served.process.poll() is None
    assert len(hostile) >= 500
    assert time.monotonic() - began < 120


def test_an_invalid_field_is_named_with_its_value_and_the_expected_type(asks: Client) -> None:
    for body, expected in (
        ({"basket": ["cot", 1.5]}, ["basket[1]", "1.5", "string"]),
        ({"k": "ten"}, ["k", "'ten'", "integer"]),
        ({"basketcase": []}, ["basketcase"]),
        ({"unknown": "ignore"}, ["unknown", "'ignore'", "'error'", "'ignore'"]),
        ([], ["object"]),
    ):
        detail = problem_of(asks.post("/v1/models/sleep/recommend", json=body), 422)["detail"]
        assert [each for each in expected if each not in detail] == [], detail


def test_a_body_that_is_too_large_is_rejected_with_or_without_a_content_length(asks: Client) -> None:
    large = b'{"basket": ["' + b"x" * 300_000 + b'"]}'

    async def pieces() -> object:
        for start in range(0, len(large), 50_000):
            yield large[start : start + 50_000]

    for content in (large, pieces()):
        problem_of(asks.post("/v1/models/sleep/recommend", content=content, headers=JSON), 413)


def test_unknown_names_and_methods_are_rejected_and_lead_to_no_other_files(asks: Client, stored: Path) -> None:
    for name in ("nope", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "sleep.safetensors", "%00", "%2e"):
        for response in (asks.get(f"/v1/models/{name}/items"), asks.post(f"/v1/models/{name}/recommend", json={})):
            problem_of(response, 404)
            assert str(stored) not in response.text
    for path in ("/assets/../app.py", "/assets/..%2fapp.py", "/assets//etc/passwd", "/nowhere"):
        problem_of(asks.get(path), 404)
    response = asks.get("/v1/models/sleep/recommend")
    assert "'GET'" in problem_of(response, 405)["detail"]
    assert response.headers["allow"] == "POST"


def test_an_unexpected_failure_reveals_nothing(asks: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("dpplearn.models.model.SetModel.recommend", fails)
    response = asks.post("/v1/models/sleep/recommend", json={})
    problem_of(response, 500)
    assert "secret" not in response.text


def test_the_command_does_not_serve_other_machines_without_a_key_nor_a_missing_folder(
    stored: Path, tmp_path: Path
) -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example")))
    done = command.run("serve", stored, "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--key-file" in done.stderr
    assert "--no-key" in done.stderr
    done = command.run("serve", tmp_path / "none", "--port", "0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / "none") in done.stderr
