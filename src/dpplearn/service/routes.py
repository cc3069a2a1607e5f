"""Routes of the service: models under /v1, health checks and metrics."""

# Annotations are evaluated here, not later: FastAPI reads what a route takes from them.
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from dpplearn.service import schemas, shelf_answers
from dpplearn.service.about import about_model, catalogue_items, listed
from dpplearn.service.analysis import analysis_of_model, analysis_of_shelf
from dpplearn.service.answers import QUESTIONS, Json, Question
from dpplearn.service.problems import KINDS, MEDIA_TYPE
from dpplearn.service.service import Service, answer

Name = Annotated[str, Path(description="What the model is called, as /v1/models lists it.")]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """As the documentation has them."""
    told: dict[int | str, list[str]] = {}
    for kind in ("no-key", *kinds):
        status, title = KINDS[kind]
        told.setdefault(status, []).append(title)
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
    return {
        status: {"description": "; ".join(titles), "content": {MEDIA_TYPE: schema}} for status, titles in told.items()
    }


OF_BODY = ("not-json", "too-large", "invalid-request", "unknown-item", "cannot-answer")
OF_MODEL = ("no-such-model", "model-broken")


def add_questions(router: APIRouter, service: Service) -> None:
    """Whatever one model can be asked, and all together."""
    for name, question in QUESTIONS.items():
        _add_question(router, service, name, question)

    @router.post(
        "/v1/models/{name}/recommend/batch",
        tags=["models"],
        summary="Many baskets at once, one answer or one problem per row",
        response_model=schemas.Batch,
        responses=problems(*OF_BODY, *OF_MODEL),
    )
    async def recommend_batch(request: Request, name: Name, asked: schemas.AskBatch) -> Response:
        return await service.ask_batch(request, name, asked)

    @router.post(
        "/v1/recommend",
        tags=["shelf"],
        summary="The best items of all models to add to a mixed basket",
        response_model=schemas.ShelfRecommendations,
        responses=problems(*OF_BODY),
    )
    async def recommend_of_all(request: Request, asked: schemas.AskShelf) -> Response:
        return await service.ask_shelf(request, shelf_answers.recommend, asked, quick=True)

    @router.post(
        "/v1/complete",
        tags=["shelf"],
        summary="A diverse set of items of all models that holds the basket",
        response_model=schemas.ShelfCompletion,
        responses=problems(*OF_BODY),
    )
    async def complete_of_all(request: Request, asked: schemas.AskCompleteShelf) -> Response:
        return await service.ask_shelf(request, shelf_answers.complete, asked, quick=False)

    @router.post(
        "/v1/recommend/batch",
        tags=["shelf"],
        summary="Many mixed baskets at once",
        response_model=schemas.ShelfBatch,
        responses=problems(*OF_BODY),
    )
    async def recommend_of_all_batch(request: Request, asked: schemas.AskBatch) -> Response:
        return await service.ask_shelf_batch(request, asked)


def _add_question(router: APIRouter, service: Service, what: str, question: Question) -> None:
    async def ask(request: Request, name: Name, asked: question.request) -> Response:  # type: ignore[name-defined]
        return await service.ask_model(request, name, what, asked)

    router.post(
        f"/v1/models/{{name}}/{what}",
        tags=["models"],
        summary=question.about,
        operation_id=what,
        response_model=question.reply,
        responses=problems(*OF_BODY, *OF_MODEL),
    )(ask)


def add_knowledge(router: APIRouter, service: Service) -> None:
    """What is served, and how it fares."""

    @router.get(
        "/v1/models", tags=["about"], summary="All models", response_model=schemas.ModelList, responses=problems()
    )
    async def models() -> Response:
        return answer(listed(service.now), service.now.version)

    @router.get(
        "/v1/models/{name}/items",
        tags=["about"],
        summary="Items of a model, the likeliest first",
        response_model=schemas.Items,
        responses=problems("invalid-request", *OF_MODEL),
    )
    async def items(
        name: Name,
        search: Annotated[str, Query(max_length=200, description="Words that the item has all of.")] = "",
        limit: Annotated[int, Query(ge=0, le=5000)] = 100,
    ) -> Response:
        served = service.model(name)
        return answer(catalogue_items(served, search, limit), served.version)

    @router.get(
        "/v1/models/{name}/analysis",
        tags=["about"],
        summary="Segments, pairs of items and calibration of a model",
        response_model=dict[str, Any],
        responses=problems(*OF_MODEL),
    )
    async def analysis(name: Name) -> Response:
        served = service.model(name)
        found: Json = await service.in_thread(lambda: analysis_of_model(served))
        return answer(found, served.version)

    @router.get(
        "/v1/analysis",
        tags=["about"],
        summary="How each model fares against its baselines",
        response_model=dict[str, Any],
        responses=problems(),
    )
    async def analysis_of_all() -> Response:
        return answer(analysis_of_shelf(service.now), service.now.version)

    @router.get(
        "/v1/models/{name}",
        tags=["about"],
        summary="What is known of a model",
        response_model=schemas.ModelAbout,
        responses=problems(*OF_MODEL),
    )
    async def model(name: Name) -> Response:
        served = service.model(name)
        return answer(about_model(served), served.version)


def add_metrics(router: APIRouter, service: Service) -> None:
    """Add the metrics. They contain names of models, so they belong to the guarded routes."""

    @router.get(
        "/metrics",
        tags=["health"],
        summary="Counts, latencies, versions and ages of models, for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems()},
    )
    async def metrics() -> Response:
        text = await service.in_thread(lambda: service.metrics.text(service.current))
        return Response(text, headers={"content-type": METRICS_TYPE})


def add_health(app: FastAPI, service: Service) -> None:
    """Add the health checks, which need no key."""

    @app.get("/healthz", tags=["health"], summary="Whether the process answers", response_model=schemas.Health)
    async def live() -> Response:
        return Response(b'{"live":true}', media_type="application/json")

    @app.get("/readyz", tags=["health"], summary="Whether models are loaded", response_model=schemas.Health)
    async def ready() -> Response:
        return Response(b'{"ready":true}', media_type="application/json")
