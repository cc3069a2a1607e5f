"""The tables of the report, from rows: plain data, so that they can be printed as JSON, drawn, and put into words.

Every function takes `Results` and gives a dict, or None where the experiment was not run.
"""

from __future__ import annotations

import math

import numpy as np

from dpplearn.experiments.names import MODELS
from dpplearn.experiments.report.measures import mean, median, quartiles, rank_correlation
from dpplearn.experiments.results import Results, Table, gain
from dpplearn.experiments.trials.trial import Row

ESCAPED = 0.9  # K-Ascent has left the trap when its off-diagonal share is this much of EM's, or more
REGISTRY_CATEGORY = "safety"


def preparation(results: Results) -> Table | None:
    lines = [
        {
            **{name: row[name] for name in ("category", "n_items", "n_train", "mean_size", "largest_size", "admitted")},
            "paper_n_items": results.paper_figure(row["category"], "n_items"),
            "paper_n_train": results.paper_figure(row["category"], "training_registries"),
        }
        for row in results.of("preparation")
    ]
    if not lines:
        return None
    used = [line for line in lines if line["admitted"]]
    known = [line for line in used if line["paper_n_items"] is not None]
    return {
        "categories": lines,
        "n_admitted": len(used),
        "mean_n_items": mean(line["n_items"] for line in used),
        "mean_n_train": mean(line["n_train"] for line in used),
        "n_known": len(known),
        "n_equal": sum(
            (line["n_items"], line["n_train"]) == (line["paper_n_items"], line["paper_n_train"]) for line in known
        ),
    }


def gains(results: Results, experiment: str, paper_column: str) -> Table | None:
    """Quartiles of the relative gain per category, beside the paper's; the averages are of medians, as in the paper."""
    lines: list[Table] = []
    for category in results.categories(experiment):
        rows = results.of(experiment, category)
        each = [value for value in map(gain, rows) if math.isfinite(value)]
        found = quartiles(each)
        paper = results.paper_figure(category, paper_column)
        paper = [None, paper, None] if isinstance(paper, int | float) else paper or [None] * 3
        lines.append(
            {
                "category": category,
                "trials": len(rows),
                "quartiles": found,
                "range": [min(each, default=math.nan), max(each, default=math.nan)],
                "paper": paper,
                "difference": None if paper[1] is None else found[1] - paper[1],
                "em_test": float(np.median([row["em_test"] for row in rows])),
                "ka_test": float(np.median([row["ka_test"] for row in rows])),
                "independent_test": float(np.median([row["independent_test"] for row in rows])),
            }
        )
    if not lines:
        return None
    figures = [line["paper"][1] for line in lines if line["paper"][1] is not None]
    differences = [abs(each) for line in lines if (each := line["difference"]) is not None and math.isfinite(each)]
    return {
        "categories": lines,
        "average": mean(line["quartiles"][1] for line in lines if math.isfinite(line["quartiles"][1])),
        "paper_average": results.paper_average(paper_column),
        "paper_average_of_these": mean(figures) if len(figures) == len(lines) else None,
        "largest_difference": max(differences, default=None),
    }


def wishart(results: Results) -> Table | None:
    return gains(results, "wishart", "wishart")


def moments(results: Results) -> Table | None:
    """With the gains of the algorithms as printed, whose determinants have no rule for zero, in some of the trials."""
    table = gains(results, "moments", "moments_all")
    for line in table["categories"] if table else ():
        printed = results.of("moments as printed", line["category"])
        ours = {row["trial"]: gain(row) for row in results.of("moments", line["category"])}
        line["printed"] = [gain(row, "test_unruled") for row in printed]
        line["same_trials"] = [ours[row["trial"]] for row in printed if row["trial"] in ours]
    return table


def tolerance(results: Results) -> Table | None:
    """The same trials stopped at 1e-4, as in the paper, and run on to 1e-6."""
    lines: list[Table] = []
    for category in results.categories("wishart to 1e-6"):
        small: dict[int, Row] = {row["trial"]: row for row in results.of("wishart to 1e-6", category)}
        paper: dict[int, Row] = {row["trial"]: row for row in results.of("wishart", category) if row["trial"] in small}
        lines.append(
            {
                "category": category,
                "trials": len(small),
                "paper_rule": quartiles(map(gain, paper.values())),
                "small": quartiles(map(gain, small.values())),
                "em_gained": median(small[trial]["em_test"] - paper[trial]["em_test"] for trial in paper),
                "ka_gained": median(small[trial]["ka_test"] - paper[trial]["ka_test"] for trial in paper),
                "ka_iterations": [median(row["ka_iterations"] for row in rows.values()) for rows in (paper, small)],
                "em_iterations": [median(row["em_iterations"] for row in rows.values()) for rows in (paper, small)],
            }
        )
    if not lines:
        return None
    return {
        "categories": lines,
        "average_paper_rule": mean(line["paper_rule"][1] for line in lines),
        "average_small": mean(line["small"][1] for line in lines),
    }


