"""What it is worth to know something of items that no basket has held: `python -m benchmarks.cold_start`.

A fifth of the items is left out of the training baskets and added afterwards: as half a count would have it, at the
average probability of the others, by features, and, for comparison, at the frequency that they really had in training.
Mean log-likelihood of the test baskets that hold at least one of them, and of all, as gain over half a count.
"""

from __future__ import annotations

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source
from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Label
from dpplearn.kernels.extending import with_independent
from dpplearn.kernels.independent import before_truncation

EVERY = 5  # one in so many items is new
SIGNALS = (0.0, 0.5, 0.8, 0.95)  # of the variance of log-odds, the share that features explain


def gains(train: dl.Baskets, test: dl.Baskets, features: dict[str, list[object]]) -> tuple[Floats, str]:
    """Of the average, of features and of the truth over half a count, in nats per test basket that holds a new item."""
    items = list(train.items)
    new, old = items[::EVERY], [item for place, item in enumerate(items) if place % EVERY]
    seen = train.of_items(old)
    seen = seen.subset(seen.sizes > 0)
    model = dl.fit(seen, model="dpp", prior=np.inf, nonempty=True).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.InputWarning)
        by_features = model.with_items(new, features=features)
    law, n = model.law, train.total_weight
    truth = before_truncation(train.frequencies())[::EVERY]
    laws = [
        with_independent(law, np.full(len(new), 0.5 / (n + 1))),
        model.with_items(new).law,
        by_features.law,
        with_independent(law, np.clip(truth, 0.5 / (n + 1), 1 - 1e-9)),
    ]
    held = np.isin(np.arange(len(items)), np.arange(0, len(items), EVERY))
    holds = np.array([held[list(test.positions(row))].any() for row in range(len(test))], dtype=bool)
    found = []
    for asked in (test.subset(holds).over(by_features.catalogue), test.over(by_features.catalogue)):
        values = np.array([each.mean_log_likelihood(asked) for each in laws])
        found.append(values[1:] - values[0])
    return np.concatenate(found), (by_features.learned.added or "").split("(held-out ")[-1].rstrip(")")


def made(signal: float, rng: np.random.Generator) -> tuple[dl.Baskets, dl.Baskets, dict[str, list[object]]]:
    """Independent items whose log-odds follow a feature so far."""
    n = 100
    x, noise = rng.standard_normal((2, n))
    p = 1 / (1 + np.exp(3.5 - np.sqrt(signal) * x - np.sqrt(1 - signal) * noise))
    names = [f"item {i:03d}" for i in range(n)]
    sets = dl.DPP(dl.Kernel.from_K(np.diag(p)), names, nonempty=True).sample(6000, rng=rng)
    baskets = dl.Baskets.from_lists(sets, items=names)
    return *baskets.split(0.7, rng=0), {"item": names, "x": x.tolist()}


def of_names(items: tuple[Label, ...]) -> dict[str, list[object]]:
    """What a name says: the brand, which comes first, and how long it is."""
    words = [str(item).split() for item in items]
    return {
        "item": list(items),
        "brand": [each[0] for each in words],
        "words": [len(each) for each in words],
        "letters": [len(str(item)) for item in items],
    }


def main() -> None:
    shown = Table(
        "data", "average", "features", "truth", "all: average", "features", "truth", "held-out",
        title="Gain over half a count, nats per test basket that holds a new item, and per test basket",
    )  # fmt: skip
    for signal in SIGNALS:
        found, r2 = gains(*made(signal, np.random.default_rng(1)))
        shown.add_row(f"made, {signal:.0%} of the variance", *(f"{each:.3f}" for each in found), r2)
    for category in source().chosen([]):
        train, test = source().split(category, 0)
        found, r2 = gains(train, test, of_names(train.items))
        shown.add_row(category, *(f"{each:.3f}" for each in found), r2)
    Console().print(shown)


if __name__ == "__main__":
    main()
