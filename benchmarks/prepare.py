"""Preparing raw orders: CPU time and memory, in a process of its own. `python -m benchmarks prepare`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from benchmarks.measure import Result

ROWS = 10**7  # set to 10**8 for the largest size of docs/results/scale.md
MEMORY = 4 * 2**30
SECONDS = 300  # of CPU, for 10⁸ rows
N_CATEGORIES, N_ITEMS, ROWS_PER_BASKET = 18, 500, 10

PREPARE = """
import json, resource, sys, time
import dpplearn as dl
found = dl.prepare(sys.argv[1], sys.argv[2], memory=int(sys.argv[3]), threads=2)
used = resource.getrusage(resource.RUSAGE_SELF)
kept = found.manifest["account"][-1]
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, kept["rows"], kept["categories"]]))
"""


def write_orders(path: Path, n_rows: int) -> None:
    """Rows in no order, some items of every category far more frequent than others."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET memory_limit = '3GB'; SET preserve_insertion_order = false")
        connection.execute(f"""
            COPY (SELECT CAST(hash(i * 2654435761) % {n_rows // ROWS_PER_BASKET} AS BIGINT) AS basket,
                'product ' || category || '-' || CAST({N_ITEMS} * power(hash(i + 7) % 1000000 / 1e6, 2) AS INT) AS item,
                'category ' || category AS category
                FROM (SELECT i, hash(i * 31 + 1) % {N_CATEGORIES} AS category FROM range({n_rows}) t(i)))
            TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)
        """)


def run() -> list[Result]:
    with TemporaryDirectory(prefix="dpplearn-bench-") as folder:
        orders, out = Path(folder) / "orders.parquet", Path(folder) / "prepared"
        write_orders(orders, ROWS)
        command = [sys.executable, "-c", PREPARE, str(orders), str(out), str(MEMORY)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    cpu, memory, kept, categories = json.loads(done.stdout)
    what = f"preparing {ROWS:.0e} rows of Parquet"
    detail = f"{kept:,} rows in {categories} categories kept"
    return [
        Result(f"{what}, CPU", cpu, "s", SECONDS * max(ROWS / 1e8, 0.1), at_least=False, detail=detail),
        Result(f"{what}, peak memory of the process", memory / 2**30, "GiB", MEMORY / 2**30, at_least=False),
    ]
