"""The application: routes, pages and error handlers."""

# Annotations are evaluated here, not later: FastAPI reads them.
import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Path, Query
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from dpplearn.errors import InputError
from dpplearn.service import answers, schemas
from dpplearn.service.analysis import analysis_of_model, analysis_of_store
from dpplearn.service.answers import AllModels, Known, OneModel, Source, UnknownItems
from dpplearn.service.budget import Budget, Check
from dpplearn.service.errors import Problem, add_error_handlers, problem_responses, quoted
from dpplearn.service.loader import KnownCosts, LiveModelStore, ServedModel
from dpplearn.service.middleware import LOGGER, BodyLimit, Metrics, RequestLog, key_guard, log_event
from dpplearn.service.settings import Settings
from dpplearn.version import __version__

PAGE_FOLDER = FilePath(str(files("dpplearn.service"))) / "page"
PAGES = {"/": "index.html", "/analyst": "analyst.html"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "cache-control": "no-cache",
}
POLL_SECONDS = 1.0  # between two checks whether the source has changed
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WITH_BASKET = ("not-json", "too-large", "invalid-request", "unknown-item", "cannot-answer", "too-expensive", "busy")
OF_MODEL = ("no-such-model", "model-broken")

Found = TypeVar("Found")


class Service:
    """State of one worker: settings, models, metrics and the cost budget."""

    def __init__(self, settings: Settings, store: LiveModelStore, metrics: Metrics) -> None:
        self.settings, self.store, self.metrics = settings, store, metrics
        self.budget = Budget(settings.max_cost)

    def model(self, name: str) -> ServedModel:
        """Return a model, or raise the problem that it is unknown or broken."""
        store = self.store.now
        if name in store.models:
            return store.models[name]
        if name in store.broken:
            raise Problem("model-broken", f"the file of {quoted(name)} cannot be used; the reason is in the log")
        known = ", ".join(map(quoted, store.models))
        raise Problem("no-such-model", f"unknown model {quoted(name)}; expected one of {known}", models=[*store.models])

    async def basket(self, request: Request, source: Source, asked: schemas.Ask) -> Known:
        """Return the known items of the basket, and note the request in the log."""
        noted = request.scope["noted"]
        noted |= {"model": source.label, "n_basket": len(asked.basket)}
        if self.settings.log_baskets:
            noted["asked"] = asked.model_dump(exclude_defaults=True)
        found = await self.known(source, lambda: answers.known(source.catalogue, asked.basket, asked.unknown))
        if found.dropped:
            self.metrics.unknown.labels(source.label).inc(len(found.dropped))
        return found

    async def known(self, source: Source, look_up: Callable[[], Found]) -> Found:
        """Return what was looked up, or raise the problem for unknown items, with suggestions within the budget."""
        try:
            return look_up()
        except UnknownItems as error:
            self.metrics.unknown.labels(source.label).inc(len(error.items))
            unknown = error
        suggest = source.compare_cost <= self.budget.max_cost
        raise await self.budget.run(source.compare_cost, lambda _: unknown.problem(suggest=suggest))

    async def run(self, source: Source, cost: float, work: Callable[[Check], schemas.Answer]) -> Response:
        """Return the response of work within the budget. It is encoded in the thread, not on the event loop."""

        def answer(check_time: Check) -> str:
            return work(check_time).model_dump_json(exclude_none=True)

        try:
            content = await self.budget.run(cost, answer)
        except InputError as error:
            raise Problem("cannot-answer", str(error)) from None
        return Response(content, headers={"etag": f'"{source.version}"'}, media_type="application/json")


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
    >>> create_app(Settings(FilePath("nowhere")))
    Traceback (most recent call last):
    ...
    dpplearn.errors.InputError: nowhere does not exist; name a model store, a folder of model files or a model file
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
        with suppress(asyncio.CancelledError):
            await watch

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
    guarded = APIRouter(dependencies=[Depends(key_guard(settings.keys))] if settings.keys else [])
    add_basket_routes(guarded, service)
    add_descriptions(guarded, service)
    app.include_router(guarded)
    add_health(app, service)
    for path, name in PAGES.items():
        app.add_api_route(path, _page(PAGE_FOLDER / name), include_in_schema=False)
    app.mount("/assets", StaticFiles(directory=PAGE_FOLDER / "assets"))
    add_error_handlers(app, LOGGER)
    _describe_problems(app)
    # FastAPI reads and parses the body before it runs dependencies, so the size is limited before the key is checked.
    app.add_middleware(BodyLimit, max_bytes=settings.max_body)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.add_middleware(RequestLog, metrics=metrics)
    return app


