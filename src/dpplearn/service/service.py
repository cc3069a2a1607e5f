"""Service: from a request to an answer, whatever way it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from dpplearn.errors import InputError
from dpplearn.service import schemas as ask
from dpplearn.service import shelf_answers
from dpplearn.service.answers import QUESTIONS, Json, UnknownItems
from dpplearn.service.metrics import Metrics
from dpplearn.service.problems import Problem, invalid, shortened
from dpplearn.service.settings import Settings
from dpplearn.service.shelves import PreparedShelf, ServedModel
from dpplearn.service.watching import Current

THREADS = 4  # for what takes long
QUICK_ITEMS = 3000  # of a model, up to which a recommendation takes a few milliseconds at most
WHOLE_SHELF = "(shelf)"  # in counts


class Service:
    """What a worker has: the shelf of now, its counts, and threads for what takes long."""

    def __init__(self, settings: Settings, current: Current, metrics: Metrics) -> None:
        self.settings, self.limits = settings, settings.limits
        self.current, self.metrics = current, metrics
        self._threads = ThreadPoolExecutor(THREADS, "answers")

    @property
    def now(self) -> PreparedShelf:
        return self.current.now

    def model(self, name: str) -> ServedModel:
        now = self.now
        if name in now.models:
            return now.models[name]
        if name in now.served.broken:
            raise Problem(
                "model-broken", f"the file of {shortened(name)} cannot be used; the log of the service says why"
            )
        known = ", ".join(map(shortened, now.models))
        raise Problem(
            "no-such-model", f"there is no model {shortened(name)}; there are {known}", models=list(now.models)
        )

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def ask_model(self, request: Request, name: str, what: str, asked: Any) -> Response:
        """One question to one model."""
        served, question = self.model(name), QUESTIONS[what]
        self._check(asked)
        self._note(request, name, asked)
        quick = question.quick and not getattr(asked, "explain", False) and len(served.model.items) <= QUICK_ITEMS
        found = await self._answered(lambda: question.answer(served, asked), name, quick)
        if what == "recommend":
            self.metrics.recommended.labels(name).inc(len(found["items"]))
        self._count_ignored(name, found)
        return answer({"model": name, "version": served.version, **found}, served.version)

    async def ask_shelf(
        self, request: Request, answered: Callable[[PreparedShelf, Any], Json], asked: Any, *, quick: bool
    ) -> Response:
        """One question to all models."""
        now = self.now
        self._check(asked)
        self._note(request, WHOLE_SHELF, asked)
        found = await self._answered(lambda: answered(now, asked), WHOLE_SHELF, quick and not asked.explain)
        if answered is shelf_answers.recommend:
            self._count_recommended(found["items"])
        self._count_ignored(WHOLE_SHELF, found)
        return answer({"version": now.version, "versions": now.served.versions, **found}, now.version)

    async def ask_batch(self, request: Request, name: str, asked: ask.AskBatch) -> Response:
        """Many rows to one model, each with its answer or its error."""
        served, answered = self.model(name), QUESTIONS["recommend"].answer
        self._note(request, name, None)

        def row(each: Any) -> Json:
            checked = self._row(ask.AskBatchRow, each)
            found = answered(served, ask.AskRecommend.model_construct(**dict(checked), explain=False))
            self.metrics.recommended.labels(name).inc(len(found["items"]))
            return found

        rows = await self.in_thread(lambda: self._rows(asked, row, name))
        return answer({"model": name, "version": served.version, "rows": rows}, served.version)

    async def ask_shelf_batch(self, request: Request, asked: ask.AskBatch) -> Response:
        """The same to all models."""
        now = self.now
        self._note(request, WHOLE_SHELF, None)

        def row(each: Any) -> Json:
            checked = self._row(ask.AskShelfRow, each)
            found = shelf_answers.recommend(now, ask.AskShelf.model_construct(**dict(checked), explain=False))
            self._count_recommended(found["items"])
            return found

        rows = await self.in_thread(lambda: self._rows(asked, row, WHOLE_SHELF))
        return answer({"version": now.version, "versions": now.served.versions, "rows": rows}, now.version)

    def _rows(self, asked: ask.AskBatch, answered: Callable[[Any], Json], name: str) -> list[Json]:
        if len(asked.rows) > self.limits.batch:
            raise _too_many("rows", len(asked.rows), self.limits.batch)
        found = []
        for each in asked.rows:
            try:
                found.append(answered(each))
            except UnknownItems as error:
                self.metrics.unknown.labels(name).inc(len(error.items))
                found.append({"problem": error.problem().document()})
            except InputError as error:
                found.append({"problem": Problem("cannot-answer", str(error)).document()})
            except Problem as problem:
                found.append({"problem": problem.document()})
        return found

    def _row(self, kind: type[BaseModel], row: Any) -> BaseModel:
        try:
            checked = kind.model_validate(row)
        except ValidationError as error:
            raise invalid(error.errors(include_url=False, include_context=False)) from None
        self._check(checked)
        return checked

    async def _answered(self, work: Callable[[], Json], name: str, quick: bool) -> Json:
        try:
            return work() if quick else await self.in_thread(work)
        except UnknownItems as error:
            self.metrics.unknown.labels(name).inc(len(error.items))
            raise await self.in_thread(error.problem) from None
        except InputError as error:
            raise Problem("cannot-answer", str(error)) from None

    def _check(self, asked: Any) -> None:
        """That it does not ask for more than is given."""
        limits = self.limits
        for name in ("basket", "allow", "deny", "categories"):
            items = getattr(asked, name, None)
            if items is not None and len(items) > limits.basket:
                raise _too_many(name, len(items), limits.basket)
        for name, most in (("k", limits.k), ("n", limits.batch)):
            value = getattr(asked, name, None)
            if value is not None and value > most:
                raise Problem("invalid-request", f"{name} is {shortened(value)}; expected {most} or less")
        explains = getattr(asked, "explain", False) or isinstance(asked, ask.AskExplain)
        if explains and len(asked.basket) > limits.explain:
            raise _too_many("basket, with an explanation,", len(asked.basket), limits.explain)

    def _note(self, request: Request, name: str, asked: Any) -> None:
        """For the log."""
        noted = request.scope["noted"]
        noted["model"] = name
        basket = getattr(asked, "basket", None)
        if basket is not None:
            noted["n_basket"] = len(basket)
        if self.settings.log_baskets and asked is not None:
            noted["asked"] = asked.model_dump(exclude_defaults=True)

    def _count_ignored(self, name: str, found: Json) -> None:
        if found.get("ignored"):
            self.metrics.unknown.labels(name).inc(len(found["ignored"]))

    def _count_recommended(self, items: list[Json]) -> None:
        for each in items:
            self.metrics.recommended.labels(each["category"]).inc()


def _too_many(name: str, n: int, most: int) -> Problem:
    return Problem("invalid-request", f"{name} has {n} entries; expected {most} or fewer: send less at a time")


def answer(content: Json, version: str) -> Response:
    """As JSON, the version as its tag."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, headers={"etag": f'"{version}"'}, media_type="application/json")
