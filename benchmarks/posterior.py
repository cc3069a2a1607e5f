"""Simulation-based calibration of posteriors: `python -m benchmarks.posterior`.

Parameters are drawn from the prior and baskets from their law, 150 times over; among draws of the posterior the true
parameters must then stand anywhere alike. And what a posterior takes, by the number of parameters.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kstest

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.uncertainty.parameters import NAMED

REPLICATES, N_ITEMS, N_BASKETS, DRAWS = 150, 30, 300, 1000
PRIOR = {"rbf": ([-1.5, 0.0, -0.5], [0.5, 0.5, 0.5]), "linear": ([-1.5, 0.0, 0.0], [0.5, 0.5, 1.0])}
COVERED, LEAST_P = 0.9, 0.01


def replicate(kernel: str, number: int) -> tuple[Floats, bool]:
    """The share of the draws below each true parameter, and whether slices were sampled."""
    rng = np.random.default_rng([number, len(kernel)])
    features = dl.read_features({"item": range(N_ITEMS), "x": rng.standard_normal(N_ITEMS)}, list(range(N_ITEMS)))
    mean, sd = map(np.array, PRIOR[kernel])
    theta = mean + sd * rng.standard_normal(len(mean))
    law = dl.DPP(dl.Kernel.from_L(NAMED[kernel][0](theta, np.asarray(features.matrix))))
    baskets = dl.Baskets.from_lists(law.sample(N_BASKETS, rng=rng), n_items=N_ITEMS)
    found = dl.posterior(
        baskets, features=features, kernel=kernel, prior=PRIOR[kernel], draws=DRAWS, nonempty=False, rng=rng, threads=1
    )
    return found.weights @ (found.draws < theta), found.sampler == "slice"


def main() -> None:
    shown = Table(
        "kernel", "parameter", "KS p (≥ .01)", "in 90% intervals", "by slices",
        title=f"{REPLICATES} replicates of {N_BASKETS} baskets of {N_ITEMS} items, {DRAWS:,} draws each",
    )  # fmt: skip
    began = time.perf_counter()
    for kernel in NAMED:
        every = [replicate(kernel, number) for number in range(REPLICATES)]
        ranks, slices = np.array([each[0] for each in every]), sum(each[1] for each in every)
        for name, column in zip(("(all items)", "feature", NAMED[kernel][1]), ranks.T, strict=True):
            p = float(kstest(column, "uniform").pvalue)
            inside = float((np.abs(column - 0.5) <= COVERED / 2).mean())
            shown.add_row(kernel, name, f"{p:.3f} ({'yes' if p >= LEAST_P else 'NO'})", f"{inside:.3f}", str(slices))
    Console(width=110).print(shown)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
