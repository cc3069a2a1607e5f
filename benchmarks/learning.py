"""EM through Delta against the algorithm as printed, doing the same iterations."""

from __future__ import annotations

import numpy as np

import dpplearn as dl
from benchmarks.learners.problems import source
from benchmarks.measure import Result, best_seconds, seconds
from reproduction import textbook
from reproduction.experiments import index_sets


def run() -> list[Result]:
    name = f"{source().kind} feeding"
    train, _ = source().load("feeding").split(0.7, rng=0)
    X = np.random.default_rng(0).standard_normal((train.n_items, train.n_items))
    start = dl.DPP.from_L(X @ X.T / train.n_items, train.items)
    data = train.deduplicated()

    fit = dl.fit_dpp(train, "em", start=start)
    ours = best_seconds(lambda: dl.fit_dpp(train, "em", start=start), repeats=3)
    traces: list[textbook.Trace] = []
    printed = seconds(lambda: traces.append(textbook.em(start.K, index_sets(data), data.weights)))
    np.testing.assert_allclose(fit.history.log_likelihood, traces[0].objective, rtol=1e-9)
    k_ascent = best_seconds(lambda: dl.fit_dpp(train, "k-ascent", start=start), repeats=1)
    times = f"{ours:.3f} s against {printed:.1f} s"
    detail = f"{len(train):,} sets of {train.n_items} items, {fit.n_iter} iterations: {times}"
    return [
        Result(f"EM on {name}, times faster than as printed", printed / ours, "×", 50, detail=detail),
        Result(f"K-Ascent on {name}", k_ascent, "s"),
    ]