Name = Annotated[str, Path(description="Name of the model, as listed by /v1/models.")]


def _route(response_model: type[schemas.Part], summary: str, tag: str, *kinds: str) -> dict[str, Any]:
    """Return the description of a route for the OpenAPI document: its response and its errors."""
    return {
        "response_model": response_model,
        "response_model_exclude_none": True,
        "summary": summary,
        "tags": [tag],
        "responses": problem_responses(*kinds),
    }


def add_basket_routes(router: APIRouter, service: Service) -> None:
    """Add the requests about baskets, to one model and to all models together."""

    async def one_model(name: Name) -> OneModel:
        return OneModel(service.model(name))

    async def all_models() -> AllModels:
        return AllModels(service.store.now)

    _add_recommend_and_complete(router, service, "/v1/models/{name}", one_model, "model", OF_MODEL)
    _add_recommend_and_complete(router, service, "/v1", all_models, "all models", ())
    Model = Annotated[OneModel, Depends(one_model)]
    errors = ("model", *WITH_BASKET, *OF_MODEL)

    @router.post("/v1/models/{name}/sample", **_route(schemas.Samples, "Random sets that contain the basket", *errors))
    async def sample(request: Request, model: Model, asked: schemas.AskSample) -> Response:
        basket = await service.basket(request, model, asked)
        costs = model.served.costs
        cost = service.budget.check(lambda n: costs.of_sample(len(basket.items), n), asked.n, "sets (n)")
        return await service.run(model, cost, lambda _: answers.sample(model, basket, asked))

    @router.post(
        "/v1/models/{name}/explain",
        **_route(schemas.Explanation, "Influence of each basket item on another item", *errors),
    )
    async def explain(request: Request, model: Model, asked: schemas.AskExplain) -> Response:
        basket = await service.basket(request, model, asked)
        item = await service.known(model, lambda: answers.one_item(model.catalogue, asked.item))
        cost = service.budget.check(model.served.costs.explain, len(basket.items), "basket items")
        return await service.run(model, cost, lambda _: answers.explain(model, basket, item))

    @router.post(
        "/v1/models/{name}/segments",
        **_route(schemas.Segments, "Segments, with their probabilities given the basket", *errors),
    )
    async def segments(request: Request, model: Model, asked: schemas.Ask) -> Response:
        basket = await service.basket(request, model, asked)
        cost = service.budget.check(model.served.costs.recommend, len(basket.items), "basket items")
        return await service.run(model, cost, lambda _: answers.segments_of_basket(model, basket))

    @router.get(
        "/v1/models/{name}/related",
        **_route(schemas.RelatedItems, "Substitutes and complements of an item", "about", *WITH_BASKET[2:], *OF_MODEL),
    )
    async def related(
        model: Model, item: Annotated[str, Query(max_length=schemas.MAX_NAME)], k: Annotated[int, Query(ge=0)] = 10
    ) -> Response:
        known = await service.known(model, lambda: answers.one_item(model.catalogue, item))
        cost = service.budget.check(lambda _: model.served.costs.relate, 1, "item")
        return await service.run(model, cost, lambda _: answers.related(model, known, k))

    @router.get(
        "/v1/models/{name}/items",
        **_route(schemas.Items, "Items of a model, the most likely first", "about", "invalid-request", *OF_MODEL),
    )
    async def items(
        model: Model,
        search: Annotated[str, Query(max_length=200, description="Words that the item contains.")] = "",
        limit: Annotated[int, Query(ge=0, le=5000)] = 100,
    ) -> Response:
        cost = model.served.costs.compare
        return await service.run(model, cost, lambda _: answers.catalogue_items(model, search, limit))

    @router.get(
        "/v1/models/{name}/analysis",
        **_route(schemas.ModelAnalysis, "Segments, pairs and calibration of a model", "about", "busy", *OF_MODEL),
    )
    async def analysis(model: Model) -> Response:
        # Computed once for each model file, in the thread for expensive requests.
        cost = 0.0 if model.served.cache else service.budget.max_cost
        return await service.run(model, cost, lambda _: analysis_of_model(model))