def few(results: Results) -> Table | None:
    """2N training sets: how many draws have a finite test likelihood, and gains over the test sets that allow one."""
    lines: list[Table] = []
    for category in results.categories("moments of 2N"):
        rows = results.of("moments of 2N", category)
        paper = results.paper_figure(category, "moments_2N")
        views = {
            name: [gain(row, column) for row in rows]
            for name, column in (("all", "test"), ("seen", "test_seen"), ("possible", "test_possible"))
        }
        printed = results.of("moments of 2N as printed", category)
        views["printed"] = [gain(row, "test_unruled") for row in printed]
        lines.append(
            {
                "category": category,
                "draws": len(rows),
                "unseen_items": median(row["n_unseen_items"] for row in rows),
                "seen_share": median(row["n_test_seen"] / row["n_test"] for row in rows),
                "possible_share": median(row["n_test_possible"] / row["n_test"] for row in rows),
                "em_finite": sum(math.isfinite(row["em_test"]) for row in rows),
                "ka_finite": sum(math.isfinite(row["ka_test"]) for row in rows),
                "em_finite_seen": sum(math.isfinite(row["em_test_seen"]) for row in rows),
                "ka_finite_seen": sum(math.isfinite(row["ka_test_seen"]) for row in rows),
                **{f"finite_{name}": sum(map(math.isfinite, found)) for name, found in views.items()},
                **{f"gain_{name}": quartiles(found) for name, found in views.items()},
                "printed_draws": len(printed),
                "paper": paper or [None] * 3,
            }
        )
    if not lines:
        return None

    def average(name: str) -> float:
        return mean(line[name][1] for line in lines if math.isfinite(line[name][1]))

    both = [
        (line["gain_printed"][1], line["paper"][1])
        for line in lines
        if line["paper"][1] is not None and math.isfinite(line["gain_printed"][1])
    ]
    return {
        "categories": lines,
        "draws": sum(line["draws"] for line in lines),
        "finite": sum(line["finite_all"] for line in lines),
        "finite_seen": sum(line["finite_seen"] for line in lines),
        "average_seen": average("gain_seen"),
        "average_possible": average("gain_possible"),
        "average_printed": average("gain_printed"),
        "printed_draws": sum(line["printed_draws"] for line in lines),
        "printed_finite": sum(line["finite_printed"] for line in lines),
        "printed_with_paper": rank_correlation(*zip(*both, strict=True)) if len(both) > 2 else math.nan,
        "printed_furthest_from_paper": max((abs(ours - paper) for ours, paper in both), default=math.nan),
        "paper_average": results.paper_average("moments_2N"),
    }


def strength(results: Results) -> Table | None:
    """d, 1/N and N·d, and their rank correlations with the gains."""
    ours = {name: table for name, table in (("wishart", wishart(results)), ("moments", moments(results))) if table}
    of = {
        name: {line["category"]: line["quartiles"][1] for line in table["categories"]} for name, table in ours.items()
    }
    lines: list[Table] = []
    for row in results.of("preparation"):
        category, d, N = row["category"], row["strength"], row["n_items"]
        if category not in of.get("wishart", {}):
            continue
        line = {"category": category, "d": d, "inverse_n_items": 1 / N, "n_items_times_d": N * d}
        line |= {f"gain_{name}": found.get(category) for name, found in of.items()}
        for name, column in (("wishart", "wishart"), ("moments", "moments_all"), ("few", "moments_2N")):
            paper = results.paper_figure(category, column)
            line[f"paper_gain_{name}"] = paper[1] if isinstance(paper, list) else paper
        lines.append(line)
    if len(lines) < 3:
        return None
    correlations = []
    for name in ("gain_wishart", "paper_gain_wishart", "gain_moments", "paper_gain_moments", "paper_gain_few"):
        values = [line[name] for line in lines if line.get(name) is not None and math.isfinite(line[name])]
        if len(values) == len(lines):
            found = {
                measure: rank_correlation([line[measure] for line in lines], values)
                for measure in ("d", "inverse_n_items", "n_items_times_d")
            }
            correlations.append({"gain": name, **found})
    d, inverse = ([line[name] for line in lines] for name in ("d", "inverse_n_items"))
    products = [line["n_items_times_d"] for line in lines]
    return {
        "categories": lines,
        "correlations": correlations,
        "d_with_inverse_n_items": rank_correlation(d, inverse),
        "n_items_times_d": [min(products), max(products)],
    }


