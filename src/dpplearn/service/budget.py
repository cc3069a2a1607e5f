"""The cost budget: estimate a request in CPU-seconds before it runs, and bound what runs at once.

No flop count fits all operations, so the cost of each is measured when a model is loaded, at a few basket sizes, and
interpolated. Estimates are meant to be right within a factor of about 2.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.service.errors import Problem
from dpplearn.utils.threads import one_blas_thread

SIZES = (1, 5, 10, 11, 50, 200)  # measured basket sizes; explanations are exact up to 10 items
MAX_MEASUREMENT = 0.02  # CPU-seconds; a larger size is not measured after one that took longer
MIN_COMPILATION = 0.005  # CPU-seconds; loading compiled code or compiling takes longer
MEASURED_K = 100  # items of an answer in measurements
CHEAP = 0.02  # CPU-seconds below which a request does not wait behind expensive ones
MAX_EXPENSIVE = 2  # expensive requests in flight per worker: one runs, one waits
NICENESS = 10  # of the thread for expensive requests
STUCK_SECONDS = 30.0  # after which a worker with a request that has not ended is not ready
OVERRUN = 4.0  # multiple of its limit after which a request is stopped between two rows

Check = Callable[[], None]  # called between rows; raises when time is up
Found = TypeVar("Found")


@dataclass(frozen=True)
class Curve:
    """CPU-seconds by basket size: linear in log-log scale between measured sizes, cubic beyond the largest."""

    sizes: Floats
    seconds: Floats
    max_size: int  # of a basket: larger ones do not exist

    @classmethod
    def measure(cls, operation: Callable[[int], object], max_size: int) -> Curve:
        """Run an operation at the sizes up to `max_size` that it can answer."""
        found: list[tuple[int, float]] = []
        for size in sorted({min(size, max_size) for size in SIZES} - {0}):
            if found and found[-1][1] > MAX_MEASUREMENT:
                break
            seconds = cpu_seconds(lambda n=size: operation(n))  # type: ignore[misc]
            if not seconds:  # a set of this size is impossible
                break
            found.append((size, seconds))
        sizes, times = np.array(found or [(1, 1e-4)]).T
        return cls(sizes, times, max_size)

    def __call__(self, size: float) -> float:
        log_size = np.log(max(min(size, self.max_size), 1))
        inside = np.interp(log_size, np.log(self.sizes), np.log(self.seconds))
        return float(np.exp(inside + 3 * max(log_size - np.log(self.sizes[-1]), 0)))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of this thread; 0 for what the model cannot do.

    The first run after an installation includes compilation, which takes up to seconds. A run that is long enough for
    that is therefore repeated, and the shorter time counts.
    """
    times: list[float] = []
    with suppress(InputError):
        for _ in range(2):
            began = time.thread_time()
            work()
            times.append(time.thread_time() - began)
            if times[0] < MIN_COMPILATION:
                break
    return min(times, default=0.0)


