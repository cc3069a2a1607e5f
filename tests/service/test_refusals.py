"""What cannot be answered is refused with words: bodies of all sorts, limits, keys, other people's pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from dpplearn.errors import InputError
from dpplearn.service.security import is_loopback, read_keys
from dpplearn.service.settings import Limits
from helpers import command
from helpers.service import Client, answer_of, client, problem_of
from helpers.shelves import SHARES, three_categories, write_shelf

JSON = {"content-type": "application/json"}
KEY = "a key of some length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shelf(tmp_path_factory.mktemp("shelves") / "shelf", three_categories(), SHARES)


@pytest.fixture(scope="module")
def asks(folder: Path) -> Iterator[Client]:
    with client(folder, limits=Limits(body=20_000, basket=5, k=20, batch=3, explain=2)) as found:
        yield found


def malformed() -> list[bytes]:
    """200 bodies that are no request: broken, deep, huge, of wrong types, with odd characters, of wrong keys."""
    rng = np.random.default_rng(0)
    whole = json.dumps({"basket": ["crib"], "k": 3, "deny": [], "unknown": "ignore"}).encode()
    values = [
        "null",
        "true",
        "1.5",
        "-1",
        '"x"',
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "[1.5]",
        "[true]",
        "NaN",
        "1e400",
        "[{}]",
    ]
    wrong = {
        "basket": (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13),
        "k": range(14),
        "unknown": range(14),
        "deny": (0, 1, 4, 6),
    }
    bodies = [whole[:cut] for cut in range(len(whole))]
    bodies += [f'{{"{name}": {values[each]}}}'.encode() for name, chosen in wrong.items() for each in chosen]
    bodies += [b"[" * n for n in (1, 100, 15_000)] + [b'{"basket":' * n for n in (2, 1000)] + [b"x" * 30_000]
    bodies += [
        b'{"basket": ["\\ud800"]}',
        b'{"k": ' + b"9" * 5000 + b"}",
        b"\xff\xfe{}",
        b"\x00",
        b'{"\xe2\x80\xae": 1}',
    ]
    bodies += [
        f'{{"{name}": 1}}'.encode()
        for name in ("Basket", "__proto__", "self", "items", "k ", "explain", "model_config")
    ]
    bodies += [
        json.dumps({"basket": ["x" * 501]}).encode(),
        json.dumps({"basket": ["\u202ecrib", "日本", "\x00"]}).encode(),
    ]
    bodies += [bytes(rng.integers(0, 256, rng.integers(1, 60), dtype=np.uint8)) for _ in range(200 - len(bodies))]
    return bodies


def test_200_malformed_bodies_are_each_a_clear_problem_and_the_service_goes_on(asks: Client) -> None:
    bodies = malformed()
    assert len(bodies) >= 200
    for body in bodies:
        response = asks.post("/v1/models/sleep/recommend", content=body, headers=JSON)
        assert response.status_code in (400, 413, 422), (body[:80], response.text)
        told = problem_of(response, response.status_code)
        assert len(told["detail"]) < 1000
    problem_of(asks.post("/v1/models/sleep/recommend", content=b'{"k": 1', headers=JSON), 400)
    assert answer_of(asks.post("/v1/models/sleep/recommend", json={"basket": ["crib"]}))["items"]


@pytest.mark.parametrize(
    ("body", "place", "expected"),
    [
        ({"basket": ["cot", 1.5]}, "basket[1] is 1.5", "string"),
        ({"k": "ten"}, "k is 'ten'", "integer"),
        ({"basketcase": []}, "basketcase is a list of 0", "no such field"),
        ({"unknown": "drop"}, "unknown is 'drop'", "'error' or 'ignore'"),
        ([], "the body is a list of 0", "object"),
    ],
)
def test_a_wrong_request_is_told_where_and_what_was_expected(
    asks: Client, body: object, place: str, expected: str
) -> None:
    detail = problem_of(asks.post("/v1/models/sleep/recommend", json=body), 422)["detail"]
    assert place in detail
    assert expected in detail


@pytest.mark.parametrize(
    ("path", "body", "most"),
    [
        ("models/sleep/recommend", {"k": 21}, "20 or less"),
        ("models/sleep/recommend", {"basket": ["a"] * 6}, "5 or fewer"),
        ("models/sleep/recommend", {"deny": ["a"] * 6}, "5 or fewer"),
        ("models/sleep/recommend", {"allow": ["a"] * 6}, "5 or fewer"),
        ("models/sleep/recommend", {"basket": ["cot", "crib", "lamp"], "explain": True}, "2 or fewer"),
        ("models/sleep/explain", {"basket": ["cot", "crib", "lamp"], "item": "lamp"}, "2 or fewer"),
        ("models/sleep/sample", {"n": 4}, "3 or less"),
        ("models/sleep/recommend/batch", {"rows": [{}] * 4}, "3 or fewer"),
        ("recommend/batch", {"rows": [{}] * 4}, "3 or fewer"),
        ("recommend", {"categories": ["sleep"] * 6}, "5 or fewer"),
        ("complete", {"k": 21}, "20 or less"),
    ],
)
def test_every_limit_is_kept_and_told(asks: Client, path: str, body: object, most: str) -> None:
    assert most in problem_of(asks.post(f"/v1/{path}", json=body), 422)["detail"]


def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(asks: Client) -> None:
    large = b'{"basket": ["' + b"x" * 30_000 + b'"]}'
    told = asks.post("/v1/models/sleep/recommend", content=large, headers=JSON)
    assert "20000 bytes" in problem_of(told, 413)["detail"]

    async def pieces() -> object:
        for start in range(0, len(large), 5000):
            yield large[start : start + 5000]

    problem_of(asks.post("/v1/models/sleep/recommend", content=pieces(), headers=JSON), 413)


@pytest.mark.parametrize(
    "name", ["nope", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "sleep.safetensors", "%00", "%2e"]
)
def test_no_name_leads_out_of_the_shelf(asks: Client, folder: Path, name: str) -> None:
    for response in (asks.get(f"/v1/models/{name}/items"), asks.post(f"/v1/models/{name}/recommend", json={})):
        problem_of(response, 404)
        assert str(folder) not in response.text


@pytest.mark.parametrize("path", ["/assets/../app.py", "/assets/..%2fapp.py", "/assets//etc/passwd", "/nowhere"])
def test_only_what_belongs_to_the_pages_is_given_out(asks: Client, path: str) -> None:
    problem_of(asks.get(path), 404)


def test_a_wrong_method_is_a_problem_that_names_it(asks: Client) -> None:
    response = asks.get("/v1/models/sleep/recommend")
    assert "'GET'" in problem_of(response, 405)["detail"]
    assert response.headers["allow"] == "POST"


def test_an_unexpected_failure_tells_nothing_of_the_machine(asks: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("dpplearn.service.service.answer", fails)
    response = asks.post("/v1/models/sleep/recommend", json={})
    problem_of(response, 500)
    assert "secret" not in response.text


@pytest.mark.parametrize("header", [{"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}])
def test_models_are_asked_with_a_key_alone_where_there_is_one(
    folder: Path, tmp_path: Path, header: dict[str, str]
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"another key of mine\n\n{KEY}\n")
    with client(folder, keys=read_keys(file)) as asks:
        guarded = ("/v1/models", "/v1/models/sleep/items", "/v1/analysis", "/v1/models/sleep", "/metrics")
        for path in guarded:
            response = asks.get(path)
            problem_of(response, 401)
            assert response.headers["www-authenticate"] == "Bearer"
            problem_of(asks.get(path, headers={"x-api-key": KEY + "x"}), 401)
            problem_of(asks.get(path, headers={"authorization": KEY}), 401)
            assert asks.get(path, headers=header).status_code == 200
        problem_of(asks.post("/v1/recommend", json={}), 401)
        for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz", "/assets/style.css"):
            assert asks.get(path).status_code == 200


@pytest.mark.parametrize(("content", "why"), [("", r"."), ("short\n", "16"), (None, r".")])
def test_a_key_file_that_protects_nothing_is_refused(tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=why):
        read_keys(file)


def test_pages_elsewhere_may_ask_only_if_their_origin_was_named(folder: Path) -> None:
    def allowed(asks: Client, origin: str) -> httpx.Headers:
        preflight = {"origin": origin, "access-control-request-method": "POST"}
        asks.ask("OPTIONS", "/v1/recommend", headers=preflight)
        return asks.get("/v1/models", headers={"origin": origin}).headers

    with client(folder) as asks:
        assert "access-control-allow-origin" not in allowed(asks, "https://shop.example")
    with client(folder, origins=("https://shop.example",)) as asks:
        assert allowed(asks, "https://shop.example")["access-control-allow-origin"] == "https://shop.example"
        assert "access-control-allow-origin" not in allowed(asks, "https://other.example")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("127.0.0.1.example", False)],
)  # fmt: skip
def test_only_this_machine_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_serving_beyond_this_machine_takes_a_key_or_a_word(folder: Path) -> None:
    done = command.run("serve", folder, "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--key-file" in done.stderr
    assert "--no-key" in done.stderr


def test_a_shelf_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = command.run("serve", tmp_path / "none", "--port", "0")
    assert done.returncode == 1
    assert "name a shelf, a folder of model files or a model file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
