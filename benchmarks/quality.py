"""Whether weights of quality and their errors can be believed: `python -m benchmarks.quality`.

Baskets are drawn from a known truth, learned from, and the truth is looked for within the intervals, 60 times over:
with a weight per item and with features, under both laws.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.fitting.quality_result import COVERED
from dpplearn.learners.quality.blend import Blend

REPLICATES, N_ITEMS, N_KINDS, N_BASKETS = 60, 20, 5, 2000
TRUE_STRENGTHS = np.array([0.3, 0.5])
TRUE_WEIGHTS = np.array([-0.5, 0.6, -0.4])  # of all items, and of two features
SPREAD, COVERAGE = (0.8, 1.25), (0.90, 0.97)


def z_scores(replicate: int, *, features: bool, nonempty: bool) -> tuple[Floats, Floats]:
    """How far weights and strengths are from the truth, in standard errors."""
    rng = np.random.default_rng([replicate, features, nonempty])
    kinds = np.arange(N_ITEMS) % N_KINDS
    X = rng.standard_normal((N_ITEMS, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    u = TRUE_WEIGHTS[0] + X @ TRUE_WEIGHTS[1:] + (0 if features else 0.3 * rng.standard_normal(N_ITEMS))
    S = Blend(((kinds[:, None] == kinds).astype(float),), uniform=True).matrix(TRUE_STRENGTHS, N_ITEMS)
    law = dl.DPP(dl.Kernel.from_L(np.exp(u / 2)[:, None] * S * np.exp(u / 2)), nonempty=nonempty)
    baskets = dl.Baskets.from_lists(law.sample(N_BASKETS, rng=rng), n_items=N_ITEMS)
    table = {"item": range(N_ITEMS), "x": X[:, 0], "y": X[:, 1]} if features else None
    found = dl.fit(
        baskets, learner="quality", similarity={"kind": kinds.tolist()}, features=table, nonempty=nonempty, ridge=0,
        prior=0, threads=1,
    ).quality  # fmt: skip
    truth = TRUE_WEIGHTS if features else u
    strength_errors = np.sqrt(found.strength_covariance.diagonal())
    return (found.weights - truth) / found.standard_errors, (found.strengths - TRUE_STRENGTHS) / strength_errors


def mark(value: float, within: tuple[float, float]) -> str:
    return f"{value:.3f} ({'yes' if within[0] <= value <= within[1] else 'NO'})"


def main() -> None:
    shown = Table(
        "quality", "law", "of", "z: mean", "z: standard deviation (.8 to 1.25)", "in 95% intervals (.90 to .97)",
        title=f"{REPLICATES} replicates of {N_BASKETS:,} baskets of {N_ITEMS} items",
    )  # fmt: skip
    for features in (False, True):
        for nonempty in (False, True):
            both = [z_scores(replicate, features=features, nonempty=nonempty) for replicate in range(REPLICATES)]
            for what, each in zip(("weights", "strengths"), zip(*both, strict=True), strict=True):
                z = np.concatenate(each)
                z = z[np.isfinite(z)]
                kind, law = "of features" if features else "per item", "not empty" if nonempty else "any set"
                inside = float((np.abs(z) <= COVERED).mean())
                shown.add_row(kind, law, what, f"{z.mean():+.3f}", mark(float(z.std()), SPREAD), mark(inside, COVERAGE))
    Console(width=130).print(shown)


if __name__ == "__main__":
    main()
