"""Every route that returns data requires a key, however the application is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from starlette.types import ASGIApp

from dpplearn.service.app import create_app
from dpplearn.service.settings import Settings, read_keys
from helpers.service import Client, client, problem_of
from helpers.stores import SHARES, three_categories, write_models

KEY = "a key of some length"
WITH_KEY = {"authorization": f"Bearer {KEY}"}
ORIGIN = "https://shop.example"
MAX_BODY = 2000
DATA = ("sleep", "meals", "crib", "lamp", "bib", "dpplearn_")  # names of models, items and metrics

# Routes that need no key: the pages, which contain no data, the description of the API, and the health checks.
# A route that is not listed here must answer 401 without a key.
PUBLIC_ROUTES = {"/", "/analyst", "/openapi.json", "/healthz", "/readyz"}
PUBLIC_MOUNTS = {"/assets"}

# Valid requests to each kind of guarded route, also with percent-encoded characters.
GUARDED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/models", None),
    ("GET", "/v1/models/sleep", None),
    ("GET", "/metrics", None),
    ("POST", "/v1/models/sleep/recommend", {"basket": ["crib"]}),
    ("GET", "/v1/models/sleep/related?item=crib", None),
    ("POST", "/v1/recommend", {}),
    ("GET", "/%76%31/models", None),
    ("GET", "/v1/models/%73leep", None),
    ("POST", "/v1/models/sleep/%72ecommend", {}),
]

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


class Deployment(NamedTuple):
    app: ASGIApp
    prefix: str  # of every URL
    root_path: str = ""  # as the ASGI server passes it on


def with_root_path(app: FastAPI) -> Deployment:
    """The server adds the prefix to the path, as `uvicorn --root-path` does."""
    return Deployment(app, "/dpp", "/dpp")


def mounted(app: FastAPI) -> Deployment:
    host = FastAPI()
    host.mount("/dpp", app)
    return Deployment(host, "/dpp")


def included_with_prefix(app: FastAPI) -> Deployment:
    """Another application includes the routes, with the middleware and the error handlers."""
    host = FastAPI()
    host.user_middleware.extend(app.user_middleware)
    host.include_router(app.router, prefix="/dpp")
    for error, handler in app.exception_handlers.items():
        host.add_exception_handler(error, handler)
    return Deployment(host, "/dpp")


DEPLOYMENTS: dict[str, Callable[[FastAPI], Deployment]] = {
    "direct": lambda app: Deployment(app, ""),
    "root path": with_root_path,
    "mounted": mounted,
    "included with a prefix": included_with_prefix,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models") / "store", three_categories(), SHARES)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"{KEY}\n")
    return read_keys(file)


Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def ask(request: pytest.FixtureRequest, folder: Path, keys: tuple[bytes, ...]) -> Iterator[Ask]:
    """Send a request to one deployment of the application."""
    app = create_app(Settings(folder, keys=keys, max_body=MAX_BODY))
    deployed = DEPLOYMENTS[request.param](app)
    transport = httpx.ASGITransport(deployed.app, raise_app_exceptions=False, root_path=deployed.root_path)
    requests = httpx.AsyncClient(transport=transport, base_url="http://here")

    with asyncio.Runner() as runner:

        def send(method: str, path: str, **options: Any) -> httpx.Response:
            return runner.run(requests.request(method, f"http://here{deployed.prefix}{path}", **options))

        yield send


@pytest.fixture
def direct(folder: Path, keys: tuple[bytes, ...]) -> Iterator[Client]:
    with client(folder, keys=keys, max_body=MAX_BODY, origins=(ORIGIN,)) as found:
        yield found


def assert_unauthorised(response: httpx.Response) -> None:
    assert problem_of(response, 401)["type"] == "problem:no-key"
    assert response.headers["www-authenticate"] == "Bearer"
    assert_no_data(response)


def assert_no_data(response: httpx.Response) -> None:
    """Assert that the response contains no model name, item, version or metric, unless the URL contains it."""
    assert [name for name in DATA if name in response.text and name not in str(response.url)] == []
    assert "etag" not in response.headers


def test_only_pages_and_health_checks_are_public_in_every_deployment(ask: Ask) -> None:
    for method, path, body in GUARDED:
        assert_unauthorised(ask(method, path, json=body))
        assert_unauthorised(ask(method, path, json=body, headers={"authorization": f"Bearer {KEY}x"}))
        assert ask(method, path, json=body, headers=WITH_KEY).status_code == 200, path
    for method, path, status in UNHANDLED:
        response = ask(method, path)
        assert response.status_code == status, (method, path)
        assert_no_data(response)
    for path in PUBLIC_ROUTES:
        assert ask("GET", path).status_code == 200, path
    assert ask("GET", "/v1/models/sleep").content == ask("GET", "/v1/models/none").content  # does not reveal a model
    for method, path, options in (  # the key is checked before the request is validated
        ("POST", "/v1/recommend", {"json": {"basket": 1}}),
        ("POST", "/v1/models/sleep/recommend", {}),
        ("GET", "/v1/models/sleep/items?limit=many", {}),
    ):
        assert_unauthorised(ask(method, path, **options))
        problem_of(ask(method, path, headers=WITH_KEY, **options), 422)


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


def test_every_route_that_is_not_listed_as_public_requires_a_key(direct: Client) -> None:
    public, guarded = set(), set()
    for route in iter_route_contexts(direct.app.routes):
        if isinstance(route.original_route, Mount):  # dependencies do not apply to mounted applications
            assert route.path in PUBLIC_MOUNTS
            continue
        assert route.path is not None
        assert route.methods, f"{route.path} is not an HTTP route"
        path = route.path.format(name="sleep")
        for method in route.methods:
            response = direct.ask(method, path)
            if route.path in PUBLIC_ROUTES:
                assert response.status_code == 200, (method, path)
                public.add(route.path)
            else:
                assert response.status_code == 401, (method, path)
                assert_no_data(response)
                guarded.add(route.path)
    assert public == PUBLIC_ROUTES
    assert direct.get("/assets/style.css").status_code == 200
    assert {"/metrics", "/v1/models", "/v1/recommend", "/v1/models/{name}"} <= guarded
