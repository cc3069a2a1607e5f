"""What one evaluation costs against the number of baskets n, of items N, and the size k of a basket."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.learners.problems import clusters
from benchmarks.measure import Result, best_seconds, seconds
from benchmarks.statistics import equal_sizes, many_baskets, random_kernel
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.learners.problem import Problem
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor
from dpplearn.tools.threads import suitable_blas

N_VALUES = (10_000, 100_000, 1_000_000, 10_000_000)
ITEM_VALUES = (50, 100, 200, 500, 1000, 2000, 3000)
K_VALUES = (1, 2, 3, 5, 8, 12, 20, 32, 50)
UPPER_HALF = 3  # the exponent is that of the last points, where overhead no longer counts

AXES: dict[str, tuple[str, tuple[int, ...]]] = {
    "n": ("N = 100, 1 to 10 items per basket", N_VALUES),
    "N": ("20,000 baskets of 5", ITEM_VALUES),
    "k": ("20,000 baskets, N = 100", K_VALUES),
}


def one_point(axis: str, value: int) -> dict[str, float]:
    """Seconds of the statistics and of a whole evaluation (likelihood and gradient in B), and the peak of memory."""
    if axis == "n":
        baskets, kernel = many_baskets(value), random_kernel(100)
    else:
        n_items, k = (value, 5) if axis == "N" else (100, value)
        baskets, kernel = equal_sizes(20_000, k, n_items), random_kernel(n_items)
    L, B, likelihood = np.array(kernel.L), factor(kernel), FactorLikelihood(Problem(baskets))
    repeats = 3 if value >= 1000 else 15
    with suitable_blas(kernel.n_items, None):
        return {
            "statistics": best_seconds(lambda: sums_under_L(L, baskets), repeats),
            "evaluation": best_seconds(lambda: likelihood(B), repeats),
            "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }


def large_fit(n_items: int, n_iter: int) -> dict[str, float]:
    """A fit of so many iterations: its seconds and the peak of memory."""
    import dpplearn as dl

    problem = clusters(n_items)
    taken = seconds(lambda: dl.fit(problem.train, prior=0, max_iter=n_iter, nonempty=False))
    return {"seconds": taken, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def apart(call: str) -> dict[str, float]:
    """A call in a process of its own, whose peak of memory is that of nothing else."""
    code = f"import json; from benchmarks.learners.growth import *; print(json.dumps({call}))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = json.loads(output)
    return found


def measured(axis: str) -> dict[str, Any]:
    title, values = AXES[axis]
    points = [apart(f"one_point({axis!r}, {value})") for value in values]
    times = {name: [point[name] for point in points] for name in ("statistics", "evaluation")}
    exponents = {
        name: float(np.polyfit(np.log(values[-UPPER_HALF:]), np.log(line[-UPPER_HALF:]), 1)[0])
        for name, line in times.items()
    }
    return {
        "axis": axis,
        "title": title,
        "values": list(values),
        "seconds": times,
        "exponents": exponents,
        "gigabytes": [point["gigabytes"] for point in points],
    }


def results(grown: list[dict[str, Any]], fit: dict[str, float]) -> list[Result]:
    lines = []
    for axis in grown:
        shown = ", ".join(
            f"{v:,}: {t * 1e3:.3g} ms" for v, t in zip(axis["values"], axis["seconds"]["evaluation"], strict=True)
        )
        for name in ("statistics", "evaluation"):
            detail = f"{axis['title']}; {shown}" if name == "evaluation" else axis["title"]
            lines.append(Result(f"{name}, exponent in {axis['axis']}", axis["exponents"][name], "", detail=detail))
    detail = f"50,000 baskets, 20 iterations in {fit['seconds']:.0f} s"
    return [*lines, Result("memory of a fit of N = 3,000", fit["gigabytes"], "GB", 8, False, detail)]
