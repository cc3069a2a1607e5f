"""The application: routes, pages and what stands before them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from dpplearn.service import logs
from dpplearn.service.metrics import Metrics
from dpplearn.service.problems import Problem, invalid, shortened
from dpplearn.service.routes import add_health, add_knowledge, add_metrics, add_questions
from dpplearn.service.schemas import ProblemDocument
from dpplearn.service.security import BodyLimit, key_guard
from dpplearn.service.service import Service
from dpplearn.service.settings import Settings
from dpplearn.service.watching import Current
from dpplearn.version import __version__

PAGE = Path(str(files("dpplearn.service"))) / "page"
PAGES = {"/": "index.html", "/analyst": "analyst.html", "/docs": "docs.html"}
NOTHING_ELSE = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


def create_app(settings: Settings) -> FastAPI:
    """The application over what `settings` names, loaded and watched.

    Parameters
    ----------
    settings
        What to serve, to whom, and how much at once.

    Returns
    -------
    FastAPI
        To be run by an ASGI server, as uvicorn.

    Examples
    --------
    >>> create_app(Settings(Path("nowhere")))
    Traceback (most recent call last):
    ...
    dpplearn.errors.InputError: there is no nowhere; name a shelf, a folder of model files or a model file
    """
    metrics = Metrics()

    def tell(event: str, **fields: Any) -> None:
        metrics.loads.labels(event).inc()
        broken = event == "shelf_refused" or fields.get("broken")
        logs.tell(event, logging.ERROR if broken else logging.INFO, **fields)

    service = Service(settings, Current(settings.source, tell), metrics)
    app = FastAPI(
        title="dpplearn",
        version=__version__,
        description="What next, given this basket? Models of sets, over HTTP.",
        docs_url=None,
        redoc_url=None,
        lifespan=_watching(service),
        license_info={"name": "BSD-3-Clause"},
    )
    app.state.service = service
    # Everything that returns data is a route of this router. A mounted application would not be guarded.
    guarded = APIRouter(dependencies=[Depends(key_guard(settings.keys))] if settings.keys else [])
    add_questions(guarded, service)
    add_knowledge(guarded, service)
    add_metrics(guarded, service)
    app.include_router(guarded)
    add_health(app, service)
    _add_pages(app)
    _add_problems(app)
    _add_documentation(app)
    # FastAPI reads and parses the body before it runs dependencies, so the size is limited before the key is checked.
    app.add_middleware(BodyLimit, most=settings.limits.body)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.add_middleware(logs.RequestLog, metrics=metrics)
    return app


def _watching(service: Service) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(service.current.watch(service.settings.seconds))
        yield
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch

    return lifespan


def _add_pages(app: FastAPI) -> None:
    """Three pages and their assets. Nothing on them comes from elsewhere, and browsers are told so."""
    for path, name in PAGES.items():
        app.add_api_route(path, _page(PAGE / name), include_in_schema=False)
    app.mount("/assets", StaticFiles(directory=PAGE / "assets"))


def _page(file: Path) -> Any:
    async def page() -> Response:
        return FileResponse(file, headers={"content-security-policy": NOTHING_ELSE, "cache-control": "no-cache"})

    return page


def _add_problems(app: FastAPI) -> None:
    """Whatever goes wrong is told as a problem."""

    async def problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return invalid(error.errors()).response()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _of_status(request, error).response(error.headers)

    async def unexpected(request: Request, error: Exception) -> Response:
        logging.getLogger(logs.NAME).error("failed", exc_info=error)
        return Problem("internal", "the service failed; its log says why. Try again, or tell who runs it").response()

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)


def _of_status(request: Request, error: HTTPException) -> Problem:
    path = shortened(request.url.path)
    if error.status_code == 404:
        return Problem("no-such-page", f"there is nothing at {path}; see /docs for what there is")
    if error.status_code == 405:
        return Problem("wrong-method", f"{path} does not take {shortened(request.method)}; see /docs for what it takes")
    return Problem("not-json", "the body cannot be read as JSON; send one JSON object, in UTF-8")


def _add_documentation(app: FastAPI) -> None:
    """FastAPI's description of the routes, with problems as they are in place of its own errors."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            document = made()
            schemas = document["components"]["schemas"]
            schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
