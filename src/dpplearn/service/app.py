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

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError
from dpplearn.service import answers, schemas
from dpplearn.service.analysis import analysis_of_model, analysis_of_store
from dpplearn.service.answers import Names, UnknownItems
from dpplearn.service.budget import Budget, Check
from dpplearn.service.errors import Problem, add_error_handlers, problem_responses, quoted
from dpplearn.service.loader import LiveModelStore, ServedModel, ServedStore
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
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALL_MODELS = "(all)"  # in logs and metrics
OF_BODY = ("not-json", "too-large", "invalid-request", "unknown-item", "cannot-answer", "too-expensive", "busy")
WITHOUT_NULLS = {"response_model_exclude_none": True}  # fields that do not apply are left out
OF_MODEL = ("no-such-model", "model-broken")

Found = TypeVar("Found")


class Service:
    """State of one worker: settings, models, metrics and the cost budget."""

    def __init__(self, settings: Settings, store: LiveModelStore, metrics: Metrics) -> None:
        self.settings, self.store, self.metrics = settings, store, metrics
        self.budget = Budget(settings.max_cost)

    @property
    def now(self) -> ServedStore:
        return self.store.now

    def model(self, name: str) -> ServedModel:
        store = self.now
        if name in store.models:
            return store.models[name]
        if name in store.broken:
            raise Problem("model-broken", f"the file of {quoted(name)} cannot be used; the reason is in the log")
        known = ", ".join(map(quoted, store.models))
        raise Problem("no-such-model", f"unknown model {quoted(name)}; expected one of {known}", models=[*store.models])

    def basket(self, request: Request, name: str, catalogue: Catalogue, asked: schemas.Ask) -> Names:
        """Return the resolver of names for a request, and note the request in the log."""
        noted = request.scope["noted"]
        noted |= {"model": name, "n_basket": len(asked.basket)}
        if self.settings.log_baskets:
            noted["asked"] = asked.model_dump(exclude_defaults=True)
        return Names(catalogue, asked.unknown)

    async def run(self, name: str, names: Names, cost: float, work: Callable[[Check], Found]) -> Found:
        """Run work within the budget; count dropped items, and turn input errors into problems."""
        try:
            found = await self.budget.run(cost, work)
        except InputError as error:
            raise Problem("cannot-answer", str(error)) from None
        if names.dropped:
            self.metrics.unknown.labels(name).inc(len(names.dropped))
            found.dropped = names.dropped  # type: ignore[attr-defined]
        return found

    async def known(self, name: str, resolve: Callable[[], Found]) -> Found:
        """Return resolved names, or raise the problem for unknown items with suggestions found in another thread."""
        try:
            return resolve()
        except UnknownItems as error:
            self.metrics.unknown.labels(name).inc(len(error.items))
            raise await asyncio.to_thread(error.problem, suggest=True) from None


