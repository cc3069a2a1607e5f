"""The experiments: which trials each has, and what one trial computes.

An experiment is a function that takes a `Source` and a `Trial` and returns one row of results. Prefixes of the columns:
`em_` for EM, `ka_` for K-Ascent, `independent_` for independent items. Log-likelihoods are means per registry, in nats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpplearn import DPP, Baskets, FitResult, fit_dpp
from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.starts import moments, wishart
from reproduction import textbook
from reproduction.data import Source, off_diagonal_strength

LEARNERS = {"em": "em", "ka": "k-ascent"}  # by column prefix
TOL, SMALL_TOL = 1e-4, 1e-6  # the paper's relative change, and a smaller one
MAX_ITER = 10_000  # out of reach: the tolerance ends every run
GREEDY_SIZE = 10
ZERO_EIGENVALUE = 1e-10  # EM's eigenvalues approach zero without reaching it

Row = dict[str, Any]
Floats = NDArray[np.float64]


class Trial(NamedTuple):
    """One trial of an experiment. `category` is a recorded run in the experiment authors."""

    experiment: str
    category: str
    number: int = 0


@dataclass(frozen=True)
class Scale:
    """The number of trials per category."""

    trials: int
    small_tol: int
    textbook: int
    textbook_2N: int


FULL = Scale(25, 10, 2, 5)
QUICK = Scale(3, 3, 1, 1)
QUICK_CATEGORIES = ("strollers", "safety", "carseats", "furniture")


def registries(source: Source, trial: Trial) -> Row:
    """Describe a category: sizes and the statistic d."""
    found = source.load(trial.category)
    train, _ = source.split(trial.category, 0)
    return {
        "n_items": found.n_items,
        "n_train": len(train),
        "mean_size": float(found.sizes.mean()),
        "d": off_diagonal_strength(found),
    }


class Problem(NamedTuple):
    """Training sets, test sets and the initial kernel of both learners."""

    train: Baskets
    test: Baskets
    start: DPP


def problem_of(source: Source, trial: Trial, init: str) -> Problem:
    """Return the split of a trial with the initial kernel `init`: wishart, moments, moments_2N or diagonal.

    The training sets are in random order. moments_2N keeps the first 2N of them.
    """
    train, test = source.split(trial.category, trial.number)
    N = train.n_items
    if init == "wishart":
        start = wishart(train, source.rng("wishart", trial.category, trial.number))
    elif init == "diagonal":
        start = SpectralDPP(np.full(N, 0.5), np.eye(N))
    else:
        train = train.subset(np.arange(2 * N)) if init == "moments_2N" else train
        start = moments(train, source.rng("moments"))
    return Problem(train, test, DPP(start, train.items))


def wishart_start(source: Source, trial: Trial, tol: float = TOL) -> Row:
    """Compare the learners from a Wishart kernel; add greedy sets and the first step of K-Ascent."""
    problem = problem_of(source, trial, "wishart")
    fits = fit_both(problem, tol)
    first = fit_dpp(problem.train, "k-ascent", start=problem.start, max_iter=1, threads=1).model.kernel
    row = compare(fits, problem)
    for name, result in fits.items():
        row[f"{name}_greedy_set"] = [str(item) for item in result.model.greedy_map(GREEDY_SIZE)]
    row["ka_first_zeros"] = int(np.count_nonzero(first.eigenvalues == 0))
    return row


def moments_start_2N(source: Source, trial: Trial) -> Row:
    """Compare EM and K-Ascent, both started from the moments of 2N training sets.

    Some test sets have probability zero. Hence the row has three test log-likelihoods: `test` over all test sets,
    `test_seen` over those whose items all occur in training, `test_possible` over those that both models allow.
    """
    problem = problem_of(source, trial, "moments_2N")
    fits = fit_both(problem)
    row = compare(fits, problem)
    test = problem.test
    log_probs = {name: result.model.log_prob(test) for name, result in fits.items()}
    unseen = problem.train.frequencies() == 0
    basket_of = np.repeat(np.arange(len(test)), test.sizes)
    seen = np.bincount(basket_of, weights=unseen[test.indices], minlength=len(test)) == 0
    possible = np.isfinite(log_probs["em"]) & np.isfinite(log_probs["ka"])
    for subset, chosen in {"seen": seen, "possible": possible}.items():
        for name, values in log_probs.items():
            row[f"{name}_test_{subset}"] = float(values[chosen].mean()) if chosen.any() else float("nan")
    return row


def fit_both(problem: Problem, tol: float = TOL) -> dict[str, FitResult[DPP]]:
    """Run EM and K-Ascent from the same initial kernel."""
    return {
        name: fit_dpp(problem.train, learner, start=problem.start, tol=tol, max_iter=MAX_ITER, threads=1)
        for name, learner in LEARNERS.items()
    }


def run_learners(source: Source, trial: Trial, init: str) -> Row:
    """Fit both learners and compare them."""
    problem = problem_of(source, trial, init)
    return compare(fit_both(problem), problem)


def compare(fits: dict[str, FitResult[DPP]], problem: Problem) -> Row:
    """Return log-likelihoods, iterations, runtimes and properties of the kernels of both learners."""
    train, test, _ = problem
    baseline = DPP(independent(train), train.items)
    row = {"n_items": train.n_items, "independent_test": baseline.log_likelihood(test)}
    for name, result in fits.items():
        outcome = {
            "train": result.log_likelihood,
            "test": result.model.log_likelihood(test),
            "iterations": result.n_iter,
            "seconds": float(result.history.seconds[-1]),
            "off_diagonal": off_diagonal_share(result.model.kernel.K),
            "zeros": int(np.count_nonzero(result.model.kernel.eigenvalues < ZERO_EIGENVALUE)),
        }
        row |= {f"{name}_{column}": value for column, value in outcome.items()}
    return row


def off_diagonal_share(K: Floats) -> float:
    """Return Σ_{i≠j} K_ij² / Σ_ij K_ij²."""
    squares = K**2
    total = squares.sum()
    np.fill_diagonal(squares, 0)
    return float(squares.sum() / total)


def run_textbook(source: Source, trial: Trial, init: str) -> Row:
    """Run both printed algorithms; return runtimes, iterations and log-likelihoods."""
    train, test, start = problem_of(source, trial, init)
    data = train.deduplicated()
    sets = index_sets(data)
    row: Row = {}
    for name, algorithm in {"em": textbook.em, "ka": textbook.k_ascent}.items():
        began = time.perf_counter()
        trace = algorithm(start.K, sets, data.weights, max_iter=MAX_ITER)
        seconds = time.perf_counter() - began
        model = DPP(SpectralDPP(trace.eigenvalues, trace.eigenvectors), train.items)
        row |= {
            f"{name}_seconds": seconds,
            f"{name}_iterations": len(trace.objective) - 1,
            f"{name}_train": model.log_likelihood(train),
            f"{name}_test": model.log_likelihood(test),
            f"{name}_test_unchecked": unchecked_log_likelihood(trace.K, test),
        }
    return row


def index_sets(baskets: Baskets) -> list[textbook.IndexSet]:
    return [items.astype(np.int64) for items in np.split(baskets.indices, baskets.offsets[1:-1])]


def unchecked_log_likelihood(K: Floats, baskets: Baskets) -> float:
    """Return mean log|det(K − I_Ȳ)| without a test for zero: an impossible set contributes rounding errors."""
    data = baskets.deduplicated()
    determinants = [np.linalg.det(K - textbook.identity_outside(Y, len(K))) for Y in index_sets(data)]
    with np.errstate(divide="ignore"):
        return float(np.average(np.log(np.abs(determinants)), weights=data.weights))


def recorded_run(source: Source, name: str) -> tuple[Problem, dict[str, Any]]:
    """Return the split and the initial kernel of a recorded run of the authors' program, and all its arrays."""
    with np.load(source.authors_runs[name]) as run:
        recorded = dict(run)
    found = source.load(name.split("_")[0])
    train, test = (found.subset(recorded[rows]) for rows in ("train_rows", "test_rows"))
    return Problem(train, test, DPP.from_K(recorded["K_start"], train.items)), recorded


