"""Greedy MAP against the matrix-vector products that it cannot avoid."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Result, best_seconds
from dpplearn.kernels.symmetric.selection import greedy

N_ITEMS, TAKEN = 5000, 1000


def products(rows: np.ndarray, out: np.ndarray) -> None:
    """Step t multiplies the t rows of the Cholesky factor by one of its columns."""
    for t in range(TAKEN):
        np.dot(rows[:t, t], rows[:t], out=out)


def run() -> list[Result]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ITEMS, 1500))
    L = X @ X.T / 1500 + 0.1 * np.eye(N_ITEMS)
    rows, out = rng.standard_normal((TAKEN, N_ITEMS)), np.empty(N_ITEMS)
    ours = best_seconds(lambda: greedy(L, N_ITEMS, TAKEN), 3)
    with_all_threads = best_seconds(lambda: products(rows, out), 3)
    with threadpool_limits(1, user_api="blas"):
        with_one_thread = best_seconds(lambda: products(rows, out), 3)
    unavoidable = min(with_one_thread, with_all_threads)
    detail = f"{ours:.2f} s against {unavoidable:.2f} s"
    what = f"greedy MAP of {TAKEN:,} from {N_ITEMS:,}, times the unavoidable products"
    return [Result(what, ours / unavoidable, "×", 1.3, False, detail)]
