"""Every route that returns data requires a key, however the application is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from starlette.types import ASGIApp

import dpplearn as dl
from dpplearn.service.settings import read_keys
from helpers.service import Client, problem_of

KEY = "a key of some length"
ORIGIN = "https://shop.example"
MAX_BODY = 2000
DATA = ("sleep", "meals", "crib", "lamp", "bib", "dpplearn_")  # names of models, items and metrics

# Routes that need no key: the pages, which contain no data, the description of the API, and the health checks.
# A route that is not listed here must answer 401 without a key.
PUBLIC_ROUTES = {"/", "/analyst", "/openapi.json", "/healthz", "/readyz"}
PUBLIC_MOUNTS = {"/assets"}

# Percent-encoded addresses of guarded routes.
ENCODED = [("GET", "/%76%31/models"), ("GET", "/v1/models/%73leep"), ("POST", "/v1/models/sleep/%72ecommend")]

# Requests that no route handles.
UNHANDLED = [
    ("GET", "/v1/models/", 307),
    ("OPTIONS", "/v1/models", 405),
    ("DELETE", "/v1/models/sleep", 405),
    ("GET", "/v1/nothing", 404),
    ("GET", "/V1/models", 404),
    ("GET", "//v1/models", 404),
    ("GET", "/v1%252Fmodels", 404),
    ("GET", "/assets/%2e%2e/v1/models", 404),
]


DEPLOYMENTS = ("direct", "root path", "mounted", "included with a prefix")


def deployed(app: FastAPI, how: str) -> tuple[ASGIApp, str, str]:
    """Return an application, the prefix of every address, and the root path that the ASGI server passes on."""
    if how == "direct":
        return app, "", ""
    if how == "root path":  # the server adds the prefix to the path, as `uvicorn --root-path` does
        return app, "/dpp", "/dpp"
    host = FastAPI()
    if how == "mounted":
        host.mount("/dpp", app)
    else:  # the routes, with the middleware and the error handlers
        host.user_middleware.extend(app.user_middleware)
        host.include_router(app.router, prefix="/dpp")
        for error, handler in app.exception_handlers.items():
            host.add_exception_handler(error, handler)
    return host, "/dpp", ""


@pytest.fixture(scope="module")
def direct(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Client:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"another key of mine\n\n{KEY}\n")
    return Client(stored, keys=read_keys(file), max_body=MAX_BODY, origins=(ORIGIN,))


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def ask(request: pytest.FixtureRequest, direct: Client) -> Callable[..., httpx.Response]:
    """Send a request to one deployment of the application."""
    app, prefix, root_path = deployed(direct.app, request.param)
    requests = httpx.AsyncClient(transport=httpx.ASGITransport(app, root_path=root_path))

    def send(method: str, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(requests.request(method, f"http://here{prefix}{path}", **options))

    return send


def assert_unauthorised(response: httpx.Response) -> None:
    assert problem_of(response, 401)["type"] == "problem:no-key"
    assert response.headers["www-authenticate"] == "Bearer"
    assert_no_data(response)


def assert_no_data(response: httpx.Response) -> None:
    """Assert that the response contains no model name, item, version or metric, unless the URL contains it."""
    assert [name for name in DATA if name in response.text and name not in str(response.url)] == []
    assert "etag" not in response.headers


def test_every_route_that_is_not_listed_as_public_requires_a_key_in_every_deployment(direct: Client, ask: Any) -> None:
    public, guarded = set(), set()
    for route in iter_route_contexts(direct.app.routes):
        if isinstance(route.original_route, Mount):  # dependencies do not apply to mounted applications
            assert route.path in PUBLIC_MOUNTS
            continue
        assert route.path is not None
        assert route.methods, f"{route.path} is not an HTTP route"
        for method in route.methods:
            if route.path in PUBLIC_ROUTES:
                assert ask(method, route.path).status_code == 200, (method, route.path)
                public.add(route.path)
            else:  # the key is checked before the request is validated
                assert_guarded(ask, method, route.path.format(name="sleep"), {200, 422})
                guarded.add(route.path)
    assert public == PUBLIC_ROUTES
    assert {"/metrics", "/v1/models", "/v1/recommend", "/v1/models/{name}"} <= guarded
    for method, path in ENCODED:
        assert_guarded(ask, method, path, {200})
    for method, path, status in UNHANDLED:
        response = ask(method, path)
        assert response.status_code == status, (method, path)
        assert_no_data(response)
    assert ask("GET", "/assets/style.css").status_code == 200
    assert ask("GET", "/v1/models/sleep").content == ask("GET", "/v1/models/none").content  # does not reveal a model


def assert_guarded(ask: Callable[..., httpx.Response], method: str, path: str, with_key: set[int]) -> None:
    body = {} if method == "POST" else None
    for headers in ({}, {"authorization": f"Bearer {KEY}x"}):
        assert_unauthorised(ask(method, path, json=body, headers=headers))
    assert ask(method, path, json=body, headers={"authorization": f"Bearer {KEY}"}).status_code in with_key, path


def test_either_header_carries_any_of_the_keys_of_a_file(direct: Client, tmp_path: Path) -> None:
    for wrong in ({"x-api-key": KEY + "x"}, {"authorization": KEY}, {"x-api-key": ""}):
        assert_unauthorised(direct.get("/v1/models", headers=wrong))
    for right in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}, {"x-api-key": "another key of mine"}):
        assert direct.get("/v1/models", headers=right).status_code == 200
    for content in ("", "short\n"):
        (tmp_path / "keys").write_text(content)
        with pytest.raises(dl.InputError):
            read_keys(tmp_path / "keys")
    with pytest.raises(dl.InputError):
        read_keys(tmp_path / "none")


def test_a_preflight_request_needs_no_key_and_the_401_is_readable_by_the_named_origin(direct: Client) -> None:
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    allowed = direct.ask("OPTIONS", "/v1/recommend", headers={"origin": ORIGIN, **preflight})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
    assert_no_data(allowed)
    refused = direct.post("/v1/recommend", json={}, headers={"origin": ORIGIN})
    assert_unauthorised(refused)
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    other = direct.post("/v1/recommend", json={}, headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers


def test_redirects_large_and_malformed_bodies_reveal_nothing_without_a_key(direct: Client) -> None:
    for path in ("/v1/models/", "/metrics/"):
        assert_unauthorised(direct.get(path, follow_redirects=True))
    problem_of(direct.post("/v1/recommend", content=b"x" * (MAX_BODY + 1)), 413)
    malformed = direct.post("/v1/recommend", content=b'{"k": ', headers={"content-type": "application/json"})
    problem_of(malformed, 400)
    assert_no_data(malformed)