def authors_run(source: Source, trial: Trial) -> Row:
    """Repeat a recorded run."""
    problem, recorded = recorded_run(source, trial.category)
    train, test, _ = problem
    fits = fit_both(problem)
    em = fits["em"].model.kernel
    # Their program raises EM's capped eigenvalues to 1 before it computes test log-likelihoods.
    raised = SpectralDPP(textbook.raise_capped(em.eigenvalues), em.eigenvectors)
    row: Row = {}
    for name, model in {"em": DPP(raised, train.items), "ka": fits["ka"].model}.items():
        row |= {
            f"{name}_test": model.log_likelihood(test),
            f"{name}_iterations": fits[name].n_iter,
            f"authors_{name}_test": float(recorded[f"{name}_test"]),
            f"authors_{name}_iterations": len(recorded[f"{name}_objective"]) - 1,
        }
    return row


EXPERIMENTS: dict[str, Callable[[Source, Trial], Row]] = {
    "registries": registries,
    "wishart": wishart_start,
    "wishart_small_tol": partial(wishart_start, tol=SMALL_TOL),
    "moments": partial(run_learners, init="moments"),
    "moments_2N": moments_start_2N,
    "diagonal": partial(run_learners, init="diagonal"),
    "wishart_textbook": partial(run_textbook, init="wishart"),
    "moments_textbook": partial(run_textbook, init="moments"),
    "moments_2N_textbook": partial(run_textbook, init="moments_2N"),
    "authors": authors_run,
}


def plan(source: Source, categories: Sequence[str], scale: Scale) -> list[Trial]:
    """Return all trials, those that take longest first."""
    repeated = {
        "wishart_textbook": scale.textbook,
        "moments_textbook": scale.textbook,
        "moments_2N_textbook": scale.textbook_2N,
        "wishart_small_tol": scale.small_tol,
        "moments_2N": scale.trials,
        "wishart": scale.trials,
        "moments": scale.trials,
        "diagonal": 1,
        "registries": 1,
    }
    on_registries = [
        Trial(experiment, category, number)
        for experiment, trials in repeated.items()
        for number in range(trials)
        for category in categories
    ]
    authors = [Trial("authors", name) for name in source.authors_runs if name.split("_")[0] in categories]
    return [*on_registries, *authors]
