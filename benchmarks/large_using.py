"""How long a mixture of a hundred thousand items takes to answer: `python -m benchmarks large_using`.

Items have a power law of popularity, and themes: within one, an item of one kind goes with those of the other kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from dpplearn.kernels.factored.kernel import FactoredKernel, coupling
from dpplearn.kernels.factored.law import FactoredLaw

from benchmarks.measure import Result
from dpplearn.arrays import Floats

ITEMS, SEGMENTS, REPELLING, ATTRACTING = 100_000, 20, 8, 48
SIZE, BASKET, QUERIES, DRAWS = 8.0, 5, 50, 40
LIFT = (3.0, 10.0)  # of two items that go together
COLD = 0.2  # of the items, the rarest, have no interaction


def kernel_of(n_items: int, segments: int, repelling: int, attracting: int, seed: int = 0) -> FactoredKernel:
    rng = np.random.default_rng(seed)
    popular = 1 / (np.arange(n_items) + 10.0) ** 0.9
    log_odds = (
        np.log(popular) + 0.8 * rng.standard_normal((segments, n_items)) + np.linspace(-0.8, 0.8, segments)[:, None]
    )
    factors = 0.1 * rng.standard_normal((n_items, repelling + 2 * attracting))
    factors[:, :repelling] *= 2
    themes = repelling + rng.integers(2 * attracting, size=n_items)  # of one kind or of the other
    factors[np.arange(n_items), themes] += (rng.uniform(*LIFT, n_items) - 1) ** 0.25
    factors[int((1 - COLD) * n_items) :] = 0
    weights = rng.dirichlet(np.full(segments, 5.0))
    omega = coupling(repelling, attracting)[None]
    for _ in range(6):
        kernel = FactoredKernel(weights, log_odds, factors, omega)
        log_odds = log_odds - np.log(float((kernel.weights @ kernel.marginals).sum()) / SIZE)
    return FactoredKernel(weights, log_odds, factors, omega)


def milliseconds(work: Callable[[int], object], repeats: int) -> Floats:
    """Of CPU time, each."""
    found = []
    for number in range(repeats):
        began = time.process_time()
        work(number)
        found.append(1e3 * (time.process_time() - began))
    return np.array(found)


def answers(law: FactoredLaw) -> list[Result]:
    rng = np.random.default_rng(1)
    p = law.marginals() / law.expected_size
    baskets = [rng.choice(law.n_items, BASKET, replace=False, p=p) for _ in range(QUERIES)]
    law.best_next(baskets[0], 10)
    law.scores(baskets[0])
    best = milliseconds(lambda row: law.best_next(baskets[row], 10), QUERIES)
    scores = milliseconds(lambda row: law.scores(baskets[row]), 10)
    complete = milliseconds(lambda row: law.greedy(BASKET + 10, baskets[row]), QUERIES)
    return [
        Result("top 10 of 100,000 items", float(np.median(best)), "ms", 10, False, slowest(best)),
        Result("scores of all of them", float(np.median(scores)), "ms"),
        Result("ten items to complete a basket", float(np.median(complete)), "ms", 20, False, slowest(complete)),
    ]


def slowest(times: Floats) -> str:
    return f"the slowest of {len(times)} took {times.max():.3g} ms"


def draws_and_sizes(law: FactoredLaw) -> list[Result]:
    """Draws after those that make what segments need."""
    first = milliseconds(lambda _: law.sample(200, None, 0, 1), 1)[0]
    one = milliseconds(lambda seed: law.sample(1, None, seed, 1), DRAWS)
    sizes = milliseconds(lambda _: law.log_sizes(), 1)[0]
    detail = f"the first 200, which make what is kept of all segments, took {first / 1e3:.3g} s"
    return [
        Result("a draw", float(np.median(one)), "ms", 20, False, detail),
        Result("the law of sizes", float(sizes) / 1e3, "s"),
    ]


def run() -> list[Result]:
    law = FactoredLaw(kernel_of(ITEMS, SEGMENTS, REPELLING, ATTRACTING))
    return answers(law) + draws_and_sizes(law)
