"""The application: routes, pages and error handlers."""

# Annotations are evaluated here, not later: FastAPI reads them.
import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Body, Depends, FastAPI, Path, Query
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from dpplearn.errors import InputError
from dpplearn.service import answers, schemas
from dpplearn.service.budget import Budget
from dpplearn.service.errors import RESPONSES, Problem, add_error_handlers, quoted
from dpplearn.service.loader import KnownCosts, LiveModelStore
from dpplearn.service.middleware import LOGGER, AroundRequests, Metrics, key_guard, log_event
from dpplearn.service.settings import Settings
from dpplearn.version import __version__

PAGE_FOLDER = FilePath(__file__).parent / "page"
PAGES = {"/": "index.html", "/analyst": "analyst.html"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "cache-control": "no-cache",
}
POLL_SECONDS = 1.0  # between two checks whether the source has changed


class Route(NamedTuple):
    """A request about one model, if the path has a name, or about all models. The plan's docstring is its summary."""

    method: str
    path: str
    plan: Callable[..., answers.Plan]
    asked: type[BaseModel]  # body of a POST request, query of a GET request
    answer: type[schemas.Part]


ONE = "/v1/models/{name}"
ROUTES = (
    Route("POST", f"{ONE}/recommend", answers.recommend, schemas.AskRecommend, schemas.Recommendations),
    Route("POST", f"{ONE}/complete", answers.complete, schemas.AskComplete, schemas.Completion),
    Route("POST", f"{ONE}/sample", answers.sample, schemas.AskSample, schemas.Samples),
    Route("POST", f"{ONE}/explain", answers.explain, schemas.AskExplain, schemas.Explanation),
    Route("POST", f"{ONE}/segments", answers.segments, schemas.Ask, schemas.Segments),
    Route("POST", "/v1/recommend", answers.recommend, schemas.AskRecommendOfAll, schemas.Recommendations),
    Route("POST", "/v1/complete", answers.complete, schemas.AskCompleteOfAll, schemas.Completion),
    Route("GET", f"{ONE}/related", answers.related, schemas.AskRelated, schemas.RelatedItems),
    Route("GET", f"{ONE}/items", answers.catalogue_items, schemas.AskItems, schemas.Items),
    Route("GET", f"{ONE}/analysis", answers.analysis_of_model, schemas.AskNothing, schemas.ModelAnalysis),
    Route("GET", ONE, answers.about_model, schemas.AskNothing, schemas.ModelAbout),
    Route("GET", "/v1/analysis", answers.analysis_of_store, schemas.AskNothing, schemas.StoreAnalysis),
    Route("GET", "/v1/models", answers.all_models, schemas.AskNothing, schemas.ModelList),
)


class Service:
    """State of one worker: settings, models, metrics and the cost budget."""

    def __init__(self, settings: Settings, store: LiveModelStore, metrics: Metrics) -> None:
        self.settings, self.store, self.metrics = settings, store, metrics
        self.budget = Budget(settings.max_cost)

    async def one_model(self, name: Annotated[str, Path(description="Name of the model, as in /v1/models.")]) -> Any:
        """Return a model, or raise the problem that it is unknown or broken."""
        store = self.store.now
        if name in store.models:
            return store.models[name]
        if name in store.broken:
            raise Problem("model-broken", f"the file of {quoted(name)} cannot be used; the reason is in the log")
        known = ", ".join(map(quoted, store.models))
        raise Problem("no-such-model", f"unknown model {quoted(name)}; expected one of {known}", models=[*store.models])

    async def all_models(self) -> Any:
        """Return all models together."""
        return self.store.now

    async def answer(self, request: Request, source: answers.Source, asked: BaseModel, plan: Any) -> Response:
        """Answer a request within the budget, and note it in the log."""
        noted, unknown = request.scope["noted"], self.metrics.unknown.labels(source.name)
        noted["model"] = source.name
        if isinstance(asked, schemas.Ask):
            noted["n_basket"] = len(asked.basket)
            if self.settings.log_baskets:
                noted["asked"] = asked.model_dump(exclude_defaults=True)
        try:
            try:
                cost, work = plan(source, asked, self.budget)
            except answers.UnknownItems as error:
                unknown.inc(len(error.items))
                cost, work = source.costs.compare, error.refuse
            content, n_unknown = await self.budget.run(cost, lambda check: _encoded(work(check)))
        except InputError as error:
            raise Problem("cannot-answer", str(error)) from None
        unknown.inc(n_unknown)
        return Response(content, headers={"etag": f'"{source.version}"'}, media_type="application/json")


