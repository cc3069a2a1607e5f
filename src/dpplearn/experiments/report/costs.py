"""The tables of what learning costs: runtime ratios, and how an iteration as printed grows."""

from __future__ import annotations

import math

from dpplearn.experiments.report.measures import exponent, mean, median
from dpplearn.experiments.results import Results, Table
from dpplearn.experiments.trials.trial import Row


def runtime(results: Results) -> Table | None:
    """KA/EM: of the algorithms as printed, and of the library's learners."""
    lines: list[Table] = []
    for category in results.categories("wishart"):
        printed, library = results.of("wishart as printed", category), results.of("wishart", category)
        lines.append(
            {
                "category": category,
                "n_items": library[0]["n_items"],
                "n_distinct": median(row["n_distinct"] for row in library),
                "printed_trials": len(printed),
                "printed_ratio": median(ratio(row) for row in printed),
                "printed_em_seconds": median(row["em_seconds"] for row in printed),
                "printed_ka_seconds": median(row["ka_seconds"] for row in printed),
                "library_trials": len(library),
                "library_ratio": median(ratio(row) for row in library),
                "library_em_seconds": median(row["em_seconds"] for row in library),
                "library_ka_seconds": median(row["ka_seconds"] for row in library),
                "em_iterations": median(row["em_iterations"] for row in library),
                "ka_iterations": median(row["ka_iterations"] for row in library),
            }
        )
    if not lines:
        return None
    return {
        "categories": lines,
        "printed_average": mean(line["printed_ratio"] for line in lines if math.isfinite(line["printed_ratio"])),
        "library_average": mean(line["library_ratio"] for line in lines),
        "paper_average": results.paper["runtime_ratio_KA_over_EM_average"] if results.paper else None,
        "disagreement": max(
            (abs(each["ka_test"] - _twin(results, each)["ka_test"]) for each in results.of("wishart as printed")),
            default=None,
        ),
    }


def ratio(row: Row) -> float:
    return float(row["ka_seconds"] / row["em_seconds"])


def _twin(results: Results, row: Row) -> Row:
    """The library's trial with the same split and start."""
    return next(each for each in results.of("wishart", row["category"]) if each["trial"] == row["trial"])


COLUMN_OF = {"n": "n_train", "N": "n_items", "k": "set_size"}

# What the paper says an iteration costs, as exponents; EM's part over the examples is O(n N k²), K-Ascent's O(n N³).
PRINTED_EXPONENTS = {
    "n": {"em": 1, "ka": 1, "em_matrix": 0, "ka_matrix": 0},
    "N": {"em": 1, "ka": 3, "em_matrix": 3, "ka_matrix": 3},
    "k": {"em": 2, "ka": 0, "em_matrix": 0, "ka_matrix": 0},
}


def growth(results: Results) -> Table | None:
    """Exponents of the time of one iteration: over all sizes, and over the last doubling, nearer to the limit."""
    axes = []
    for axis, grows in COLUMN_OF.items():
        rows = sorted(results.of("growth", axis), key=lambda row: int(row[grows]))
        if len(rows) < 2:
            continue
        sizes = [row[grows] for row in rows]
        times = {name: [row[f"{name}_seconds"] for row in rows] for name in PRINTED_EXPONENTS[axis]}
        first = rows[0]
        axes.append(
            {
                "axis": axis,
                "sizes": sizes,
                "fixed": {name: first[column] for name, column in COLUMN_OF.items() if name != axis},
                "seconds": times,
                "exponents": {name: exponent(sizes, found) for name, found in times.items()},
                "last": {name: exponent(sizes[-2:], found[-2:]) for name, found in times.items()},
                "printed": PRINTED_EXPONENTS[axis],
            }
        )
    return {"axes": axes} if axes else None
