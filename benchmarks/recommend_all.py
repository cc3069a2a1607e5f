"""Recommending for a table of baskets, by one model and by a model store. `python -m benchmarks recommend_all`."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

import dpplearn as dl
from benchmarks.measure import Result, best_seconds
from dpplearn.data.writing import write_table

BASKETS, LEARNED_FROM = 200_000, 4000
CATEGORY = "feeding"  # of 100 items
SIZES = (2, 8)  # of the baskets, 5 on average
TARGET = 20_000  # baskets per second on 2 cores
THREADS = 2


def write(path: Path, columns: dict[str, npt.NDArray[np.generic]]) -> Path:
    write_table(columns, path)
    return path


def run() -> list[Result]:
    with TemporaryDirectory(prefix="dpplearn-bench-") as folder:
        return [_by_model(Path(folder), BASKETS), _by_store(Path(folder), BASKETS // 4)]


def _by_model(folder: Path, n: int) -> Result:
    """n baskets of about five items."""
    model = dl.fit(dl.datasets.make_registries(CATEGORY, LEARNED_FROM, rng=0), rng=0).model
    drawn = dl.datasets.make_registries(CATEGORY, 2 * n, rng=1)
    kept = drawn.subset(np.flatnonzero((drawn.sizes >= SIZES[0]) & (drawn.sizes <= SIZES[1]))[:n])
    items = np.array(kept.items, dtype=object)[kept.indices]
    table = write(folder / "baskets.parquet", {"basket": np.repeat(np.arange(len(kept)), kept.sizes), "item": items})
    return _measured("one model of 100 items", model, table, "error", TARGET)


def _by_store(folder: Path, n: int) -> Result:
    orders = write(folder / "orders.parquet", dl.datasets.make_orders(LEARNED_FROM * 3, rng=0))
    prepared = dl.prepare(orders, folder / "prepared", min_count=50, train=1)
    models = dl.fit_all(prepared, folder / "models", processes=THREADS)
    new = dl.datasets.make_orders(n, rng=1)
    table = write(folder / "new.parquet", {name: new[name] for name in ("basket", "item")})
    return _measured(f"models of {len(models)} categories, mixed baskets", models, table, "drop", None)


def _measured(
    what: str, models: dl.ModelStore | dl.Mixture | dl.DPP, table: Path, unknown: str, target: int | None
) -> Result:
    """By the clock, the best of three; and by CPU time, which a busy machine does not change."""

    def work() -> dl.Recommended:
        return dl.recommend_all(models, table, table.parent / "out.parquet", unknown=unknown, threads=THREADS)

    found, seconds, began = work(), best_seconds(work, repeats=3), time.process_time()
    work()
    cpu = 1e6 * (time.process_time() - began) / found.n_baskets
    size = found.n_items / found.n_baskets
    detail = f"{found.n_baskets:,} baskets of {size:.1f} items, top 10, {THREADS} threads; {cpu:.0f} µs of CPU each"
    rate = found.n_baskets / seconds
    return Result(f"recommending by {what}", rate, "baskets per second", target, detail=detail)