def _encoded(answer: schemas.Answer) -> tuple[str, int]:
    """Return an answer as JSON, made in the thread and not on the event loop, and its number of unknown items."""
    return answer.model_dump_json(exclude_none=True), len(answer.dropped or ())


def create_app(settings: Settings, costs: KnownCosts | None = None) -> FastAPI:
    """Return the application for a source of models, loaded and watched.

    Parameters
    ----------
    settings
        What to serve, to whom, and the cost limit.
    costs
        Costs that were measured by another process, by the version of the model.

    Returns
    -------
    FastAPI
        To be run by an ASGI server such as uvicorn.

    Examples
    --------
    >>> create_app(Settings(FilePath("nowhere")))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dpplearn.errors.InputError: nowhere ...
    """
    metrics = Metrics()

    def log(event: str, **fields: Any) -> None:
        metrics.loads.labels(event).inc()
        broken = event == "store_refused" or fields.get("broken")
        log_event(event, logging.ERROR if broken else logging.INFO, **fields)

    service = Service(settings, LiveModelStore(settings.source, log, costs), metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(service.store.watch(POLL_SECONDS))
        yield
        watch.cancel()

    app = FastAPI(
        title="dpplearn",
        version=__version__,
        description="Recommendations and explanations by models of sets.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        license_info={"name": "BSD-3-Clause"},
    )
    app.state.service = service
    # Everything that returns data is a route of this router. A mounted application would not be guarded.
    guard = [Depends(key_guard(settings.keys))] if settings.keys else []
    guarded = APIRouter(dependencies=guard, responses=RESPONSES)
    for route in ROUTES:
        add_route(guarded, service, route)
    add_metrics(guarded, service)
    app.include_router(guarded)
    add_health(app, service)
    for path, name in PAGES.items():
        app.add_api_route(path, _page(PAGE_FOLDER / name), include_in_schema=False)
    app.mount("/assets", StaticFiles(directory=PAGE_FOLDER / "assets"))
    add_error_handlers(app, LOGGER)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.add_middleware(AroundRequests, metrics=metrics, max_body=settings.max_body)
    app.openapi()  # takes 0.1 s, for which the first request would stop the event loop
    return app


def add_route(router: APIRouter, service: Service, route: Route) -> None:
    """Add a request that is answered from one model or all models within the cost budget."""
    source = service.one_model if route.path.startswith(ONE) else service.all_models
    where = Query() if route.method == "GET" else Body()

    async def handle(
        request: Request,
        of: Annotated[Any, Depends(source)],
        asked: Annotated[route.asked, where],  # type: ignore[name-defined]
    ) -> Response:
        return await service.answer(request, of, asked, route.plan)

    tag = "about" if route.method == "GET" else "model" if route.path.startswith(ONE) else "all models"
    router.add_api_route(
        route.path,
        handle,
        methods=[route.method],
        name=f"{route.plan.__name__} {tag}",
        summary=(route.plan.__doc__ or "").rstrip("."),
        tags=[tag],
        response_model=route.answer,
    )


def add_metrics(router: APIRouter, service: Service) -> None:
    """Add the metrics. They contain names of models, so that they need a key."""

    @router.get("/metrics", tags=["health"], summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        text = await asyncio.to_thread(service.metrics.text, service.store)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})


def add_health(app: FastAPI, service: Service) -> None:
    """Add the health checks, which need no key and never wait for work."""

    @app.get("/healthz", tags=["health"], summary="Whether the process answers")
    async def live() -> schemas.Health:
        return schemas.Health()

    not_ready: Any = {503: {"model": schemas.Readiness}}

    @app.get("/readyz", tags=["health"], summary="Whether requests can be answered", responses=not_ready)
    async def ready(response: Response) -> schemas.Readiness:
        found = schemas.Readiness(ready=not service.budget.is_stuck(), broken=list(service.store.now.broken))
        response.status_code = 200 if found.ready else 503
        return found


def _page(file: FilePath) -> Any:
    async def page() -> Response:
        return FileResponse(file, headers=PAGE_HEADERS)

    return page
