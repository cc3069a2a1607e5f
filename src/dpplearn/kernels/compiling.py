"""The compiled inner loops, a module each in the folder of their family. numba is slow to load, so they are loaded when
first used."""

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
def loops(family: str, name: str) -> Any:
    """One of the modules. One thread at a time: loading numba in several at once may make them wait for ever."""
    with _one_at_a_time:
        return import_module(f"dpplearn.kernels.{family}.compiled.{name}")


@contextmanager
def few_answers() -> Iterator[None]:
    """Within, what single baskets ask is answered without the loops where it can be: loading them takes longer than
    hundreds of answers by numpy, which a program that gives one and ends would wait for."""
    before = _few_answers.set(True)
    try:
        yield
    finally:
        _few_answers.reset(before)


def worth_loading() -> bool:
    """Whether there will be more than a few answers."""
    return not _few_answers.get()
