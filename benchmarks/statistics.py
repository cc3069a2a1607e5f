"""The statistics against the least that they can cost, against batched numpy, and against the number of baskets."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dpplearn as dl
from benchmarks.measure import Result, best_seconds
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.statistics import statistics
from dpplearn.tools.threads import one_blas_thread


def random_kernel(n_items: int) -> dl.Kernel:
    X = np.random.default_rng(0).standard_normal((n_items, n_items))
    return dl.Kernel.from_L(X @ X.T / n_items)


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


def against_numpy(k: int, n_items: int) -> list[Result]:
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
    return [Result(what, theirs / one, "×", 5 if k >= 5 else None, detail=detail)]


def gather_and_add(k: int) -> Callable[..., None]:
    """The least that statistics of sets of k items can cost: read every entry of L_Y once and add it into Delta.

    One set at a time, unrolled, with neither bounds nor signs to check: the fastest of the ways that were tried.
    """
    from numba import njit

    lines = ["def add(L, n, sets, weights, delta):", " for s in range(len(weights)):", "  w = weights[s]"]
    lines += [f"  y{i} = np.uint64(sets[{i}, s]); row{i} = y{i} * np.uint64(n)" for i in range(k)]
    lines += [f"  p = row{i} + y{j}; delta[p] += w * L[p]" for i in range(k) for j in range(i, k)]
    space: dict[str, Any] = {"np": np}
    exec("\n".join(lines), space)
    compiled: Callable[..., None] = njit(fastmath={"contract"}, error_model="numpy")(space["add"])
    return compiled


def alternately(first: Callable[[], object], second: Callable[[], object], rounds: int = 100) -> tuple[float, float]:
    """The best times of two pieces of work that take turns, so that a busy machine disturbs both."""
    pairs = [(best_seconds(first, 3), best_seconds(second, 3)) for _ in range(rounds)]
    return min(one for one, _ in pairs), min(two for _, two in pairs)


def against_the_limit(k: int, *, equal_weights: bool) -> Result:
    """Neighbours of equal weight share a logarithm; deduplicated data lie between all equal and all different."""
    kernel, baskets = random_kernel(100), equal_sizes(20_000, k, 100)
    weights = np.ones(len(baskets)) if equal_weights else np.random.default_rng(0).random(len(baskets))
    baskets = dl.Baskets(baskets.indices, baskets.offsets, weights, baskets.catalogue)
    sets = np.ascontiguousarray(baskets.by_size[0].sets.T)
    add, delta = gather_and_add(k), np.zeros(100 * 100)
    L = kernel.L.reshape(-1)
    ours, limit = alternately(lambda: statistics(kernel, baskets, threads=1), lambda: add(L, 100, sets, weights, delta))
    which = "equal" if equal_weights else "different"
    what = f"statistics, 20,000 sets of {k} from 100, {which} weights, one thread, times the gather-and-add limit"
    return Result(what, ours / limit, "×", 2.5, False, f"{ours * 1e6:.0f} µs against {limit * 1e6:.0f} µs")


def flops(k: int) -> Result:
    """Factor and inverse of a minor are k³ floating-point operations."""
    kernel, baskets = random_kernel(100), equal_sizes(4_000, k, 100)
    matrix = np.random.default_rng(0).standard_normal((1000, 1000))
    with one_blas_thread():
        ours, product = alternately(lambda: statistics(kernel, baskets, threads=1), lambda: matrix @ matrix, 5)
    detail = f"a product of 1000 × 1000 matrices on one thread: {2e-9 * 1000**3 / product:.1f} GFLOP/s"
    what = f"statistics, 4,000 sets of {k} from 100, one thread"
    return Result(what, 4e-6 * k**3 / ours, "GFLOP/s", detail=detail)


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
    counts = [10_000, 100_000, 1_000_000, 5_000_000]
    figures = []
    for n in counts:
        command = [sys.executable, "-c", f"from benchmarks.statistics import one_size; one_size({n})"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        figures.append([float(word) for word in output.split()])
    times = [taken for taken, _ in figures]
    exponent = np.polyfit(np.log(counts[1:]), np.log(times[1:]), 1)[0]
    detail = ", ".join(f"{n:,}: {taken * 1e3:.1f} ms" for n, taken in zip(counts, times, strict=True))
    return [
        Result("statistics, exponent in n from 10⁵ to 5·10⁶ baskets", float(exponent), "", 1.1, False, detail),
        Result("memory for 5,000,000 baskets", figures[-1][1], "GB", 4, False),
    ]


def run() -> list[Result]:
    results = [against_the_limit(k, equal_weights=equal) for equal in (True, False) for k in range(2, 11)]
    results += [flops(k) for k in (12, 20, 32, 50)]
    results += [result for n_items in (100, 500) for k in (2, 5, 7, 10, 20) for result in against_numpy(k, n_items)]
    return results + growth()