@dataclass(frozen=True)
class Costs:
    """Measured costs of one model."""

    recommend: Callable[[float], float]
    explain: Callable[[float], float]
    complete: Callable[[float], float]  # by the size of the result
    condition: float  # one conditioning on a basket
    draw: float  # one set
    relate: float  # substitutes and complements of an item
    compare: float  # an unknown name with the catalogue

    @classmethod
    def measure(cls, model: DPP | Mixture) -> Costs:
        """Measure every operation on the most likely items."""
        order = np.argsort(-model.marginals(), kind="stable")
        items: Sequence[Any] = [model.items[i] for i in order]
        most = len(items) - 1
        with one_blas_thread():
            return cls(
                Curve.measure(lambda n: model.recommend(items[:n], MEASURED_K), most),
                Curve.measure(lambda n: model.explain(items[:n], items[n]), most),
                Curve.measure(lambda n: model.complete([], n), most + 1),
                cpu_seconds(lambda: model.given(include=items[:1])),
                cpu_seconds(lambda: model.sample(1, rng=0, threads=1)),
                2 * cpu_seconds(lambda: model.substitutes(items[0], 1)),
                cpu_seconds(lambda: model.catalogue.close_to(f"{items[0]}?")),
            )

    @classmethod
    def of_all(cls, parts: Sequence[Costs]) -> Costs:
        """Return the costs of all models together, which complete sets by one recommendation per item."""

        def recommend(n_basket: float) -> float:
            return sum(each.recommend(n_basket) for each in parts)

        def explain(n_basket: float) -> float:
            return max(each.explain(n_basket) for each in parts)

        compare = sum(each.compare for each in parts)
        return cls(recommend, explain, lambda k: k * recommend(k), condition=0, draw=0, relate=0, compare=compare)

    def of_recommend(self, n_basket: int, k: int, explain: bool = False) -> float:
        """Return the cost of k recommendations for one basket."""
        each = self.recommend(n_basket) * max(k / MEASURED_K, 1)
        return each + (k * self.explain(n_basket) if explain else 0)

    def of_sample(self, n_basket: int, n: int) -> float:
        """Return the cost of n draws."""
        return n * self.draw + (self.condition + self.recommend(n_basket) if n_basket else 0)


class Budget:
    """Limits of one worker process: the cost of a request, and what is in flight.

    Cheap requests run in one thread, expensive ones in another of lower priority, so that nothing runs on the event
    loop and an ordinary recommendation does not wait behind an expensive request. Compiled code releases the GIL.
    """

    def __init__(self, max_cost: float) -> None:
        self.max_cost = max_cost
        self._cheap = ThreadPoolExecutor(1, "cheap")
        self._expensive = ThreadPoolExecutor(1, "expensive", initializer=_lower_priority)
        self._in_flight: dict[object, tuple[float, float]] = {}  # time of arrival, cost

    def check(self, cost: Callable[[int], float], size: int, what: str) -> float:
        """Return cost(size), or raise a problem that names the largest size that would pass."""
        found = cost(size)
        if found <= self.max_cost:
            return found
        passes = bisect_right(range(1, size), self.max_cost, key=cost)
        raise Problem(
            "too-expensive",
            f"{size} {what} would take about {found:.2g} CPU-seconds, of {self.max_cost:g} allowed; up to {passes} "
            f"{what} would pass, or ask for less at a time",
            largest=passes,
            cost=found,
            limit=self.max_cost,
        )

    async def run(self, cost: float, work: Callable[[Check], Found]) -> Found:
        """Run `work` in a thread; it is given a function to call between rows, which raises when time is up."""
        costs = [each for _, each in self._in_flight.values()]
        if cost > CHEAP:
            thread, full = self._expensive, sum(each > CHEAP for each in costs) >= MAX_EXPENSIVE
        else:
            cheap = sum(each for each in costs if each <= CHEAP)
            thread, full = self._cheap, cheap + cost > self.max_cost + CHEAP
        if full:
            raise Problem("busy", "the service is busy; try again in a second, or start more workers")
        token = object()
        self._in_flight[token] = time.monotonic(), cost
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, self._limited, work)
        finally:
            del self._in_flight[token]

    def _limited(self, work: Callable[[Check], Found]) -> Found:
        began = time.thread_time()

        def check_time() -> None:
            if time.thread_time() - began > OVERRUN * self.max_cost:
                raise Problem("busy", f"stopped after {OVERRUN * self.max_cost:g} CPU-seconds; ask for less at a time")

        with one_blas_thread():
            return work(check_time)

    def is_stuck(self) -> bool:
        """Return whether a request has not ended for a long time."""
        return any(time.monotonic() - began > STUCK_SECONDS for began, _ in self._in_flight.values())


def _lower_priority() -> None:
    """Lower the priority of this thread, so that health checks and cheap requests go first."""
    with suppress(AttributeError, OSError):  # not on every system
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
