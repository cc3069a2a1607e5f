"""EM through Delta against the algorithm as printed, doing the same iterations."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np

import dpplearn as dl
from benchmarks.measure import Result, best_seconds, seconds
from reproduction import textbook
from reproduction.data import read_registry, registry_files

SHARED = Path(os.environ.get("DPPLEARN_SHARED", Path(__file__).parents[2] / "shared"))


def feeding() -> tuple[str, dl.Baskets]:
    """The original feeding registries if they are at hand, generated ones otherwise."""
    files = SHARED / "data" / "registries"
    if files.is_dir():
        return "feeding", read_registry(*registry_files(files, "feeding"))
    return "generated feeding", dl.datasets.make_registries("feeding", 19_001, rng=0)


def run() -> list[Result]:
    name, baskets = feeding()
    train, _ = baskets.split(0.7, rng=0)
    X = np.random.default_rng(0).standard_normal((train.n_items, train.n_items))
    start = dl.DPP(dl.Kernel.from_L(X @ X.T / train.n_items), train.items)
    data = train.deduplicated()
    sets = [data.indices[a:b] for a, b in pairwise(data.offsets)]

    fit = dl.fit_dpp(train, "em", start=start)
    ours = best_seconds(lambda: dl.fit_dpp(train, "em", start=start), repeats=3)
    traces: list[textbook.Trace] = []
    printed = seconds(lambda: traces.append(textbook.em(start.kernel.K, sets, data.weights)))
    np.testing.assert_allclose(fit.history.log_likelihood, traces[0].objective, rtol=1e-9)
    k_ascent = best_seconds(lambda: dl.fit_dpp(train, "k-ascent", start=start), repeats=1)
    times = f"{ours:.3f} s against {printed:.1f} s"
    detail = f"{len(train):,} sets of {train.n_items} items, {fit.n_iter} iterations: {times}"
    return [
        Result(f"EM on {name}, times faster than as printed", printed / ours, "×", 50, detail=detail),
        Result(f"K-Ascent on {name}", k_ascent, "s"),
    ]
