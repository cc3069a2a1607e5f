"""Timing, and results with their targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One measured number and its target."""

    what: str
    figure: float
    unit: str
    target: float | None = None
    at_least: bool = True  # whether the target is a floor or a ceiling
    detail: str = ""

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.figure >= self.target if self.at_least else self.figure <= self.target


def best_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several times, after one warm-up call."""
    work()
    return min(seconds(work) for _ in range(repeats))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
