"""What a fit will take: memory, which must be there, and time, which is told beforehand where it is long."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputWarning
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.prior import SMOOTHING, how_many
from dpplearn.fitting.prior_choice import ENOUGH, FOLDS
from dpplearn.kernels.independent import chances
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.learners.factored.plan import Plan
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.learners.registry import FACTORED
from dpplearn.tools.memory import NUMBER, check_memory, in_bytes
from dpplearn.tools.threads import one_blas_thread, thread_count
from dpplearn.tools.words import count, duration

LONG = 60.0  # seconds, from which on a fit is told to be long
SURELY = 30  # a machine that is slower than ours by more than this is not thought of
PROBE, PROBED_SETS, TIMES = 300, 20_000, 3  # rows of a matrix and sets that are timed, the best of three
DECOMPOSITION, WORK = 1e-9, 5e-9  # seconds on our machine: of eigenvectors over N³, and of a pass over `Blocks.work`
STARTING = 2.0  # eigendecompositions before the first step
FOLD_EVALUATIONS, STRENGTHS_LEARNED = 80, 6  # of the statistics, to a fold and strength; strengths, without infinity


class Effort(NamedTuple):
    """Seconds and bytes."""

    seconds: float
    memory: float


def fit_memory(data: AnyBaskets, options: FitOptions) -> float:
    """Bytes at the peak. While a prior is chosen, several models are learned at a time."""
    if options.how is FACTORED and isinstance(data, Baskets):
        return _plan(data, options).memory
    at_once = min(thread_count(options.threads), FOLDS) if options.strength == "auto" else 1
    cost = options.how.cost
    return float(NUMBER * data.n_items**2 * (cost.matrices + cost.matrices_of_segment * options.n_segments) * at_once)


def _plan(data: Baskets, options: FitOptions) -> Plan:
    asked = options.n_segments, options.n_columns, options.n_pairs
    return Plan.of(FactoredProblem(data, options.threads, False, *asked))


def check_fit_memory(data: AnyBaskets, options: FitOptions) -> None:
    """Refuse a model that there is no memory to learn."""
    n_items = data.n_items
    kind = {"dpp": "DPP"}.get(options.how.model, options.how.model)
    kernel = "" if options.how is FACTORED else f" (a kernel of {in_bytes(NUMBER * n_items**2)})"
    what = f"learning a {kind} of {count(n_items, 'item')}{kernel}"
    by = f" by {options.how.name!r}" if options.how.model == "dpp" else f" and {options.n_segments} segments"
    check_memory(fit_memory(data, options), what + by, "keep the most frequent items alone")


class Speed(NamedTuple):
    """Seconds: of finding the eigenvectors of an N×N matrix, of a pass over baskets before the first of them, and over
    `Blocks.work`."""

    decomposition: float
    before_sets: float
    work: float


def fit_effort(data: AnyBaskets, options: FitOptions) -> Effort:
    """As far as it can be told beforehand: to about a factor of three. Nothing is measured where it cannot be long."""

    if options.how is FACTORED and isinstance(data, Baskets):
        plan = _plan(data, options)
        surely_short = plan.seconds * options.restarts < LONG / SURELY
        slower = 1.0 if surely_short else decomposition_seconds(PROBE) / (DECOMPOSITION * PROBE**3)
        return Effort(plan.seconds * options.restarts * slower, plan.memory)

    def seconds(speed: Speed) -> float:
        return _seconds(data, options, speed)

    found = seconds(Speed(DECOMPOSITION * data.n_items**3, 0.0, WORK))
    if found >= LONG / SURELY:
        found = seconds(Speed(decomposition_seconds(data.n_items), *pass_seconds(data, options.threads)))
    return Effort(found, fit_memory(data, options))


def _seconds(data: AnyBaskets, options: FitOptions, speed: Speed) -> float:
    cost, prior, threads = options.how.cost, options.strength, thread_count(options.threads)
    if prior == np.inf:
        return speed.before_sets + speed.work * work_of(data)
    work = work_of(data) + (_work_of_prior(data) if prior else 0)
    beside = cost.decompositions if prior or cost.narrow is None else cost.narrow
    beside += cost.of_segment * options.n_segments
    evaluation = speed.before_sets + speed.work * work + beside * speed.decomposition
    around = (STARTING + cost.at_the_end) * speed.decomposition
    runs = options.restarts * (around + min(cost.evaluations, 1.2 * options.max_iter + 1) * evaluation)
    if prior != "auto":
        return runs
    folds = min(FOLDS, -(-ENOUGH * FOLDS // max(int(data.total_weight), 1)))
    at_once = min(threads, folds)  # each with a thread, where a run has all
    return runs + STRENGTHS_LEARNED * -(-folds // at_once) * at_once * (around + FOLD_EVALUATIONS * evaluation)


def work_of(data: AnyBaskets) -> int:
    """As `Blocks.work` has it."""
    return data.blocks.work if isinstance(data, Baskets) else int(data.sum(work_of))


def _work_of_prior(data: AnyBaskets) -> float:
    """As `Blocks.work` has it. Sets of the prior are as large as independent items make them, the larger the more."""
    p = chances(data.frequencies(), data.total_weight, smoothing=SMOOTHING)
    size = float(p.sum()) + 1  # a set is drawn in proportion to its pairs
    return how_many(p) * size**2 * (10 + size) / 20


class Around(NamedTuple):
    """Seconds that the start of a run is expected to take, and its end."""

    starting: float
    ending: float


NO_TIME = Around(0.0, 0.0)


def around_a_run(n_items: int, options: FitOptions) -> Around:
    if options.how is FACTORED:
        return NO_TIME
    one = decomposition_seconds(n_items)
    return Around(one, options.how.cost.at_the_end * one)


def decomposition_seconds(n_items: int) -> float:
    """Of finding the eigenvectors of an N×N matrix: of a smaller one timed, times the cube of how much larger it is.

    With one thread, as several on a busy machine may take a hundred times as long.
    """
    size = min(n_items, PROBE)
    matrix = np.random.default_rng(0).standard_normal((size, size))
    with one_blas_thread():
        return _timed(lambda: np.linalg.eigh(matrix + matrix.T)) * (n_items / size) ** 3


def pass_seconds(data: AnyBaskets, threads: int | None) -> tuple[float, float]:
    """Of the statistics: of no basket, and over `Blocks.work`, of many that are timed; of parts, of all once."""
    if isinstance(data, Parts):
        return 0.0, _timed(partial(sums_under_L, np.eye(data.n_items), data, threads), 1) / max(work_of(data), 1)
    some = data.subset(np.linspace(0, len(data) - 1, PROBED_SETS).astype(np.int64))  # of few, each more than once
    L, none = np.eye(data.n_items), data.subset([])
    of_none, of_some = (_timed(partial(sums_under_L, L, sets, threads)) for sets in (none, some))
    return of_none, max(of_some - of_none, 0) / max(some.blocks.work, 1)


def _timed(work: Callable[[], object], often: int = TIMES) -> float:
    times = []
    for _ in range(often):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def tell_if_long(effort: Effort, what: str, instead: str) -> None:
    """A warning, which the command line and notebooks show."""
    if effort.seconds >= LONG:
        told = f"{what} will take about {duration(effort.seconds)}, and up to {in_bytes(effort.memory)} of memory"
        warnings.warn(f"{told}; {instead}", LongWork, stacklevel=3)


class LongWork(InputWarning):
    """It will take long; nothing is wrong."""


@contextmanager
def untold() -> Iterator[None]:
    """Within, no fit says that it will take long: the whole that it is a part of has said so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongWork)
        yield
