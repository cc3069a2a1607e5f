"""Whether weights of quality and their errors can be believed: `python -m benchmarks.quality`.

Baskets are drawn from a known truth, learned from, and the truth is looked for within the intervals, 60 times over:
with a weight per item and with features, under both laws, with the similarity given and with its strengths learned.
Baskets are small, or so large that hardly one is empty: there the strength of a uniform similarity is hard to tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.fitting.quality_result import COVERED
from dpplearn.learners.quality.blend import Blend

REPLICATES, N_ITEMS, N_KINDS = 60, 20, 5
SETTINGS = {"small": (-2.0, 4000), "large": (-0.5, 2000)}  # the weight of all items, and how many baskets
TRUE_STRENGTHS = np.array([0.3, 0.5])
TRUE_SLOPES = np.array([0.6, -0.4])  # of two features
SPREAD, COVERAGE = (0.8, 1.25), (0.90, 0.97)


def z_scores(setting: str, replicate: int, *, features: bool, nonempty: bool, learned: bool) -> tuple[Floats, Floats]:
    """How far weights and strengths are from the truth, in standard errors."""
    rng = np.random.default_rng([replicate, features, nonempty])
    level, n_baskets = SETTINGS[setting]
    kinds = np.arange(N_ITEMS) % N_KINDS
    X = rng.standard_normal((N_ITEMS, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    u = level + X @ TRUE_SLOPES + (0 if features else 0.3 * rng.standard_normal(N_ITEMS))
    S = Blend(((kinds[:, None] == kinds).astype(float),), uniform=True).matrix(TRUE_STRENGTHS, N_ITEMS)
    law = dl.DPP(dl.Kernel.from_L(np.exp(u / 2)[:, None] * S * np.exp(u / 2)), nonempty=nonempty)
    baskets = dl.Baskets.from_lists(law.sample(n_baskets, rng=rng), n_items=N_ITEMS)
    similarity = {"kind": kinds.tolist()} if learned else S
    table = {"item": range(N_ITEMS), "x": X[:, 0], "y": X[:, 1]} if features else None
    found = dl.fit(
        baskets,
        learner="quality",
        similarity=similarity,
        features=table,
        nonempty=nonempty,
        ridge=0,
        prior=0,
        threads=1,
    ).quality
    truth = np.array([level, *TRUE_SLOPES]) if features else u
    strength_errors = np.sqrt(found.strength_covariance.diagonal())
    of_strengths = (found.strengths - TRUE_STRENGTHS) / strength_errors if learned else np.zeros(0)
    return (found.weights - truth) / found.standard_errors, of_strengths


def mark(value: float, within: tuple[float, float]) -> str:
    return f"{value:.3f} ({'yes' if within[0] <= value <= within[1] else 'NO'})"


def rows(setting: str, features: bool, nonempty: bool, learned: bool) -> Iterator[list[str]]:
    """One of the weights and, where they are learned, one of the strengths; those at a bound have no error."""
    both = [
        z_scores(setting, replicate, features=features, nonempty=nonempty, learned=learned)
        for replicate in range(REPLICATES)
    ]
    told = [
        setting,
        "of features" if features else "per item",
        "not empty" if nonempty else "any set",
        "strengths learned" if learned else "given",
    ]
    for what, each in zip(("weights", "strengths"), zip(*both, strict=True), strict=True):
        z = np.concatenate(each)
        if len(z):
            z, lost = z[np.isfinite(z)], int((~np.isfinite(z)).sum())
            inside = float((np.abs(z) <= COVERED).mean())
            figures = [f"{z.mean():+.3f}", mark(float(z.std()), SPREAD), mark(inside, COVERAGE), str(lost)]
            yield [*told, what, *figures]


def main() -> None:
    shown = Table(
        "baskets", "quality", "law", "similarity", "of", "z: mean", "z: standard deviation\n(.8 to 1.25)",
        "in 95% intervals\n(.90 to .97)", "at a bound",
        title=f"{REPLICATES} replicates, {N_ITEMS} items",
    )  # fmt: skip
    choices = product(SETTINGS, (False, True), (False, True), (False, True))
    for setting, learned, features, nonempty in choices:
        for row in rows(setting, features, nonempty, learned):
            shown.add_row(*row)
    Console(width=140).print(shown)


if __name__ == "__main__":
    main()