def _add_recommend_and_complete(
    router: APIRouter, service: Service, prefix: str, source: Callable[..., Any], tag: str, kinds: tuple[str, ...]
) -> None:
    From = Annotated[Source, Depends(source)]
    errors = (tag, *WITH_BASKET, *kinds)

    @router.post(
        f"{prefix}/recommend",
        name=f"recommend {tag}",
        **_route(schemas.Recommendations, "The best items to add to one basket or to many", *errors),
    )
    async def recommend(request: Request, of: From, asked: schemas.AskRecommend) -> Response:
        await service.known(of, lambda: of.check(asked))
        basket = await service.basket(request, of, asked)
        cost = answers.recommend_cost(of, basket.items, asked, service.budget)
        return await service.run(of, cost, lambda check: answers.recommend(of, basket, asked, check))

    @router.post(
        f"{prefix}/complete",
        name=f"complete {tag}",
        **_route(schemas.Completion, "A diverse set that contains the basket", *errors),
    )
    async def complete(request: Request, of: From, asked: schemas.AskComplete) -> Response:
        of.check(asked)
        basket = await service.basket(request, of, asked)
        answers.check_size(asked.k, basket.items)
        cost = service.budget.check(lambda k: of.complete_cost(len(basket.items), k), asked.k, "items (k)")
        return await service.run(of, cost, lambda check: answers.complete(of, basket, asked, check))


def add_descriptions(router: APIRouter, service: Service) -> None:
    """Add what is known of the models, and the metrics, which contain names of models."""

    @router.get("/v1/models", **_route(schemas.ModelList, "All models", "about"))
    async def models(response: Response) -> schemas.ModelList:
        response.headers["etag"] = f'"{service.store.now.version}"'
        return answers.list_models(service.store.now)

    @router.get(
        "/v1/models/{name}",
        **_route(schemas.ModelAbout, "Description of a model", "about", "invalid-request", *OF_MODEL),
    )
    async def model(response: Response, name: Name) -> schemas.ModelAbout:
        served = service.model(name)
        response.headers["etag"] = f'"{served.version}"'
        return answers.about_model(served)

    @router.get("/v1/analysis", **_route(schemas.StoreAnalysis, "Scores of all models", "about"))
    async def analysis_of_all() -> schemas.StoreAnalysis:
        return analysis_of_store(service.store.now)

    @router.get(
        "/metrics",
        tags=["health"],
        summary="Metrics for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problem_responses()},
    )
    async def metrics() -> Response:
        text = await asyncio.to_thread(service.metrics.text, service.store)
        return Response(text, headers={"content-type": METRICS_TYPE})


def add_health(app: FastAPI, service: Service) -> None:
    """Add the health checks, which need no key and never wait for work."""

    @app.get("/healthz", tags=["health"], summary="Whether the process answers")
    async def live() -> schemas.Health:
        return schemas.Health()

    @app.get(
        "/readyz",
        tags=["health"],
        summary="Whether requests can be answered",
        response_model=schemas.Readiness,
        responses={503: {"model": schemas.Readiness}},
    )
    async def ready() -> Response:
        found = schemas.Readiness(ready=not service.budget.is_stuck(), broken=list(service.store.now.broken))
        return JSONResponse(found.model_dump(), 200 if found.ready else 503)


def _page(file: FilePath) -> Any:
    async def page() -> Response:
        return FileResponse(file, headers=PAGE_HEADERS)

    return page


def _describe_problems(app: FastAPI) -> None:
    """Replace FastAPI's own errors in the OpenAPI document by problem documents.

    The document is made here, because that takes 0.1 s, for which the first request would stop the event loop.
    """
    document = app.openapi()
    described = document["components"]["schemas"]
    described["ProblemDocument"] = schemas.ProblemDocument.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        described.pop(name, None)
