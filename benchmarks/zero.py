"""How often zero is taken for something, or something for zero: `python -m benchmarks.zero`.

Sets that hold two items which are exactly alike, and so are impossible, or almost alike, and so are possible; under
kernels made from a factor and from L, without and with eigenvalues near 1 and at 1. Beside the library's decision
stands that of the pivots of L alone, by the limit k·eps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from dpplearn.arrays import EPSILON, Bools
from dpplearn.kernels.symmetric.statistics import log_determinants

SIZES = (2, 5, 10, 20)
CATALOGUES = (20, 50, 100, 200, 500)
APART = (0.0, 1e-13, 1e-10, 1e-6)  # the pivot of the second item, relative to its L_ii
SETS = 100  # per kernel and size
SEEDS = 3
BORDERS = {"none": [], "near 1": [1 - 1e-7, 1 - 1e-12], "at 1": [1.0, 1.0]}


def kernel_with_doubles(n_items: int, apart: float, from_L: bool, border: str, seed: int) -> dl.Kernel:
    """The last quarter of the items are the first quarter again, or nearly."""
    rng, n_doubles = np.random.default_rng(seed), n_items // 4
    X = rng.standard_normal((n_items, n_items)) / math.sqrt(n_items)
    X[-n_doubles:] = X[:n_doubles] + math.sqrt(apart / n_items) * rng.standard_normal((n_doubles, n_items))
    kernel = dl.Kernel.from_L(X @ X.T) if from_L else dl.Kernel.from_factor(X)
    lam = kernel.eigenvalues.copy()
    lam[np.argsort(lam)[n_items - len(BORDERS[border]) :]] = BORDERS[border]
    return dl.Kernel(lam, kernel.eigenvectors)


def sets_with_a_double(n_items: int, k: int, rng: np.random.Generator) -> dl.Baskets:
    quarter = n_items // 4
    first = rng.integers(quarter, size=SETS)
    others = [rng.choice(np.arange(quarter, n_items - quarter), k - 2, replace=False) for _ in range(SETS)]
    return dl.Baskets.from_lists(
        [sorted([i, n_items - quarter + i, *rest]) for i, rest in zip(first, others, strict=True)], n_items=n_items
    )


def possible_by_pivots(kernel: dl.Kernel, baskets: dl.Baskets) -> Bools:
    """Whether no pivot of L_Y is below k·eps of its diagonal."""
    scale = 1 / np.sqrt(kernel.L.diagonal())
    C = kernel.L * np.outer(scale, scale)

    def decided(Y: tuple[int, ...]) -> bool:
        try:
            return bool(np.linalg.cholesky(C[np.ix_(Y, Y)]).diagonal().min() ** 2 >= len(Y) * EPSILON)
        except np.linalg.LinAlgError:
            return False

    return np.array([decided(Y) for Y in baskets])


def wrong(border: str, apart: float, n_items: int) -> tuple[Bools, Bools]:
    """Which decisions of the library, and of the pivots of L where there is one, are wrong."""
    ours, pivots, rng = [], [np.zeros(0, dtype=bool)], np.random.default_rng(0)
    for seed, from_L in itertools.product(range(SEEDS), (False, True)):
        kernel = kernel_with_doubles(n_items, apart, from_L, border, seed)
        for k in [k for k in SIZES if k - 2 <= n_items // 2]:
            baskets = sets_with_a_double(n_items, k, rng)
            ours.append(np.isfinite(log_determinants(kernel, baskets)) != (apart > 0))
            if not BORDERS[border]:
                pivots.append(possible_by_pivots(kernel, baskets) != (apart > 0))
    return np.concatenate(ours), np.concatenate(pivots)


def main() -> None:
    shown = Table("eigenvalues", "apart", *(f"N = {n}" for n in CATALOGUES), title="wrong decisions, of how many sets")
    by_pivots = Table("apart", *(f"N = {n}" for n in CATALOGUES), title="wrong by the pivots of L")
    for border, apart in itertools.product(BORDERS, APART):
        found = [wrong(border, apart, n_items) for n_items in CATALOGUES]
        shown.add_row(border, f"{apart:g}", *(f"{ours.sum()} of {len(ours)}" for ours, _ in found))
        if not BORDERS[border]:
            by_pivots.add_row(f"{apart:g}", *(f"{pivots.mean():.1%}" for _, pivots in found))
    console = Console(width=100)
    console.print(shown)
    console.print(by_pivots)


if __name__ == "__main__":
    main()