def trap(results: Results) -> Table | None:
    """What K-Ascent's first step truncates, where it ends, and whether it escapes; and diagonal starts."""
    lines: list[Table] = []
    for category in results.categories("wishart"):
        rows = results.of("wishart", category)
        N = rows[0]["n_items"]
        diagonal = results.of("diagonal", category)
        lines.append(
            {
                "category": category,
                "trials": len(rows),
                "n_items": N,
                "first_zeros": median(row["ka_first_zeros"] for row in rows),
                "first_zeros_share": median(row["ka_first_zeros"] / N for row in rows),
                "first_ones": median(row["ka_first_ones"] for row in rows),
                "ka_zeros": quartiles(row["ka_zeros"] for row in rows),
                "em_zeros": quartiles(row["em_zeros"] for row in rows),
                "ka_off_diagonal": quartiles(row["ka_off_diagonal"] for row in rows),
                "em_off_diagonal": quartiles(row["em_off_diagonal"] for row in rows),
                "escaped": sum(map(escaped, rows)),
                "ka_above_independent": median(row["ka_train"] - row["independent_train"] for row in rows),
                "em_above_independent": median(row["em_train"] - row["independent_train"] for row in rows),
                "diagonal_off_diagonal": max(
                    (row[f"{name}_off_diagonal"] for row in diagonal for name in ("em", "ka")), default=None
                ),
            }
        )
    if not lines:
        return None
    diagonals = [line["diagonal_off_diagonal"] for line in lines if line["diagonal_off_diagonal"] is not None]
    return {
        "categories": lines,
        "trials": sum(line["trials"] for line in lines),
        "escaped": sum(line["escaped"] for line in lines),
        "first_zeros_share": mean(line["first_zeros_share"] for line in lines),
        "largest_off_diagonal_from_diagonal": max(diagonals, default=None),
        "n_diagonal": len(diagonals),
    }


def escaped(row: Row) -> bool:
    return bool(row["ka_off_diagonal"] >= ESCAPED * row["em_off_diagonal"])


def registry(results: Results) -> Table | None:
    """The ten items that greedy MAP takes from the models of the first Wishart trial, side by side."""
    rows = [row for row in results.of("wishart", REGISTRY_CATEGORY) if row["trial"] == 0]
    if not rows:
        return None
    em, ka = rows[0]["em_set"], rows[0]["ka_set"]
    return {"category": REGISTRY_CATEGORY, "em": em, "ka": ka, "shared": len(set(em) & set(ka))}


def recovery(results: Results) -> Table | None:
    """KL divergence from the truth and test log-likelihood by kind of kernel, N and n: medians over trials."""
    cells: dict[tuple[str, int, int], list[Row]] = {}
    for row in results.of("recovery"):
        cells.setdefault((row["category"], row["n_items"], row["n_train"]), []).append(row)
    lines: list[Table] = []
    for (kind, N, n), rows in sorted(cells.items(), key=lambda cell: (cell[0][0] != "wishart", *cell[0][1:])):
        line: Table = {"kernel": kind, "n_items": N, "n_train": n, "trials": len(rows)}
        line["truth_test"] = median(row["truth_test"] for row in rows)
        for model in MODELS:
            line |= {
                f"{model}_finite": sum(math.isfinite(row[f"{model}_kl"]) for row in rows),
                f"{model}_kl": float(np.median([row[f"{model}_kl"] for row in rows])),
                f"{model}_kl_error": median(row[f"{model}_kl_error"] for row in rows),
                f"{model}_test": float(np.median([row[f"{model}_test"] for row in rows])),
            }
        nearest = min(MODELS, key=lambda model: line[f"{model}_kl"])
        line["nearest"] = nearest if math.isfinite(line[f"{nearest}_kl"]) else None
        lines.append(line)
    return {"cells": lines} if lines else None


def authors(results: Results) -> Table | None:
    """Test log-likelihoods beside those of the authors' program, on its splits and from its starts."""
    lines = [
        {
            "run": row["category"],
            **{
                column: row[column]
                for name in ("em", "ka")
                for column in (
                    f"{name}_test",
                    f"authors_{name}_test",
                    f"{name}_iterations",
                    f"authors_{name}_iterations",
                )
            },
            "difference": max(abs(row[f"{name}_test"] - row[f"authors_{name}_test"]) for name in ("em", "ka")),
        }
        for row in results.of("authors")
    ]
    if not lines:
        return None
    return {
        "runs": lines,
        "largest_difference": max(line["difference"] for line in lines),
        "same_iterations": sum(
            all(line[f"{name}_iterations"] == line[f"authors_{name}_iterations"] for name in ("em", "ka"))
            for line in lines
        ),
    }
