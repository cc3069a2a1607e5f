"""What an evaluation over parts costs here and with worker processes. `python -m benchmarks.cluster [BASKETS]`.

CPU time, and not wall time, is what counts where there are fewer cores than workers, or other work beside.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import duckdb
import numpy as np

import dpplearn as dl
from dpplearn.kernels.nonsymmetric.statistics import minor_sums, segment_sums
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.tools.cluster import HeldByWorkers, packed

BASKETS, PARTS, ITEMS_PER_BASKET = 2_000_000, 8, 5
CATALOGUES = (50, 100, 300)
WORKERS = (1, 2, 4)
SEGMENTS = 10
TIMES = 5


class Cost(NamedTuple):
    """Of one evaluation: seconds of wall time, of CPU in the workers, and of CPU in this process, where the scheduler
    is as well."""

    wall: float
    workers: float
    here: float


def write_parts(folder: Path, n_baskets: int, n_items: int) -> str:
    """Baskets of up to five items, some far more frequent than others, as many in each file."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for part in range(PARTS):
            rows = n_baskets // PARTS * ITEMS_PER_BASKET
            connection.execute(f"""
                COPY (SELECT DISTINCT i // {ITEMS_PER_BASKET} AS basket,
                    CAST(floor({n_items} * power(hash(i + {part * rows}) % 1000000 / 1e6, 2)) AS INT) AS item
                    FROM range({rows}) t(i))
                TO '{folder}/part-{part}.parquet' (FORMAT parquet)
            """)
    return f"{folder}/part-*.parquet"


def asked(n_items: int) -> dict[str, Callable[[dl.Parts], object]]:
    """What one evaluation asks for: of a DPP, and of a mixture."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, n_items))
    L, C = X @ X.T / n_items + np.eye(n_items), np.eye(n_items) + 0.01 * (X - X.T)
    log_odds, bias = rng.standard_normal((SEGMENTS, n_items)) - 3, np.zeros(SEGMENTS)

    def dpp(parts: dl.Parts) -> object:
        return sums_under_L(L, parts, 1)

    def mixture(parts: dl.Parts) -> object:
        return minor_sums(C, parts, 1), segment_sums(log_odds, bias, parts, 1)

    return {"DPP": dpp, "mixture": mixture}


def cpu_of_workers(parts: dl.Parts) -> float:
    if not isinstance(parts.held, HeldByWorkers):
        return 0.0
    return float(sum(parts.held.cluster.client.run(time.process_time).values()))


def cost(evaluate: Callable[[dl.Parts], object], parts: dl.Parts) -> Cost:
    """The least wall time, and the mean of CPU times, of several evaluations after one to warm up."""
    evaluate(parts)
    workers, here, walls = cpu_of_workers(parts), time.process_time(), []
    for _ in range(TIMES):
        began = time.perf_counter()
        evaluate(parts)
        walls.append(time.perf_counter() - began)
    here = time.process_time() - here
    return Cost(min(walls), (cpu_of_workers(parts) - workers) / TIMES, here / TIMES)


def bytes_of(n_items: int) -> tuple[int, int]:
    """To a worker and back, per part and evaluation: of a DPP, L and Delta; of a mixture, C, Delta, log-odds and
    counts."""
    matrix = len(packed(np.add, (np.eye(n_items),)))
    return 2 * matrix, 2 * matrix + 2 * len(packed(np.add, (np.zeros((SEGMENTS, n_items)),)))


def recovery(path: str) -> tuple[float, float]:
    """Seconds of a fit by two workers, and of the same one with one of them killed as it learns."""
    fit = partial(dl.fit, learner="em", max_iter=20, tol=0.0)
    with dl.read_parts(path, cluster="local:2") as parts:
        assert isinstance(parts.held, HeldByWorkers)
        fit(parts)
        began = time.perf_counter()
        expected = fit(parts)
        undisturbed = time.perf_counter() - began
        process = min(parts.held.cluster.client.run(os.getpid).values())
        threading.Timer(undisturbed / 3, os.kill, (process, signal.SIGKILL)).start()
        began = time.perf_counter()
        found = fit(parts)
        killed = time.perf_counter() - began
    assert np.array_equal(found.kernel.eigenvectors, expected.kernel.eigenvectors)
    return undisturbed, killed


def row(where: str, n_items: int, model: str, found: Cost, n_baskets: int) -> str:
    per_basket = (found.workers + found.here) / n_baskets * 1e6
    times = f"{1e3 * found.wall:9.0f} {1e3 * found.workers:12.0f} {1e3 * found.here:9.0f}"
    return f"{where:<9} {n_items:>5} {model:<8} {times} {per_basket:14.2f}"


def main(n_baskets: int) -> None:
    print(f"{n_baskets:,} baskets in {PARTS} parts; per evaluation, in ms; load {os.getloadavg()[0]:.1f}")
    print("where     items model         wall  CPU workers  CPU here  µs CPU/basket")
    for n_items in CATALOGUES:
        with TemporaryDirectory(prefix="dpplearn-bench-") as folder:
            path = write_parts(Path(folder), n_baskets, n_items)
            for cluster in (None, *(f"local:{count}" for count in WORKERS)):
                with dl.read_parts(path, cluster=cluster) as parts:
                    for model, evaluate in asked(n_items).items():
                        print(row(cluster or "here", n_items, model, cost(evaluate, parts), n_baskets), flush=True)
            sent = [f"{each / 1e6:.2f}" for each in bytes_of(n_items)]
            print(f"          {n_items:>5} MB per part and evaluation, both ways: DPP {sent[0]}, mixture {sent[1]}")
            if n_items == CATALOGUES[1]:
                undisturbed, killed = recovery(path)
                print(f"          a fit of 20 iterations: {undisturbed:.1f} s; with a worker killed: {killed:.1f} s")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else BASKETS)
