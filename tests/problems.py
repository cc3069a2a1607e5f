"""Small data sets on which every learner and initialiser is tried."""

from __future__ import annotations

import numpy as np

from dpplearn import DPP, Baskets, Kernel

N_ITEMS = 6


def random_kernel(rng: np.random.Generator, n_items: int = N_ITEMS) -> Kernel:
    X = rng.standard_normal((n_items, n_items))
    return Kernel.from_L(X @ X.T / n_items)


def sampled(seed: int, n: int = 200, n_items: int = N_ITEMS) -> Baskets:
    rng = np.random.default_rng(seed)
    return Baskets.from_lists(DPP(random_kernel(rng, n_items)).sample(n, rng=rng), n_items=n_items)


def _weighted() -> Baskets:
    baskets = sampled(1, 60)
    return Baskets.from_lists(list(baskets), n_items=N_ITEMS, weights=np.random.default_rng(1).random(60))


def _attracting() -> Baskets:
    return Baskets.from_lists([[0, 1], [0, 1], [0, 1], [2], [2, 3], [4, 5], [4, 5], [], [0, 1, 2]], n_items=N_ITEMS)


PROBLEMS: dict[str, Baskets] = {
    "sampled from a DPP": sampled(0),
    "weighted": _weighted(),
    "without empty baskets": Baskets.from_lists([b for b in sampled(2) if b], n_items=N_ITEMS),
    "attracting": _attracting(),
    "an item that never occurs": Baskets.from_lists([[0], [1, 2], [3], [4], [0, 3], []], n_items=N_ITEMS),
    "an item that always occurs": Baskets.from_lists([[0], [0, 1], [0, 2], [0, 3, 4], [0, 5]], n_items=N_ITEMS),
    "a basket as large as the catalogue": Baskets.from_lists([range(N_ITEMS), [0], [1], [2, 3]], n_items=N_ITEMS),
    "one item": Baskets.from_lists([[0], [], [0]], n_items=1),
    "all empty": Baskets.from_lists([[], [], []], n_items=3),
    "one basket": Baskets.from_lists([[1, 3]], n_items=4),
    "forty items at once": Baskets.from_lists([range(40), range(5), range(30, 38), [7]], n_items=40),
}
