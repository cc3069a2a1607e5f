"""The statistics against batched numpy, and against the number of baskets."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np

import dpplearn as dl
from benchmarks.measure import Result, best_seconds
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import statistics

SIZES, N_ITEMS = (2, 5, 7, 10, 20), (100, 500)
COUNTS = (10_000, 100_000, 1_000_000, 5_000_000)


def random_kernel(n_items: int) -> SpectralDPP:
    X = np.random.default_rng(0).standard_normal((n_items, n_items))
    return SpectralDPP.from_L(X @ X.T / n_items)


def equal_sizes(n: int, k: int, n_items: int) -> dl.Baskets:
    rng = np.random.default_rng(k)
    sets = np.array([rng.choice(n_items, k, replace=False) for _ in range(n)])
    return dl.Baskets.from_pairs(np.repeat(np.arange(n), k), sets.reshape(-1), n, Catalogue.numbered(n_items))


def batched(L: np.ndarray, sets: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """What one would write with an array library: gather all minors, batched log det and inverse, scatter."""
    n = len(L)
    minors = L[sets[:, :, None], sets[:, None, :]]
    places = sets[:, :, None].astype(np.int64) * n + sets[:, None, :]
    inverses = weights[:, None, None] * np.linalg.inv(minors)
    delta = np.bincount(places.ravel(), inverses.ravel(), minlength=n * n).reshape(n, n)
    return float(weights @ np.linalg.slogdet(minors)[1]), delta


def against_numpy(k: int, n_items: int) -> Result:
    kernel, baskets = random_kernel(n_items), equal_sizes(20_000, k, n_items)
    sets = baskets.by_size[0].sets
    logdet, delta = batched(kernel.L, sets, baskets.weights)
    ours = statistics(kernel, baskets)
    np.testing.assert_allclose(ours.logdet, logdet, rtol=1e-10)
    np.testing.assert_allclose(ours.delta, delta, rtol=1e-8, atol=1e-8)
    theirs = best_seconds(lambda: batched(kernel.L, sets, baskets.weights), 9)
    one = best_seconds(lambda: statistics(kernel, baskets, threads=1), 25)
    all_threads = best_seconds(lambda: statistics(kernel, baskets), 25)
    detail = f"{one * 1e3:.2f} ms (all threads {all_threads * 1e3:.2f}) against {theirs * 1e3:.1f} ms"
    what = f"statistics, 20,000 sets of {k} from {n_items}, one thread, times faster than batched numpy"
    return Result(what, theirs / one, "×", 5 if k >= 5 else None, detail=detail)


def many_baskets(n: int) -> dl.Baskets:
    """n baskets of 1 to 10 of 100 items, made without a Python loop."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 11, size=n)
    rows = np.repeat(np.arange(n, dtype=np.int64), sizes)
    start = np.repeat(rng.integers(0, 100, size=n), sizes)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return dl.Baskets.from_pairs(rows, (start + place * 7) % 100, n, Catalogue.numbered(100))


def one_size(n: int) -> None:
    """In a process of its own, so that the peak of memory is that of n baskets: seconds and gigabytes."""
    baskets, kernel = many_baskets(n), random_kernel(100)
    taken = best_seconds(lambda: statistics(kernel, baskets), 2)
    print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def growth() -> list[Result]:
    found = []
    for n in COUNTS:
        command = [sys.executable, "-c", f"from benchmarks.statistics import one_size; one_size({n})"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found.append([float(word) for word in output.split()])
    times = [taken for taken, _ in found]
    exponent = np.polyfit(np.log(COUNTS[1:]), np.log(times[1:]), 1)[0]
    detail = ", ".join(f"{n:,}: {taken * 1e3:.1f} ms" for n, taken in zip(COUNTS, times, strict=True))
    return [
        Result("statistics, exponent in n from 10⁵ to 5·10⁶ baskets", float(exponent), "", 1.1, False, detail),
        Result("memory for 5,000,000 baskets", found[-1][1], "GB", 4, False),
    ]


def run() -> list[Result]:
    return [*(against_numpy(k, n_items) for n_items in N_ITEMS for k in SIZES), *growth()]
