"""Inner loops compiled by numba. numba is slow to import, so `loops` imports a module when it is first used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

_one_at_a_time = Lock()
_few_answers: ContextVar[bool] = ContextVar("few answers", default=False)


@cache
def loops(name: str) -> Any:
    """Return a module of this package. A lock prevents deadlocks of several threads that import numba."""
    with _one_at_a_time:
        return import_module(f"dpplearn.distributions.compiled.{name}")


@contextmanager
def few_answers() -> Iterator[None]:
    """Answer queries without compiled loops where possible: importing them takes longer than hundreds of answers by
    numpy."""
    before = _few_answers.set(True)
    try:
        yield
    finally:
        _few_answers.reset(before)


def worth_loading() -> bool:
    """Return whether importing compiled loops pays off."""
    return not _few_answers.get()
