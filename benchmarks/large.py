"""Large catalogues: `python -m benchmarks.large [retail] [generated]`. Without arguments, both.

- retail: Belgian retail (16,470 items), three splits, compared with the baselines of `evaluate`.
- generated: a known mixture of 100,000 items fitted to 1,000,000 baskets, compared with the true model.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import dpplearn as dl
from benchmarks.known_mixture import KnownMixture
from benchmarks.learners.problems import SHARED
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.low_rank import LowRankProblem

TRAIN_SHARE, FIRST_SEED, SPLITS = 0.887, 31, 3
N_ITEMS, N_TRAIN, N_TEST = 100_000, 1_000_000, 10_000


def retail() -> None:
    baskets = dl.read_baskets(SHARED / "data" / "baskets" / "retail.dat")
    for seed in range(FIRST_SEED, FIRST_SEED + SPLITS):
        train, test = baskets.split(TRAIN_SHARE, rng=seed)
        began = time.process_time()
        model = dl.fit(train, rng=seed).model
        print(f"\nBelgian retail, split {seed}, fitted in {time.process_time() - began:.0f} s of CPU\n")
        print(dl.evaluate(model, test, train=train, k=10, rng=seed), flush=True)


def generated() -> None:
    truth = KnownMixture.of(N_ITEMS, 20, 40, 8.0, rng=0)
    baskets = truth.draw(N_TRAIN + N_TEST, rng=1)
    order = np.random.default_rng(0).permutation(len(baskets))
    test, train = baskets.subset(order[:N_TEST]), baskets.subset(order[N_TEST:])
    independent = LowRankProblem(train, nonempty=True, segments=1).baseline()
    base = distribution_of(independent, nonempty=True).mean_log_likelihood(test)
    best = distribution_of(truth.segments, nonempty=True).mean_log_likelihood(test) - base
    cpu, wall = time.process_time(), time.perf_counter()
    model = dl.fit(train, rng=0).model
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    gain = model.log_likelihood(test) - base
    print(f"\nA known mixture, {N_ITEMS:,} items, {len(train):,} baskets; gains over independent items in nats")
    print(f"gain {gain:.3f}, of the true model {best:.3f}; {wall:.0f} s, {cpu:.0f} s of CPU, peak {peak:.2f} GB")


SECTIONS = {"retail": retail, "generated": generated}

if __name__ == "__main__":
    for name in sys.argv[1:] or SECTIONS:
        SECTIONS[name]()
