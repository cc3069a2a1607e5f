"""Large catalogues: `python -m benchmarks.large [retail] [generated] [growth]`. Without arguments, all three.

- retail: Belgian retail (16,470 items), three splits, compared with the baselines of `evaluate`.
- generated: a known mixture of 100,000 items fitted to 1,000,000 baskets, compared with the true model.
- growth: exponents of the CPU time of one EM pass and of one batch of the low-rank learner.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np

import dpplearn as dl
from benchmarks.known_mixture import KnownMixture
from benchmarks.learners.problems import SHARED
from dpplearn.kernels.families import law_of
from dpplearn.learners.factored import plan
from dpplearn.learners.factored.factored import Learning
from dpplearn.learners.factored.place import Place
from dpplearn.learners.factored.problem import FactoredProblem

TRAIN_SHARE, FIRST_SEED, SPLITS = 0.887, 31, 3


def print_header(title: str, *names: str) -> None:
    print(f"\n{title}\n\n| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def print_row(*values: object) -> None:
    print(f"| {' | '.join(f'{v:.4g}' if isinstance(v, float) else str(v) for v in values)} |", flush=True)


def retail() -> None:
    baskets = dl.read_baskets(SHARED / "data" / "baskets" / "retail.dat")
    for seed in range(FIRST_SEED, FIRST_SEED + SPLITS):
        train, test = baskets.split(TRAIN_SHARE, rng=seed)
        began = time.process_time()
        model = dl.fit(train, rng=seed).model
        print(f"\nBelgian retail, split {seed}, fitted in {time.process_time() - began:.0f} s of CPU\n")
        print(dl.evaluate(model, test, train=train, k=10, rng=seed), flush=True)


def generated(n_items: int = 100_000, n: int = 1_000_000) -> None:
    truth = KnownMixture.of(n_items, 20, 40, 8.0, rng=0)
    baskets = truth.draw(n + n // 100, rng=1)
    order = np.random.default_rng(0).permutation(len(baskets))
    test, train = baskets.subset(order[: n // 100]), baskets.subset(order[n // 100 :])
    independent = FactoredProblem(train, None, True, 1, 0, 0).independent_items()
    base = law_of(independent, nonempty=True).mean_log_likelihood(test)
    best = law_of(truth.kernel, nonempty=True).mean_log_likelihood(test) - base
    print_header(f"A known mixture, N = {n_items:,}, n = {len(train):,}", "", "gain", "wall s", "CPU s", "peak GB")
    print_row("truth", best, "", "", "")
    for name, passes, epochs in (("default passes", plan.PASSES, plan.EPOCHS), ("three times as many", 180, 15)):
        plan.PASSES, plan.EPOCHS = passes, epochs
        began, wall = time.process_time(), time.perf_counter()
        model = dl.fit(train, rng=0).model
        seconds = (time.perf_counter() - wall, time.process_time() - began)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print_row(name, model.log_likelihood(test) - base, *seconds, peak)


def growth() -> None:
    """Vary n baskets, N items, M segments and r columns, one at a time."""
    middle = {"n": 50_000, "N": 10_000, "M": 20, "r": 100}
    ladders = {"n": (25_000, 50_000, 100_000), "N": (5_000, 10_000, 20_000), "M": (10, 20, 40), "r": (50, 100, 200)}
    print_header("Exponents of CPU time, one thread", "in", "EM pass", "batch", "values")
    for name, ladder in ladders.items():
        times = np.array([pass_and_batch_seconds(**{**middle, name: value}) for value in ladder])
        slopes = np.polyfit(np.log(ladder), np.log(times), 1)[0]
        print_row(name, *(float(each) for each in slopes), ", ".join(map(str, ladder)))


def pass_and_batch_seconds(n: int, N: int, M: int, r: int) -> tuple[float, float]:
    baskets = KnownMixture.of(N, 4, 10, 8.0, rng=0).draw(n, rng=1)
    problem = FactoredProblem(baskets, 1, True, M, 0, r // 2)
    learning, at = Learning(problem), Place.first(problem.start("random", np.random.default_rng(0)), problem)
    of_pass = best_cpu_seconds(lambda: learning.division(at))
    at = at.with_factors(problem)
    targets = at.log_odds[:, problem.active]
    return of_pass, best_cpu_seconds(lambda: learning.batch(at, targets))


def best_cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


SECTIONS = {"retail": retail, "generated": generated, "growth": growth}

if __name__ == "__main__":
    for name in sys.argv[1:] or SECTIONS:
        SECTIONS[name]()
