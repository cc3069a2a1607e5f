"""Recommending for a table of baskets, by one model and by a shelf. `python -m benchmarks.recommend_all [BASKETS]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import numpy.typing as npt

import dpplearn as dl
from benchmarks.measure import Result, best_seconds

BASKETS, LEARNED_FROM = 200_000, 4000
CATEGORY = "feeding"  # of 100 items
SIZES = (2, 8)  # of the baskets, 5 on average
TARGET = 20_000  # baskets per second on 2 cores
THREADS = 2


def write_baskets(path: Path, columns: dict[str, npt.NDArray[np.generic]]) -> None:
    with duckdb.connect() as connection:
        connection.register("columns", columns)
        connection.execute(f"COPY (SELECT basket, item FROM columns) TO '{path}' (FORMAT parquet)")


def of_one_category(n: int) -> dict[str, npt.NDArray[np.generic]]:
    """n baskets of about five items."""
    drawn = dl.datasets.make_registries(CATEGORY, 2 * n, rng=1)
    kept = drawn.subset(np.flatnonzero((drawn.sizes >= SIZES[0]) & (drawn.sizes <= SIZES[1]))[:n])
    items = np.array(kept.items, dtype=object)[kept.indices]
    return {"basket": np.repeat(np.arange(len(kept)), kept.sizes), "item": items}


def run(n: int = BASKETS) -> list[Result]:
    with TemporaryDirectory(prefix="dpplearn-bench-") as name:
        folder = Path(name)
        return [_by_model(folder, n), _by_shelf(folder, n // 4)]


def _by_model(folder: Path, n: int) -> Result:
    model = dl.fit(dl.datasets.make_registries(CATEGORY, LEARNED_FROM, rng=0), rng=0).model
    columns = of_one_category(n)
    write_baskets(folder / "baskets.parquet", columns)
    return _measured("one model of 100 items", model, folder / "baskets.parquet", "error", TARGET)


def _by_shelf(folder: Path, n: int) -> Result:
    orders = dl.datasets.make_orders(LEARNED_FROM * 3, rng=0)
    with duckdb.connect() as connection:
        connection.register("orders", orders)
        connection.execute(f"COPY (SELECT * FROM orders) TO '{folder / 'orders.parquet'}' (FORMAT parquet)")
    prepared = dl.prepare(folder / "orders.parquet", folder / "prepared", min_count=50, train=1)
    shelf = dl.fit_all(prepared, folder / "shelf", processes=THREADS)
    new = dl.datasets.make_orders(n, rng=1)
    write_baskets(folder / "new.parquet", new)
    what = f"a shelf of {len(shelf)} categories, mixed baskets"
    return _measured(what, shelf, folder / "new.parquet", "drop", None)


def _measured(
    what: str, models: dl.Shelf | dl.Mixture | dl.DPP, table: Path, unknown: str, target: int | None
) -> Result:
    """By the clock, the best of three; and by CPU time, which a busy machine does not change."""

    def work() -> dl.Recommended:
        return dl.recommend_all(models, table, table.parent / "out.parquet", unknown=unknown, threads=THREADS)

    found, seconds, began = work(), best_seconds(work, repeats=3), time.process_time()
    work()
    cpu = (time.process_time() - began) / found.n_baskets
    detail = f"{found.n_baskets:,} baskets of {found.n_items / found.n_baskets:.1f} items, top 10, {THREADS} threads"
    return Result(
        f"recommending by {what}",
        found.n_baskets / seconds,
        "baskets per second",
        target,
        detail=f"{detail}; {1e6 * cpu:.0f} microseconds of CPU per basket",
    )


if __name__ == "__main__":
    for result in run(int(float(sys.argv[1])) if len(sys.argv) > 1 else BASKETS):
        wanted = "" if result.target is None else f" (at least {result.target:,g})"
        print(f"{result.what}: {result.figure:,.0f} {result.unit}{wanted} {result.detail}")
