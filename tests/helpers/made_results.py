"""Results made up for two categories, small enough to check by eye what tables, claims and figures make of them."""

from __future__ import annotations

import math
from typing import Any

from dpplearn.experiments.results import About, Results, full_row
from dpplearn.experiments.trials.trial import Job, Row

INF = math.inf
COMMAND = "dpplearn reproduce --seed 0"
PAPER: dict[str, Any] = {
    "source": "a paper",
    "categories": {
        "alpha": {
            "n_items": 30,
            "training_registries": 700,
            "wishart": [9.0, 10.0, 11.0],
            "moments_all": 0.5,
            "moments_2N": [1.0, 2.0, 3.0],
        },
        "beta": {
            "n_items": 40,
            "training_registries": 1400,
            "wishart": [1.0, 2.0, 3.0],
            "moments_all": 1.5,
            "moments_2N": [4.0, 5.0, 6.0],
        },
        "safety": {
            "n_items": 50,
            "training_registries": 2100,
            "wishart": [0.4, 0.5, 0.6],
            "moments_all": 0.0,
            "moments_2N": [4.0, 5.0, 6.0],
        },
    },
    "averages": {"wishart": 3.76, "moments_all": 0.41, "moments_2N": 4.55},
    "runtime_ratio_KA_over_EM_average": 2.1,
}
SIZES = {"alpha": (30, 700), "beta": (40, 1400), "safety": (50, 2100)}
GAINS = {"alpha": (9.0, 10.0, 11.5), "beta": (1.5, 2.0, 2.5), "safety": (0.4, 0.5, 8.0)}


def made_results(paper: bool = True, data: str = "original") -> Results:
    rows = [*_registries(), *_growth(), *_recovery(), _authors()]
    about = About(0, data, "digest", "0.1.0")
    return Results(about, tuple(rows), "2026-01-02T03:04:05+00:00", PAPER if paper else None, COMMAND)


def duel(gain: float, *, off_diagonal: float = 0.2, **more: Any) -> Row:
    """Two learners whose test likelihoods are `gain` per cent apart, K-Ascent's being -10."""
    row = {"em_test": -10 + gain / 10, "ka_test": -10.0, "em_train": -9.0, "ka_train": -9.5, "independent_train": -9.6}
    row |= {"em_iterations": 30, "ka_iterations": 10, "em_seconds": 2.0, "ka_seconds": 3.0, "independent_test": -10.1}
    row |= {"em_off_diagonal": 0.9, "ka_off_diagonal": off_diagonal, "em_zeros": 0, "ka_zeros": 1}
    return row | more


def _registries() -> list[Row]:
    rows = []
    for category, (N, n) in SIZES.items():
        size = {"n_items": N, "n_train": n, "n_distinct": n // 2, "n_test": 300}
        found = {"mean_size": 2.0, "largest_size": 7, "strength": 1.05 / N, "admitted": True}
        rows.append(full_row(Job("preparation", category), {**size, **found}))
        first = {"ka_first_zeros": 20, "ka_first_ones": 0}
        sets = {"em_set": ["a <b>bold</b> item", "a 'quoted', item"], "ka_set": ["a <b>bold</b> item"]}
        for trial, gain in enumerate(GAINS[category]):
            escaped = 0.85 if trial == 2 else 0.2
            row = duel(gain, off_diagonal=escaped, **size, **first, **sets)
            rows.append(full_row(Job("wishart", category, trial), row))
            rows.append(full_row(Job("wishart to 1e-6", category, trial), {**row, **duel(0.1, **size)}))
            rows.append(full_row(Job("moments", category, trial), duel(gain / 10, **size)))
            rows.append(full_row(Job("moments of 2N", category, trial), _few(trial, size)))
        printed = {"em_test_unruled": -12.0, "ka_test_unruled": -12.5}
        rows.append(full_row(Job("wishart as printed", category), duel(GAINS[category][0], **size, **printed)))
        rows.append(full_row(Job("moments as printed", category), duel(0.0, **size, **printed)))
        rows.append(full_row(Job("moments of 2N as printed", category), duel(0.0, **size, **printed)))
        rows.append(
            full_row(Job("diagonal", category), duel(0.0, **size) | {"em_off_diagonal": 0, "ka_off_diagonal": 0})
        )
    return rows


def _few(trial: int, size: Row) -> Row:
    row = duel(1.0, **size, n_unseen_items=4, n_test_seen=240, n_test_possible=200)
    row |= {"em_test": -INF, "ka_test": -INF, "em_impossible": 60, "ka_impossible": 61}
    row |= {"em_test_seen": -8.0, "ka_test_seen": -INF if trial else -10.0}
    return row | {"em_test_possible": -7.0, "ka_test_possible": -8.0}


def _growth() -> list[Row]:
    rows = []
    for axis, powers in {"n": (1, 1), "N": (1, 3), "k": (2, 0)}.items():
        for factor in (1, 2, 4):
            size = {"n": 100, "N": 50, "k": 5}
            size[axis] *= factor
            times = {"em_seconds": factor ** powers[0], "ka_seconds": factor ** powers[1]}
            times |= {"em_matrix_seconds": size["N"] ** 3, "ka_matrix_seconds": size["N"] ** 3}
            row = {"n_train": size["n"], "n_items": size["N"], "set_size": size["k"], **times}
            rows.append(full_row(Job("growth", axis, 0, size["N"], size["n"], size["k"]), row))
    return rows


def _recovery() -> list[Row]:
    rows = []
    for kind in ("wishart", "clustered"):
        for N in (20, 40):
            for n in (2 * N, 100 * N):
                row: Row = {"n_items": N, "n_train": n, "truth_test": -5.0}
                for model, kl in {"em": 0.1, "ka": 0.3 if n > 100 else INF, "independent": 0.2}.items():
                    row |= {f"{model}_kl": kl, f"{model}_kl_error": 0.01, f"{model}_test": -5 - kl}
                rows.append(full_row(Job("recovery", kind, 0, N, n), row))
    return rows


def _authors() -> Row:
    row = {f"{whose}{name}_test": -5.0 for whose in ("", "authors_") for name in ("em", "ka")}
    row |= {f"{whose}{name}_iterations": 9 for whose in ("", "authors_") for name in ("em", "ka")}
    return full_row(Job("authors", "alpha_wishart_0"), {**row, "ka_test": -5.0 + 3e-8})
