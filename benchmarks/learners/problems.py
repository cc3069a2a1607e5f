"""What the learners compete on: the registries, and baskets drawn from clustered kernels of growing size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.starts import INITIALISERS
from reproduction.data import CATEGORIES, Source

SHARED = Path(os.environ.get("DPPLEARN_SHARED", Path(__file__).parents[3] / "shared"))
SEED = 0
CLUSTERS = "clusters of "
SIZES = (200, 500, 1000)
N_BASKETS, N_TEST, MEAN_SIZE, CLUSTER = 50_000, 10_000, 8, 10


@dataclass(frozen=True)
class Case:
    """Baskets to learn from, deduplicated, and others to test on."""

    name: str
    train: dl.Baskets
    test: dl.Baskets

    @property
    def is_registry(self) -> bool:
        return not self.name.startswith(CLUSTERS)

    def start(self, init: str) -> SpectralDPP:
        return INITIALISERS[init](self.train, np.random.default_rng([SEED, self.train.n_items]))


def source() -> Source:
    """The original registries if they are at hand, generated ones otherwise."""
    folder = SHARED / "data" / "registries"
    return Source(folder if folder.is_dir() else None, SEED)


def problem_names() -> list[str]:
    return [*CATEGORIES, *(f"{CLUSTERS}{n_items}" for n_items in SIZES)]


@lru_cache(maxsize=1)  # the runs on a problem come one after another
def problem_of(name: str) -> Case:
    return clusters(int(name.removeprefix(CLUSTERS))) if name.startswith(CLUSTERS) else registry(name)


def registries() -> Iterator[Case]:
    return map(registry, CATEGORIES)


def registry(category: str) -> Case:
    train, test = source().split(category, 0)
    return Case(category, train.deduplicated(), test)


def clusters(n_items: int) -> Case:
    """Baskets of a DPP in which items of a cluster of ten repel strongly and others hardly."""
    rng = np.random.default_rng([SEED, n_items])
    kernel = clustered_kernel(n_items, rng)
    baskets = dl.DPP(kernel).sample(N_BASKETS + N_TEST, rng=rng)
    drawn = dl.Baskets.from_lists(baskets, n_items=n_items)
    train, test = drawn.subset(np.arange(N_BASKETS)), drawn.subset(np.arange(N_BASKETS, N_BASKETS + N_TEST))
    return Case(f"{CLUSTERS}{n_items}", train.deduplicated(), test)


def clustered_kernel(n_items: int, rng: np.random.Generator) -> SpectralDPP:
    """Features of an item: its cluster's direction and some of its own; popularities log-normal."""
    rank = 2 * n_items
    centres = np.repeat(rng.standard_normal((n_items // CLUSTER, rank)), CLUSTER, axis=0)
    features = centres + 0.5 * rng.standard_normal((n_items, rank))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features *= np.exp(0.4 * rng.standard_normal((n_items, 1)))
    odds, V = np.linalg.eigh(features @ features.T)
    low, high = 0.0, 1.0
    for _ in range(60):  # the scale at which the mean size is as asked
        middle = (low + high) / 2
        size = (middle * odds / (1 + middle * odds)).sum()
        low, high = (middle, high) if size < MEAN_SIZE else (low, middle)
    odds = np.maximum(odds, 0) * low
    return SpectralDPP(odds / (1 + odds), V)
