"""Raw orders, written as files of every kind."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

Row = Sequence[Any]

LENIENT = {"min_products": 1, "min_count": 1, "min_items": 1, "min_baskets_per_item": 0}


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def write_json_lines(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    return path


def write_parquet(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    """All texts."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows ({', '.join(f'{name} VARCHAR' for name in columns)})")
        connection.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", [list(row) for row in rows]
        )
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    return path


def random_orders(
    n_baskets: int, seed: int = 0, n_categories: int = 4, n_items: int = 12
) -> list[tuple[str, str, str]]:
    """Baskets of 5 to 12 rows, over several categories, some items in a basket twice; in no order."""
    rng = np.random.default_rng(seed)
    rows = []
    for basket in range(n_baskets):
        for _ in range(rng.integers(5, 13)):
            category, item = rng.integers(n_categories), int(n_items * rng.random() ** 2)
            rows.append((f"order {basket}", f"thing {category}-{item}", f"Category {category}"))
    return [rows[place] for place in rng.permutation(len(rows))]
