"""What a mixture of given kernels is worth on the registries: `python -m benchmarks.fixed_kernels`.

Ten given kernels: DPPs with priors of 0, 0.1, 1 and inf (independent items) times the data, and one of each of six
random sixths of the training baskets. Mean test log-likelihood given that a basket is not empty, as gain over
independent items; beside it the mixture that fit learns.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source

PRIORS = (np.inf, 0.0, 0.1, 1.0)
PARTS = 6
CATEGORIES = ("safety", "strollers", "carseats", "bath", "media", "apparel")


def row(category: str) -> list[str]:
    train, test = source().split(category, 0)
    parts = np.random.default_rng(0).integers(PARTS, size=len(train))
    given = [dl.fit(train, model="dpp", prior=prior, nonempty=True, rng=0).model for prior in PRIORS]
    given += [
        dl.fit(train.subset(parts == part), model="dpp", prior=0.3, nonempty=True, rng=0).model for part in range(PARTS)
    ]
    began = time.perf_counter()
    fit = dl.fit(train, model="mixture", kernels=given)
    seconds = time.perf_counter() - began
    weights = np.sort(fit.model.kernel.weights)[::-1]
    alone = [each.log_likelihood(test) for each in given]
    learned = dl.fit(train, rng=0).model.log_likelihood(test)
    figures = [max(alone[1:]) - alone[0], fit.model.log_likelihood(test) - alone[0], learned - alone[0]]
    return [
        category,
        *(f"{each:+.3f}" for each in figures),
        f"{(weights > 1e-6).sum()} of {len(weights)}",
        f"{weights[0]:.2f}",
        f"{fit.model.learned.to_gain:.0e}",
        f"{fit.n_iter}",
        f"{seconds:.2f}",
    ]


def main() -> None:
    shown = Table(
        "category", "best given kernel", "given kernels by weights", "mixture that fit learns", "kernels with weight",
        "largest weight", "still to gain", "steps", "s", title="Gain over independent items, nats per basket",
    )  # fmt: skip
    for category in sys.argv[1:] or CATEGORIES:
        shown.add_row(*row(category))
    Console().print(shown)


if __name__ == "__main__":
    main()
