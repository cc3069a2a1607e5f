"""The compiled inner loops, a module each in the folder of their family. numba is slow to load, so they are loaded when
first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

_one_at_a_time = Lock()


@cache
def loops(family: str, name: str) -> Any:
    """One of the modules. One thread at a time: loading numba in several at once may make them wait for ever."""
    with _one_at_a_time:
        return import_module(f"dpplearn.kernels.{family}.compiled.{name}")
