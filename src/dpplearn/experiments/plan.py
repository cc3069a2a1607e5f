"""Which trials make up a reproduction, and what runs each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials.authors import authors_run, run_names
from dpplearn.experiments.trials.printed import AXES, few_as_printed, growth, moments_as_printed, wishart_as_printed
from dpplearn.experiments.trials.recovery import KERNELS, recovery
from dpplearn.experiments.trials.trial import (
    Job,
    Row,
    diagonal_start,
    moments_start,
    moments_start_of_few,
    preparation,
    wishart_start,
    wishart_start_to_small_tolerance,
)

EXPERIMENTS: dict[str, Callable[[Job, Source], Row]] = {
    "wishart as printed": wishart_as_printed,
    "moments as printed": moments_as_printed,
    "moments of 2N as printed": few_as_printed,
    "growth": growth,
    "recovery": recovery,
    "preparation": preparation,
    "wishart": wishart_start,
    "wishart to 1e-6": wishart_start_to_small_tolerance,
    "moments": moments_start,
    "moments of 2N": moments_start_of_few,
    "diagonal": diagonal_start,
    "authors": authors_run,
}


@dataclass(frozen=True)
class Scale:
    """How much of everything. Trials beyond those of the first three experiments are at most `trials`, too."""

    trials: int
    small_tolerance: int  # trials that are run on to a tolerance of 1e-6
    printed: int  # trials of the algorithms as printed, all data
    few_printed: int  # the same, 2N training sets
    recovery: int  # trials of each kind of kernel, N and n
    recovery_items: tuple[int, ...]
    recovery_sets: tuple[int, ...]  # training sets per item
    growth: float  # the largest n N³ to time


FULL = Scale(25, 10, 2, 5, 10, (20, 40, 60, 80, 100), (2, 10, 100), float("inf"))
QUICK = Scale(3, 3, 1, 1, 2, (20, 40), (2, 10, 100), 50 * 200**3)
QUICK_CATEGORIES = ("strollers", "safety", "carseats", "furniture")


def plan(source: Source, categories: Sequence[str], scale: Scale) -> list[Job]:
    """Every trial, those that take longest first."""

    def each(experiment: str, trials: int) -> list[Job]:
        return [
            Job(experiment, category, trial) for trial in range(min(trials, scale.trials)) for category in categories
        ]

    return [
        *each("wishart as printed", scale.printed),
        *each("moments as printed", scale.printed),
        *each("moments of 2N as printed", scale.few_printed),
        *_growth(scale),
        *_recovery(scale),
        *each("wishart to 1e-6", scale.small_tolerance),
        *each("moments of 2N", scale.trials),
        *each("wishart", scale.trials),
        *each("moments", scale.trials),
        *each("diagonal", 1),
        *(Job("preparation", category) for category in source.categories),
        *_authors(source, categories),
    ]


def _authors(source: Source, categories: Sequence[str]) -> list[Job]:
    """Their runs are on the original registries."""
    names = run_names(source.reference) if source.folder is not None else []
    return [Job("authors", name) for name in names if name.split("_")[0] in categories]


def _growth(scale: Scale) -> list[Job]:
    points = [(axis, *point) for axis, sizes in AXES.items() for point in sizes]
    return [Job("growth", axis, 0, N, n, k) for axis, n, N, k in points if n * N**3 <= scale.growth]


def _recovery(scale: Scale) -> list[Job]:
    return [
        Job("recovery", kind, trial, N, sets * N)
        for trial in range(min(scale.recovery, scale.trials))
        for kind in KERNELS
        for N in scale.recovery_items
        for sets in scale.recovery_sets
    ]
