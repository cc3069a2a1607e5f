"""How long a mixture of ten segments takes to answer, in this process; and to learn all 13 registries."""

from __future__ import annotations

import time

import numpy as np

import dpplearn as dl
from benchmarks.learners.problems import registries
from benchmarks.measure import Result, best_seconds

SEGMENTS, BASKET = 10, 5
REPEATS = 50


def mixture(n_items: int) -> dl.Mixture:
    """Of about as many items per set as registries have."""
    rng = np.random.default_rng(0)
    U, A = rng.standard_normal((n_items, 20)) / 15, rng.standard_normal((n_items, n_items)) / 3 / np.sqrt(n_items)
    log_odds = rng.standard_normal((SEGMENTS, n_items)) - np.log(n_items / 5)
    weights = np.full(SEGMENTS, 1 / SEGMENTS)
    return dl.Mixture.from_arrays(weights, log_odds, U @ U.T + A - A.T, nonempty=True)


def all_registries() -> Result:
    """With the default settings, after one that compiles."""
    cases = list(registries())
    dl.fit(cases[-1].train, rng=0, max_iter=2)
    began = time.perf_counter()
    for case in cases:
        dl.fit(case.train, rng=0)
    return Result("mixtures of all registries", time.perf_counter() - began, "s", 10, at_least=False)


def rerank(model: dl.Mixture) -> float:
    """Seconds for 200 users of 100 candidates each, ten chosen for each."""
    rng = np.random.default_rng(1)
    candidates = [rng.choice(len(model.items), 100, replace=False) for _ in range(200)]
    items = [[model.items[each] for each in chosen] for chosen in candidates]
    scores = [rng.random(100) for _ in candidates]
    return best_seconds(lambda: model.rerank(items, scores, 10), 5)


def run() -> list[Result]:
    small, large = mixture(100), mixture(1000)
    basket = list(range(0, 2 * BASKET, 2))

    def recommend(model: dl.Mixture) -> float:
        return 1e6 * best_seconds(lambda: model.recommend(basket), REPEATS)

    draw = 1e3 * best_seconds(lambda: small.sample(320, rng=0, threads=1), 5) / 320
    explain = 1e3 * best_seconds(lambda: small.explain(range(12), 50), 5)
    return [
        Result("next items of a mixture of 100", recommend(small), "µs", 200, at_least=False),
        Result("next items of a mixture of 1,000", recommend(large), "µs", 400, at_least=False),
        Result("an explanation of a basket of 12", explain, "ms", 50, at_least=False),
        Result("re-ranking 100 candidates for 200 users", rerank(large), "s", 0.2, at_least=False),
        Result("a draw from a mixture of 100", draw, "ms", 0.3, at_least=False),
        all_registries(),
    ]