def create_app(settings: Settings) -> FastAPI:
    """Return the application for a source of models, loaded and watched.

    Parameters
    ----------
    settings
        What to serve, to whom, and the cost limit.

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

    service = Service(settings, LiveModelStore(settings.source, log), metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(service.store.watch(settings.poll_seconds))
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
    add_model_routes(guarded, service)
    add_store_routes(guarded, service)
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


def add_model_routes(router: APIRouter, service: Service) -> None:
    """Add the requests to one model."""
    errors: Any = {
        "tags": ["model"],
        "response_model_exclude_none": True,
        "responses": problem_responses(*OF_BODY, *OF_MODEL),
    }

    @router.post("/v1/models/{name}/recommend", summary="The best items to add to one basket or to many", **errors)
    async def recommend(
        request: Request, response: Response, name: Name, asked: schemas.AskRecommend
    ) -> schemas.Recommendations:
        served = service.model(name)
        catalogue, costs = served.model.catalogue, served.costs
        names = service.basket(request, name, catalogue, asked)
        allow = None if asked.allow is None else await service.known(name, lambda: names(asked.allow or ()))
        basket = await service.known(name, lambda: names(asked.basket))
        about = answers.about(served)
        k = min(asked.k, len(catalogue))

        def one(known: list[Label]) -> list[schemas.Suggestion]:
            return answers.recommend(served, known, asked, allow)

        def work(check_time: Check) -> schemas.Recommendations:
            if asked.baskets is None:
                return schemas.Recommendations(**about, items=one(basket))
            rows = answers.rows_of(asked.baskets, one, catalogue, asked.unknown, check_time)
            return schemas.Recommendations(**about, rows=rows)

        if asked.baskets is None:
            cost = service.budget.check(lambda n: costs.of_recommend(n, k, asked.explain), len(basket), "basket items")
        else:
            cost = _cost_of_rows(service, asked.baskets, lambda n: costs.of_recommend(n, k))
        _tag(response, served.version)
        return await service.run(name, names, cost, work)

    @router.post("/v1/models/{name}/complete", summary="A diverse set that contains the basket", **errors)
    async def complete(
        request: Request, response: Response, name: Name, asked: schemas.AskComplete
    ) -> schemas.Completion:
        served = service.model(name)
        names = service.basket(request, name, served.model.catalogue, asked)
        basket = await service.known(name, lambda: names(asked.basket))
        size = min(asked.k, len(served.model.items))
        cost = service.budget.check(served.costs.complete, size, "items (k)")
        _tag(response, served.version)
        return await service.run(name, names, cost, lambda _: answers.complete(served, basket, asked))

    @router.post("/v1/models/{name}/sample", summary="Random sets that contain the basket", **errors)
    async def sample(request: Request, response: Response, name: Name, asked: schemas.AskSample) -> schemas.Samples:
        served = service.model(name)
        names = service.basket(request, name, served.model.catalogue, asked)
        basket = await service.known(name, lambda: names(asked.basket))
        costs = served.costs
        start = costs.condition + costs.recommend(len(basket)) if basket else 0
        cost = service.budget.check(lambda n: start + n * costs.draw, asked.n, "sets (n)")
        _tag(response, served.version)
        return await service.run(name, names, cost, lambda _: answers.sample(served, basket, asked))

    @router.post("/v1/models/{name}/explain", summary="Influence of each basket item on another item", **errors)
    async def explain(
        request: Request, response: Response, name: Name, asked: schemas.AskExplain
    ) -> schemas.Explanation:
        served = service.model(name)
        names = service.basket(request, name, served.model.catalogue, asked)
        basket = await service.known(name, lambda: names(asked.basket))
        await service.known(name, lambda: answers.one_item(served.model.catalogue, asked.item))
        cost = service.budget.check(served.costs.explain, len(basket), "basket items")
        _tag(response, served.version)
        return await service.run(name, names, cost, lambda _: answers.explain(served, basket, asked))

    @router.post("/v1/models/{name}/segments", summary="Segments, with their probabilities given the basket", **errors)
    async def segments(request: Request, response: Response, name: Name, asked: schemas.Ask) -> schemas.Segments:
        served = service.model(name)
        names = service.basket(request, name, served.model.catalogue, asked)
        basket = await service.known(name, lambda: names(asked.basket))
        cost = service.budget.check(served.costs.recommend, len(basket), "basket items")
        _tag(response, served.version)

        def work(_: Check) -> schemas.Segments:
            return schemas.Segments(**answers.about(served), segments=answers.segments(served, basket))

        return await service.run(name, names, cost, work)


def _cost_of_rows(service: Service, baskets: list[list[Label]], cost: Callable[[int], float]) -> float:
    """Return the cost of all rows, or raise the problem that names how many would pass."""
    total = sum(cost(len(each)) for each in baskets)
    mean = total / len(baskets) if baskets else 0.0
    return service.budget.check(lambda n: n * mean, len(baskets), "baskets of these sizes")


def _tag(response: Response, version: str) -> None:
    response.headers["etag"] = f'"{version}"'


def add_store_routes(router: APIRouter, service: Service) -> None:
    """Add the requests to all models together."""
    errors: Any = {
        "tags": ["all models"],
        "response_model_exclude_none": True,
        "responses": problem_responses(*OF_BODY),
    }

    @router.post("/v1/recommend", summary="The best items of all models to add to one basket or to many", **errors)
    async def recommend(
        request: Request, response: Response, asked: schemas.AskStoreRecommend
    ) -> schemas.StoreRecommendations:
        store = service.now
        models, about = store.all_models, answers.about_store(store)
        answers.chosen(store, asked.categories)
        names = service.basket(request, ALL_MODELS, models.catalogue, asked)
        basket = await service.known(ALL_MODELS, lambda: names(asked.basket))
        k = min(asked.k, len(models.catalogue))

        def cost_of(n: int) -> float:
            each = sum(model.costs.of_recommend(n, k) for model in store.models.values())
            return each + (k * max(model.costs.explain(n) for model in store.models.values()) if asked.explain else 0)

        def one(known: list[Label]) -> list[schemas.Suggestion]:
            return answers.recommend_of_store(store, known, asked)

        def work(check_time: Check) -> schemas.StoreRecommendations:
            if asked.baskets is None:
                return schemas.StoreRecommendations(**about, items=one(basket))
            rows = answers.rows_of(asked.baskets, one, models.catalogue, asked.unknown, check_time)
            return schemas.StoreRecommendations(**about, rows=rows)

        if asked.baskets is None:
            cost = service.budget.check(cost_of, len(basket), "basket items")
        else:
            cost = _cost_of_rows(service, asked.baskets, cost_of)
        _tag(response, store.version)
        return await service.run(ALL_MODELS, names, cost, work)

    @router.post("/v1/complete", summary="A diverse set of items of all models that contains the basket", **errors)
    async def complete(
        request: Request, response: Response, asked: schemas.AskStoreComplete
    ) -> schemas.StoreCompletion:
        store = service.now
        names = service.basket(request, ALL_MODELS, store.all_models.catalogue, asked)
        basket = await service.known(ALL_MODELS, lambda: names(asked.basket))
        answers.check_size(asked.k, basket)
        size = min(asked.k, len(store.all_models.catalogue))
        step = sum(each.costs.recommend(size) for each in store.models.values())
        cost = service.budget.check(lambda k: max(k - len(basket), 0) * step, size, "items (k)")
        _tag(response, store.version)

        def work(check_time: Check) -> schemas.StoreCompletion:
            return answers.complete_of_store(store, basket, asked, check_time)

        return await service.run(ALL_MODELS, names, cost, work)


def add_descriptions(router: APIRouter, service: Service) -> None:
    """Add what is known of the models, and the metrics, which contain names of models."""

    @router.get("/v1/models", tags=["about"], summary="All models", responses=problem_responses())
    async def models(response: Response) -> schemas.ModelList:
        _tag(response, service.now.version)
        return answers.listed(service.now)

    errors: Any = {"tags": ["about"], "responses": problem_responses("invalid-request", *OF_MODEL)}

    @router.get("/v1/models/{name}", summary="Description of a model", **errors)
    async def model(response: Response, name: Name) -> schemas.ModelAbout:
        served = service.model(name)
        _tag(response, served.version)
        return answers.about_model(served)

    @router.get("/v1/models/{name}/items", summary="Items of a model, the most likely first", **errors)
    async def items(
        name: Name,
        search: Annotated[str, Query(max_length=200, description="Words that the item contains.")] = "",
        limit: Annotated[int, Query(ge=0, le=5000)] = 100,
    ) -> schemas.Items:
        return await asyncio.to_thread(answers.catalogue_items, service.model(name), search, limit)

    @router.get(
        "/v1/models/{name}/related",
        tags=["about"],
        summary="Substitutes and complements of an item",
        responses=problem_responses(*OF_BODY[2:], *OF_MODEL),
    )
    async def related(
        name: Name,
        item: Annotated[str, Query(max_length=schemas.MAX_NAME)],
        k: Annotated[int, Query(ge=0)] = 10,
    ) -> schemas.RelatedItems:
        served = service.model(name)
        names = Names(served.model.catalogue, "error")
        known = await service.known(name, lambda: answers.one_item(served.model.catalogue, item))
        cost = service.budget.check(lambda _: 2 * served.costs.describe, 1, "item")
        return await service.run(name, names, cost, lambda _: answers.related(served, known, k))

    @router.get("/v1/models/{name}/analysis", summary="Segments, pairs and calibration of a model", **errors)
    async def analysis(name: Name) -> schemas.ModelAnalysis:
        return await asyncio.to_thread(analysis_of_model, service.model(name))

    @router.get("/v1/analysis", tags=["about"], summary="Scores of all models", responses=problem_responses())
    async def analysis_of_all() -> schemas.StoreAnalysis:
        return analysis_of_store(service.now)

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
        found = schemas.Readiness(ready=not service.budget.is_stuck(), broken=list(service.now.broken))
        return JSONResponse(found.model_dump(), 200 if found.ready else 503)


def _page(file: FilePath) -> Any:
    async def page() -> Response:
        return FileResponse(file, headers=PAGE_HEADERS)

    return page


def _describe_problems(app: FastAPI) -> None:
    """Replace FastAPI's own errors in the OpenAPI document by problem documents."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            document = made()
            schemas_ = document["components"]["schemas"]
            schemas_["ProblemDocument"] = schemas.ProblemDocument.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas_.pop(name, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
