"""How long a mixture of a hundred thousand items takes to answer: `python -m benchmarks large_using`.

Popularity follows a power law. Items belong to themes; within a theme, items of two groups attract each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Result
from dpplearn.arrays import Floats
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import repelling_and_attracting
from dpplearn.learners.kernels import Segments, distribution_of

ITEMS, SEGMENTS, REPELLING, ATTRACTING = 100_000, 20, 8, 48
SIZE, BASKET, QUERIES, DRAWS = 8.0, 5, 50, 40
LIFT = (3.0, 10.0)  # of two items that attract each other
COLD = 0.2  # of the items, the rarest, have no interaction


def distribution_with(n_items: int, segments: int, repelling: int, attracting: int, seed: int = 0) -> SetDistribution:
    """Return a low-rank mixture with about SIZE items per set."""
    rng = np.random.default_rng(seed)
    popular = 1 / (np.arange(n_items) + 10.0) ** 0.9
    log_odds = (
        np.log(popular) + 0.8 * rng.standard_normal((segments, n_items)) + np.linspace(-0.8, 0.8, segments)[:, None]
    )
    factors = 0.1 * rng.standard_normal((n_items, repelling + 2 * attracting))
    factors[:, :repelling] *= 2
    themes = repelling + rng.integers(2 * attracting, size=n_items)
    factors[np.arange(n_items), themes] += (rng.uniform(*LIFT, n_items) - 1) ** 0.25
    factors[int((1 - COLD) * n_items) :] = 0
    weights = rng.dirichlet(np.full(segments, 5.0))
    core = repelling_and_attracting(repelling, attracting)
    for _ in range(6):
        found = distribution_of(Segments.low_rank(weights, log_odds, factors, core))
        log_odds = log_odds - np.log(found.expected_size / SIZE)
    return distribution_of(Segments.low_rank(weights, log_odds, factors, core))


def milliseconds(work: Callable[[int], object], repeats: int) -> Floats:
    """Return the CPU time of each call."""
    found = []
    for number in range(repeats):
        began = time.process_time()
        work(number)
        found.append(1e3 * (time.process_time() - began))
    return np.array(found)


def answers(distribution: SetDistribution) -> list[Result]:
    rng, n = np.random.default_rng(1), distribution.n_items
    p = distribution.marginals() / distribution.expected_size
    baskets = [rng.choice(n, BASKET, replace=False, p=p) for _ in range(QUERIES)]
    sets = [sets_of([basket], n) for basket in baskets]
    distribution.top_next(sets[0], 10)
    distribution.next_items(sets[0])
    best = milliseconds(lambda row: distribution.top_next(sets[row], 10), QUERIES)
    scores = milliseconds(lambda row: distribution.next_items(sets[row]), 10)
    complete = milliseconds(lambda row: distribution.greedy(BASKET + 10, baskets[row]), QUERIES)
    return [
        Result("top 10 of 100,000 items", float(np.median(best)), "ms", 10, False, slowest(best)),
        Result("scores and probabilities of all items", float(np.median(scores)), "ms"),
        Result("ten items to complete a basket", float(np.median(complete)), "ms", 20, False, slowest(complete)),
    ]


def slowest(times: Floats) -> str:
    return f"the slowest of {len(times)} took {times.max():.3g} ms"


def draws_and_sizes(distribution: SetDistribution) -> list[Result]:
    """Time a draw after the samplers of the segments are made."""
    first = milliseconds(lambda _: distribution.sample(200, None, 0, 1), 1)[0]
    one = milliseconds(lambda seed: distribution.sample(1, None, seed, 1), DRAWS)
    sizes = milliseconds(lambda _: distribution.log_sizes(), 1)[0]
    detail = f"the first 200, with the samplers of all segments, took {first / 1e3:.3g} s"
    return [
        Result("a draw", float(np.median(one)), "ms", 20, False, detail),
        Result("the size distribution", float(sizes) / 1e3, "s"),
    ]


def run() -> list[Result]:
    distribution = distribution_with(ITEMS, SEGMENTS, REPELLING, ATTRACTING)
    return answers(distribution) + draws_and_sizes(distribution)
