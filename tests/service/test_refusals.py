"""Rejected requests: malformed bodies, limits, unknown names, wrong keys, foreign origins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.service.settings import is_loopback, read_keys
from helpers import command
from helpers.service import Client, answer_of, client, problem_of
from helpers.stores import SHARES, three_categories, write_models

JSON = {"content-type": "application/json"}
KEY = "a key of some length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("shelves") / "shelf", three_categories(), SHARES)


@pytest.fixture(scope="module")
def asks(folder: Path) -> Iterator[Client]:
    with client(folder, max_body=20_000) as found:
        yield found


def malformed() -> list[bytes]:
    """Return 200 malformed bodies: broken, deep, huge, of wrong types, with odd characters, with wrong keys."""
    rng = np.random.default_rng(0)
    whole = json.dumps({"basket": ["crib"], "k": 3, "deny": [], "unknown": "drop"}).encode()
    wrong_list = 'null true 1.5 -1 "x" {} [[]] [null] [1.5] [true] NaN 1e400 [{}]'.split()
    wrong = {"basket": wrong_list, "k": [*wrong_list, "[]"], "unknown": [*wrong_list, "[]"], "deny": ["true", "{}"]}
    keys = ("Basket", "__proto__", "self", "items", "k ", "explain", "model_config")
    bodies = [whole[:cut] for cut in range(len(whole))]
    bodies += [f'{{"{name}": {value}}}'.encode() for name, values in wrong.items() for value in values]
    bodies += [b"[" * n for n in (1, 100, 15_000)] + [b'{"basket":' * n for n in (2, 1000)] + [b"x" * 30_000]
    bodies += [b'{"basket": ["\\ud800"]}', b'{"k": ' + b"9" * 5000 + b"}", b"\xff\xfe{}", b"\x00"]
    bodies += [f'{{"{name}": 1}}'.encode() for name in (*keys, "\u202e")]
    bodies += [json.dumps({"basket": basket}).encode() for basket in (["x" * 501], ["\u202ecrib", "日本", "\x00"])]
    bodies += [bytes(rng.integers(0, 256, rng.integers(1, 60), dtype=np.uint8)) for _ in range(200 - len(bodies))]
    return bodies


def test_malformed_bodies_are_rejected_and_the_service_goes_on(asks: Client) -> None:
    for body in malformed():
        response = asks.post("/v1/models/sleep/recommend", content=body, headers=JSON)
        assert response.status_code in (400, 413, 422), (body[:80], response.text)
        assert len(problem_of(response, response.status_code)["detail"]) < 1000
    problem_of(asks.post("/v1/models/sleep/recommend", content=b'{"k": 1', headers=JSON), 400)
    assert answer_of(asks.post("/v1/models/sleep/recommend", json={"basket": ["crib"]}))["items"]


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
    large = b'{"basket": ["' + b"x" * 30_000 + b'"]}'

    async def pieces() -> object:
        for start in range(0, len(large), 5000):
            yield large[start : start + 5000]

    for content in (large, pieces()):
        problem_of(asks.post("/v1/models/sleep/recommend", content=content, headers=JSON), 413)


def test_unknown_names_and_methods_are_rejected_and_lead_to_no_other_files(asks: Client, folder: Path) -> None:
    for name in ("nope", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "sleep.safetensors", "%00", "%2e"):
        for response in (asks.get(f"/v1/models/{name}/items"), asks.post(f"/v1/models/{name}/recommend", json={})):
            problem_of(response, 404)
            assert str(folder) not in response.text
    for path in ("/assets/../app.py", "/assets/..%2fapp.py", "/assets//etc/passwd", "/nowhere"):
        problem_of(asks.get(path), 404)
    response = asks.get("/v1/models/sleep/recommend")
    assert "'GET'" in problem_of(response, 405)["detail"]
    assert response.headers["allow"] == "POST"


def test_an_unexpected_failure_reveals_nothing(asks: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("dpplearn.service.answers.recommend", fails)
    response = asks.post("/v1/models/sleep/recommend", json={})
    problem_of(response, 500)
    assert "secret" not in response.text


def test_either_header_carries_any_of_the_keys_of_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for content in (None, "", "short\n"):
        if content is not None:
            file.write_text(content)
        with pytest.raises(dl.InputError):
            read_keys(file)
    file.write_text(f"another key of mine\n\n{KEY}\n")
    with client(folder, keys=read_keys(file)) as asks:
        for wrong in ({"x-api-key": KEY + "x"}, {"authorization": KEY}, {"x-api-key": ""}):
            problem_of(asks.get("/v1/models", headers=wrong), 401)
        for right in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}, {"x-api-key": "another key of mine"}):
            assert asks.get("/v1/models", headers=right).status_code == 200


def test_only_named_origins_may_read_answers(folder: Path) -> None:
    def allowed(asks: Client, origin: str) -> str | None:
        return asks.get("/v1/models", headers={"origin": origin}).headers.get("access-control-allow-origin")

    with client(folder) as asks:
        assert allowed(asks, "https://shop.example") is None
    with client(folder, origins=("https://shop.example",)) as asks:
        assert allowed(asks, "https://shop.example") == "https://shop.example"
        assert allowed(asks, "https://other.example") is None


def test_the_command_does_not_serve_other_machines_without_a_key_nor_a_missing_folder(
    folder: Path, tmp_path: Path
) -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example")))
    done = command.run("serve", folder, "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--key-file" in done.stderr
    assert "--no-key" in done.stderr
    done = command.run("serve", tmp_path / "none", "--port", "0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / "none") in done.stderr
