"""The two algorithms as printed in the paper: whole runs of them, and how one iteration grows with n, N and k."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import expm

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.experiments import textbook
from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials.trial import MAX_ITER, Job, Row, first_2N
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.starts import moments, wishart
from dpplearn.models.dpp import DPP

REPEATS = 3

# Along each axis one size grows and the others stay: (n, N, k).
AXES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "n": tuple((n, 60, 5) for n in (250, 500, 1000, 2000)),
    "N": tuple((20, N, 20) for N in (50, 100, 200, 400, 800, 1600)),
    "k": tuple((50, 200, k) for k in (5, 10, 20, 40, 80, 160)),
}


def wishart_as_printed(job: Job, source: Source) -> Row:
    """From the Wishart start that the library's learners have in this trial."""
    train, test = source.split(job.category, job.trial)
    return as_printed(train, test, wishart(train, source.rng("wishart", job.category, job.trial)))


def moments_as_printed(job: Job, source: Source) -> Row:
    train, test = source.split(job.category, job.trial)
    return as_printed(train, test, moments(train, source.rng("moments")))


def few_as_printed(job: Job, source: Source) -> Row:
    train, test = source.split(job.category, job.trial)
    few = first_2N(train)
    return as_printed(few, test, moments(few, source.rng("moments")))


def as_printed(train: Baskets, test: Baskets, start: Kernel) -> Row:
    """Both algorithms, their times, and their test likelihoods with and without a rule for zero."""
    data = train.deduplicated()
    sets = as_sets(data)
    row: Row = {
        "n_items": train.n_items,
        "n_train": len(train),
        "n_distinct": len(data),
        "n_test": len(test),
    }
    for name, algorithm in {"em": textbook.em, "ka": textbook.k_ascent}.items():
        began = time.perf_counter()
        trace = algorithm(start.K, sets, data.weights, max_iter=MAX_ITER)
        seconds = time.perf_counter() - began
        model = DPP(Kernel(trace.eigenvalues, trace.eigenvectors), train.items)
        row |= {
            f"{name}_seconds": seconds,
            f"{name}_iterations": len(trace.objective) - 1,
            f"{name}_train": model.log_likelihood(train),
            f"{name}_test": model.log_likelihood(test),
            f"{name}_test_unruled": unruled_log_likelihood(trace.K, test),
        }
    return row


def unruled_log_likelihood(K: Floats, baskets: Baskets) -> float:
    """Mean log|det(K − I_Ȳ)| with no rule for zero: where a set is impossible, of whatever rounding left."""
    data = baskets.deduplicated()
    total = 0.0
    for group in data.by_size:
        minors = np.tile(K - np.eye(len(K)), (len(group.sets), 1, 1))
        minors[np.arange(len(group.sets))[:, None], group.sets, group.sets] += 1
        with np.errstate(divide="ignore"):
            total += float(data.weights[group.rows] @ np.log(np.abs(np.linalg.det(minors))))
    return total / data.total_weight


def as_sets(baskets: Baskets) -> list[textbook.IndexSet]:
    return [each.astype(np.int64) for each in np.split(baskets.indices, baskets.offsets[1:-1])]


def growth(job: Job, source: Source) -> Row:
    """Time of one iteration of each algorithm on random sets of one size: the part that goes through the examples, and
    the part that does not (EM's exponential of a matrix, K-Ascent's projection). The best of three."""
    n, N, k = job.n_train, job.n_items, job.set_size
    assert n is not None
    assert N is not None
    assert k is not None
    rng = source.rng("growth", job.category, n, N, k)
    X = rng.standard_normal((N, N)) / np.sqrt(N)
    kernel = Kernel.from_L(X @ X.T)
    lam, V, K = kernel.eigenvalues, kernel.eigenvectors, kernel.K
    sets = [rng.choice(N, k, replace=False) for _ in range(n)]
    weights = np.ones(n)

    def em_examples() -> None:
        textbook.eigenvalue_update(V, lam, sets, weights)
        textbook.eigenvector_gradient(V, lam, sets, weights)
        textbook.log_likelihood(V, lam, sets, weights)

    def ka_examples() -> None:
        textbook.kernel_gradient(K, sets, weights)
        textbook.log_likelihood_of_K(K, sets, weights)

    return {
        "n_items": N,
        "n_train": n,
        "set_size": k,
        "em_seconds": _fastest(em_examples),
        "ka_seconds": _fastest(ka_examples),
        "em_matrix_seconds": _fastest(lambda: V @ expm(0.1 * (X - X.T))),
        "ka_matrix_seconds": _fastest(lambda: textbook.project(K + 0.1 * (X + X.T))),
    }


def _fastest(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
