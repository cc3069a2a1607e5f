"""What the missing empty baskets are worth: `python -m benchmarks.nonempty`.

Independent items and maximum likelihood, learned with and without the condition that baskets are not empty, and judged
by the test part of a split both ways.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source


def row(category: str) -> list[str]:
    train, test = source().split(category, 0)
    independent = dl.fit(train, prior=np.inf, nonempty=False).dpp
    models = [
        dl.fit(train, prior=np.inf, nonempty=True).dpp,
        dl.fit(train, prior=0, nonempty=False).dpp,
        dl.fit(train, prior=0, nonempty=True).dpp,
    ]
    plain = [model.log_likelihood(test) for model in (independent, models[1])]
    given = [model.log_likelihood(test, nonempty=True) for model in models]
    figures = [*plain, plain[1] - plain[0], *given, given[2] - given[0]]
    share = np.exp(independent.log_prob([]))
    empty = np.exp(models[2].log_prob([]))
    return [category, f"{train.sizes.mean():.2f}", f"{share:.3f}", *(f"{each:.3f}" for each in figures), f"{empty:.4f}"]


def main() -> None:
    shown = Table(
        "category", "items", "P(∅), independent", "independent", "DPP", "gain",
        "given not empty:\nindependent", "DPP", "DPP, nonempty", "gain", "its P(∅)",
        title=f"{source().kind} registries, all data, split 0: mean test log-likelihood",
    )  # fmt: skip
    for category in source().chosen([]):
        shown.add_row(*row(category))
    Console(width=150).print(shown)


if __name__ == "__main__":
    main()
