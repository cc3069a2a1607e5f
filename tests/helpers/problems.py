"""Small data sets on which every learner and initialiser is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpplearn import DPP, Baskets, Mixture
from dpplearn.distributions.interaction import repelling_and_attracting
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.kernels import Segments, distribution_of

N_ITEMS = 6


def random_kernel(rng: np.random.Generator, n_items: int = N_ITEMS) -> SpectralDPP:
    X = rng.standard_normal((n_items, n_items))
    return SpectralDPP.from_L(X @ X.T / n_items)


def random_mixture(segments: int, n_items: int = N_ITEMS, seed: int = 0) -> Segments:
    """Segments that share an interaction which repels and attracts."""
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((n_items, 2)) / 2, rng.standard_normal((n_items, n_items)) / 2
    log_odds = rng.standard_normal((segments, n_items)) - 0.5
    return Segments.dense(rng.dirichlet(np.ones(segments)), log_odds, U @ U.T + A - A.T)


def as_mixture(
    segments: Segments, items: Sequence[Any] | None = None, *, nonempty: bool = False, **record: Any
) -> Mixture:
    """Return the model with these segments."""
    return Mixture(distribution_of(segments, nonempty=nonempty), items, **record)


def sampled(seed: int, n: int = 200, n_items: int = N_ITEMS) -> Baskets:
    rng = np.random.default_rng(seed)
    return Baskets.from_lists(DPP(random_kernel(rng, n_items)).sample(n, rng=rng), n_items=n_items)


def _weighted() -> Baskets:
    baskets = sampled(1, 60)
    return Baskets.from_lists(list(baskets), n_items=N_ITEMS, weights=np.random.default_rng(1).random(60))


def shopping(seed: int = 1, n: int = 1500, n_items: int = 40) -> Baskets:
    """Some people buy much and some little, so that items attract, but for three pairs of which nobody buys both; and
    nobody buys nothing. An eigenvalue at 1 is then a basin of its own, which lies below independent items."""
    rng = np.random.default_rng(seed)
    chances, lists = 4 * rng.dirichlet(np.full(n_items, 0.7)), []
    while len(lists) < n:
        much = np.exp(0.6 * rng.standard_normal() - 0.18)
        basket = set(np.flatnonzero(rng.random(n_items) < np.minimum(chances * much, 0.95)).tolist())
        for pair in ({0, 1}, {2, 3}, {4, 5}):
            if pair <= basket:
                basket.remove(rng.choice(sorted(pair)))
        if basket:
            lists.append(basket)
    return Baskets.from_lists(lists, n_items=n_items)


PROBLEMS: dict[str, Baskets] = {
    "sampled from a DPP": sampled(0),
    "weighted": _weighted(),
    "without empty baskets": Baskets.from_lists([b for b in sampled(2) if b], n_items=N_ITEMS),
    "attracting": Baskets.from_lists([[0, 1]] * 3 + [[4, 5]] * 2 + [[2], [2, 3], [], [0, 1, 2]], n_items=N_ITEMS),
    "an item that never occurs": Baskets.from_lists([[0], [1, 2], [3], [4], [0, 3], []], n_items=N_ITEMS),
    "an item that always occurs": Baskets.from_lists([[0], [0, 1], [0, 2], [0, 3, 4], [0, 5]], n_items=N_ITEMS),
    "a basket as large as the catalogue": Baskets.from_lists([range(N_ITEMS), [0], [1], [2, 3]], n_items=N_ITEMS),
    "one item": Baskets.from_lists([[0], [], [0]], n_items=1),
    "all empty": Baskets.from_lists([[], [], []], n_items=3),
    "one basket": Baskets.from_lists([[1, 3]], n_items=4),
    "forty items at once": Baskets.from_lists([range(40), range(5), range(30, 38), [7]], n_items=40),
}


def random_low_rank(segments: int, n_items: int = N_ITEMS, seed: int = 0, rare: float = 0.0) -> Segments:
    """Segments that share an interaction in factors; the last items are independent, and all the less likely."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_items, 5))
    Z[n_items - n_items // 4 :] = 0
    log_odds = rng.standard_normal((segments, n_items)) - 0.5 - rare
    return Segments.low_rank(rng.dirichlet(np.ones(segments)), log_odds, Z, repelling_and_attracting(1, 2))
