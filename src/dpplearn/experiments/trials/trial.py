"""One trial of each experiment on the registries: a job in, a row out. What the columns mean is in `results`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Bools
from dpplearn.data.baskets import Baskets
from dpplearn.experiments.registries import Source, admitted, n_training, off_diagonal_strength
from dpplearn.fitting.fit import fit
from dpplearn.fitting.result import FitResult
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.starts import moments, wishart
from dpplearn.models.dpp import DPP

LEARNER_OF = {"em": "em", "ka": "k-ascent"}  # by the prefix of their columns
PAPER_TOL, SMALL_TOL = 1e-4, 1e-6
MAX_ITER = 10_000  # out of the way: the tolerance is what stops
REGISTRY_SIZE = 10
ZERO = 1e-10  # an eigenvalue below this counts as zero: EM's approach it and do not arrive

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One trial. Together the fields name it; `category` is a kind of kernel where no registries are used."""

    experiment: str
    category: str
    trial: int = 0
    n_items: int | None = None
    n_train: int | None = None
    set_size: int | None = None


def preparation(job: Job, source: Source) -> Row:
    """Sizes and off-diagonal strength of a category, and whether the paper's rule admits it."""
    registries = source.load(job.category)
    return {
        "n_items": registries.n_items,
        "n_train": n_training(registries),
        "n_test": len(registries) - n_training(registries),
        "mean_size": float(registries.sizes.mean()),
        "largest_size": int(registries.sizes.max()),
        "strength": off_diagonal_strength(registries),
        "admitted": admitted(registries),
    }


def wishart_start(job: Job, source: Source, tol: float = PAPER_TOL) -> Row:
    """Both learners from one Wishart start, all training data; the same start whatever the tolerance."""
    train, test = source.split(job.category, job.trial)
    start = wishart(train, source.rng("wishart", job.category, job.trial))
    fits = both(train, start, tol)
    first = fit(train, "k-ascent", start=start, max_iter=1, threads=1).kernel
    row = compared(fits, train, test)
    row |= {f"{name}_set": [str(item) for item in each.dpp.greedy_map(REGISTRY_SIZE)] for name, each in fits.items()}
    return {
        **row,
        "ka_first_zeros": int(np.count_nonzero(first.eigenvalues == 0)),
        "ka_first_ones": int(np.count_nonzero(first.at_one)),
    }


def wishart_start_to_small_tolerance(job: Job, source: Source) -> Row:
    return wishart_start(job, source, SMALL_TOL)


def moments_start(job: Job, source: Source) -> Row:
    """Both learners from the moments of all training data."""
    train, test = source.split(job.category, job.trial)
    return compared(both(train, moments(train, source.rng("moments"))), train, test)


def moments_start_of_few(job: Job, source: Source) -> Row:
    """Both learners from the moments of 2N training sets.

    Three views of the test sets, since some have probability zero under the models: all of them; those whose items
    all occur in training; those that are possible under both models.
    """
    train, test = source.split(job.category, job.trial)
    few = first_2N(train)
    fits = both(few, moments(few, source.rng("moments")))
    log_probs = {name: each.dpp.log_prob(test) for name, each in fits.items()}
    occurs = few.frequencies() > 0
    seen = only_of(test, occurs)
    possible = np.isfinite(log_probs["em"]) & np.isfinite(log_probs["ka"])
    row = compared(fits, few, test)
    row |= {
        "n_unseen_items": int(np.count_nonzero(~occurs)),
        "n_test_seen": int(np.count_nonzero(seen)),
        "n_test_possible": int(np.count_nonzero(possible)),
    }
    for name, values in log_probs.items():
        row[f"{name}_impossible"] = int(np.count_nonzero(np.isneginf(values)))
        for view, chosen in {"seen": seen, "possible": possible}.items():
            row[f"{name}_test_{view}"] = float(values[chosen].mean()) if chosen.any() else float("nan")
    return row


def first_2N(train: Baskets) -> Baskets:
    """Twice as many sets as items, the paper's data-poor setting. A split is in random order."""
    return train.subset(np.arange(2 * train.n_items))


def diagonal_start(job: Job, source: Source) -> Row:
    """Both learners from a diagonal kernel, whose items all have probability one half."""
    train, test = source.split(job.category, job.trial)
    start = Kernel(np.full(train.n_items, 0.5), np.eye(train.n_items))
    return compared(both(train, start), train, test)


def both(train: Baskets, start: Kernel, tol: float = PAPER_TOL) -> dict[str, FitResult]:
    """EM and K-Ascent from the same start."""
    return {
        name: fit(train, learner, start=start, tol=tol, max_iter=MAX_ITER, threads=1)
        for name, learner in LEARNER_OF.items()
    }


def compared(fits: dict[str, FitResult], train: Baskets, test: Baskets) -> Row:
    baseline = DPP(independent(train), train.items)
    row: Row = {
        "n_items": train.n_items,
        "n_train": len(train),
        "n_distinct": fits["em"].dpp.learned.n_distinct,
        "n_test": len(test),
        "independent_train": baseline.log_likelihood(train),
        "independent_test": baseline.log_likelihood(test),
    }
    for name, each in fits.items():
        row |= {f"{name}_{column}": value for column, value in _outcome(each, test).items()}
    return row


def _outcome(result: FitResult, test: Baskets) -> Row:
    lam = result.kernel.eigenvalues
    return {
        "train": result.log_likelihood,
        "test": result.dpp.log_likelihood(test),
        "iterations": result.n_iter,
        "stop": result.stop.name,
        "seconds": float(result.history.seconds[-1]),
        "off_diagonal": off_diagonal_share(result.kernel),
        "zeros": int(np.count_nonzero(lam < ZERO)),
    }


def off_diagonal_share(kernel: Kernel) -> float:
    """Σ_{i≠j} K_ij² / Σ_ij K_ij²."""
    squares = kernel.K**2
    total = squares.sum()
    np.fill_diagonal(squares, 0)
    return float(squares.sum() / total)


def only_of(baskets: Baskets, items: Bools) -> Bools:
    """Which baskets hold none but these items."""
    rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
    others = np.bincount(rows, weights=~items[baskets.indices], minlength=len(baskets))
    return np.asarray(others == 0)
