"""Tables of the results next to the numbers of the paper, in Markdown."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from reproduction.data import PAPER, PAPER_RUNTIME_RATIO
from reproduction.experiments import Row
from reproduction.run import Results

ESCAPED = 0.9  # K-Ascent left the diagonal if its off-diagonal share is at least this fraction of EM's
GREEDY_CATEGORY = "safety"
NAME_WIDTH = 33  # two names fit into a line of 80 columns
GAIN = "100·(EM − KA)/|KA| of the test log-likelihood"


@dataclass(frozen=True)
class Table:
    """A table with a title and a description. All cells are text; all columns but the first are aligned right."""

    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def markdown(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        lines = [
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            for row in (self.header, *self.rows)
        ]
        table = "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))
        return f"## {self.title}\n\n{textwrap.fill(self.text, 79)}\n\n{table}\n"


def all_tables(results: Results) -> list[Table]:
    """Return the tables of all experiments that have results."""
    makers = {
        "registries": registries,
        "wishart": wishart,
        "moments": moments,
        "wishart_small_tol": small_tolerance,
        "moments_2N": moments_2N,
        "wishart_textbook": runtime,
        "authors": authors,
    }
    tables = [make(results) for experiment, make in makers.items() if results[experiment]]
    if results["wishart"]:
        tables += [log_likelihoods(results), kernels(results), *correlations(results), *greedy_sets(results)]
    return tables


def gain(row: Row, column: str = "test") -> float:
    """Return 100·(EM − KA)/|KA|, or NaN if a log-likelihood is infinite."""
    em, ka = row[f"em_{column}"], row[f"ka_{column}"]
    return 100 * (em - ka) / abs(ka) if math.isfinite(em) and math.isfinite(ka) else math.nan


def by_category(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["category"], []).append(row)
    return found


def quartiles(values: Iterable[float]) -> list[float]:
    """Return the quartiles of the finite values, or NaN if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return np.percentile(finite, [25, 50, 75]).tolist() if finite else [math.nan] * 3


def median(values: Iterable[float]) -> float:
    return quartiles(values)[1]


def mean(values: Iterable[float]) -> float:
    """Return the mean of the finite values, or NaN if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else math.nan


def mean_gain(groups: dict[str, list[Row]]) -> float:
    """Return the mean over the categories of the median gain."""
    return mean(median(map(gain, rows)) for rows in groups.values())


def number(value: float, digits: int = 2) -> str:
    """Format a number; NaN is a dash."""
    if math.isnan(value):
        return "–"
    return f"{value:,.{digits}f}" if math.isfinite(value) else "∞" if value > 0 else "-∞"


def spread(values: Sequence[float]) -> str:
    """Format quartiles as `median [first, third]`."""
    first, middle, third = values
    return number(middle) if math.isnan(middle) else f"{middle:.2f} [{first:.2f}, {third:.2f}]"


def registries(results: Results) -> Table:
    lines = []
    for row in results["registries"]:
        N, d, paper = row["n_items"], row["d"], PAPER[row["category"]]
        sizes = [str(N), str(paper.n_items), f"{row['n_train']:,}", f"{paper.n_train:,}"]
        lines.append([row["category"], *sizes, number(row["mean_size"]), number(d, 4), number(N * d, 3)])
    text = "N items, n training registries, the mean size of a registry, and d = (1/N)·‖M‖_F / ‖diag M‖₂."
    return Table("Registries", text, ["category", "N", "paper", "n", "paper", "mean size", "d", "N·d"], lines)


def wishart(results: Results) -> Table:
    groups = by_category(results["wishart"])
    lines = [
        [name, str(len(rows)), spread(quartiles(map(gain, rows))), spread(PAPER[name].wishart)]
        for name, rows in groups.items()
    ]
    averages = mean_gain(groups), mean(PAPER[name].wishart[1] for name in groups)
    lines.append(["average", "", *map(number, averages)])
    text = f"{GAIN}: median and quartiles over the trials. The average is that of the medians, as in the paper."
    return Table("Wishart start, all training data", text, ["category", "trials", "gain, %", "paper, %"], lines)


def moments(results: Results) -> Table:
    lines = []
    groups = by_category(results["moments"])
    for name, rows in groups.items():
        gains = [gain(row) for row in rows]
        ends = f"{number(min(gains))} to {number(max(gains))}"
        lines.append([name, str(len(rows)), spread(quartiles(gains)), ends, number(PAPER[name].moments)])
    paper = mean(PAPER[name].moments for name in groups)
    lines.append(["average", "", number(mean_gain(groups)), "", number(paper)])
    text = f"{GAIN}: median, quartiles and range over the trials. The paper has one split."
    header = ["category", "trials", "gain, %", "range", "paper, %"]
    return Table("Moments start, all training data", text, header, lines)


def log_likelihoods(results: Results) -> Table:
    moments = by_category(results["moments"])
    lines = []
    for name, rows in by_category(results["wishart"]).items():
        from_moments = moments.get(name, [])
        columns = [(rows, "em"), (rows, "ka"), (from_moments, "em"), (from_moments, "ka"), (rows, "independent")]
        lines.append([name, *(number(median(row[f"{model}_test"] for row in found), 4) for found, model in columns)])
    header = ["category", "Wishart: EM", "K-Ascent", "moments: EM", "K-Ascent", "independent"]
    return Table("Test log-likelihoods", "Mean per registry, in nats: median over the trials.", header, lines)


def small_tolerance(results: Results) -> Table:
    lines, gains = [], []
    for name, small in by_category(results["wishart_small_tol"]).items():
        trials = {row["trial"] for row in small}
        paper = [row for row in results["wishart"] if row["category"] == name and row["trial"] in trials]
        gains.append([median(map(gain, rows)) for rows in (paper, small)])
        iterations = [
            " → ".join(number(median(row[f"{model}_iterations"] for row in rows), 0) for rows in (paper, small))
            for model in ("em", "ka")
        ]
        lines.append([name, *map(number, gains[-1]), *iterations])
    lines.append(["average", *(number(mean(column)) for column in zip(*gains, strict=True)), "", ""])
    text = "The Wishart trials with a tolerance of 1e-6 instead of 1e-4: median gains in % and median iterations."
    header = ["category", "gain, 1e-4", "gain, 1e-6", "EM iterations", "KA iterations"]
    return Table("Effect of the stopping rule", text, header, lines)


def moments_2N(results: Results) -> Table:
    textbook = by_category(results["moments_2N_textbook"])
    lines, medians = [], []
    groups = by_category(results["moments_2N"])
    for name, rows in groups.items():
        views = [[gain(row, column) for row in rows] for column in ("test", "test_seen", "test_possible")]
        views.append([gain(row, "test_unchecked") for row in textbook.get(name, [])])
        finite = [f"{sum(map(math.isfinite, view))} of {len(view)}" for view in views]
        medians.append([median(view) for view in views])
        _, seen, possible, unchecked = map(number, medians[-1])
        paper = number(PAPER[name].moments_2N[1])
        lines.append([name, finite[0], finite[1], seen, possible, finite[3], unchecked, paper])
    _, seen, possible, unchecked = (number(mean(column)) for column in zip(*medians, strict=True))
    paper = number(mean(PAPER[name].moments_2N[1] for name in groups))
    lines.append(["average", "", "", seen, possible, "", unchecked, paper])
    text = (
        "Finite: trials in which both models have a finite test log-likelihood. Seen: the same for the test sets whose "
        "items all occur in training. Possible: median gain on the test sets that both models allow. Printed: trials "
        "with a finite test log-likelihood of the printed algorithms, which do not test for zero. Gains in %."
    )
    header = ["category", "finite", "seen", "gain", "possible", "printed", "gain", "paper"]
    return Table("Moments start, n = 2N", text, header, lines)


def correlations(results: Results) -> Iterator[Table]:
    """Yield the rank correlations of the gains with d, 1/N and N·d, if there are at least three categories."""
    groups = {experiment: by_category(results[experiment]) for experiment in ("wishart", "moments")}
    rows = [row for row in results["registries"] if all(row["category"] in found for found in groups.values())]
    if len(rows) < 3:
        return
    names = [row["category"] for row in rows]
    d, N = (np.array([row[column] for row in rows]) for column in ("d", "n_items"))
    gains = {
        "Wishart start": [median(map(gain, groups["wishart"][name])) for name in names],
        "Wishart start, paper": [PAPER[name].wishart[1] for name in names],
        "moments start": [median(map(gain, groups["moments"][name])) for name in names],
        "moments start, paper": [PAPER[name].moments for name in names],
        "n = 2N, paper": [PAPER[name].moments_2N[1] for name in names],
    }
    lines = [
        [label, *(number(float(spearmanr(measure, found).statistic)) for measure in (d, 1 / N, N * d))]
        for label, found in gains.items()
    ]
    text = "Spearman's rank correlation of the gain with d, with 1/N and with N·d."
    yield Table("The statistic d", text, ["gain", "d", "1/N", "N·d"], lines)


def kernels(results: Results) -> Table:
    diagonal = by_category(results["diagonal"])
    lines = []
    for name, rows in by_category(results["wishart"]).items():
        shares = [median(row[f"{model}_off_diagonal"] for row in rows) for model in ("ka", "em")]
        escaped = sum(row["ka_off_diagonal"] >= ESCAPED * row["em_off_diagonal"] for row in rows)
        from_diagonal = [row[f"{model}_off_diagonal"] for row in diagonal.get(name, []) for model in ("em", "ka")]
        first = f"{median(row['ka_first_zeros'] for row in rows):.0f} of {rows[0]['n_items']}"
        kept = f"{median(row['ka_zeros'] for row in rows):.0f}"
        largest = f"{max(from_diagonal, default=math.nan):.1g}"
        lines.append([name, first, kept, *map(number, shares), f"{escaped} of {len(rows)}", largest])
    text = (
        "Zero: eigenvalues of K-Ascent that are zero after its first step, and at the end. Share: off-diagonal part of "
        f"the squared entries of K. Escaped: trials in which K-Ascent has at least {ESCAPED} of EM's share. Diagonal: "
        "largest share of both learners from a diagonal initial kernel."
    )
    header = ["category", "zero: first", "end", "share: KA", "EM", "escaped", "diagonal"]
    return Table("Kernels from the Wishart start", text, header, lines)


def runtime(results: Results) -> Table:
    library = by_category(results["wishart"])
    lines, ratios = [], []
    for name, rows in by_category(results["wishart_textbook"]).items():
        line = [name]
        for found in (rows, library[name]):
            seconds = [median(row[f"{model}_seconds"] for row in found) for model in ("em", "ka")]
            line += [number(runtime_ratio(found)), *(number(value, 3) for value in seconds)]
        lines.append(line)
        ratios.append([runtime_ratio(rows), runtime_ratio(library[name])])
    printed, ours = (number(mean(column)) for column in zip(*ratios, strict=True))
    lines.append(["average", printed, "", "", ours, "", ""])
    lines.append(["paper", number(PAPER_RUNTIME_RATIO), *[""] * 5])
    text = (
        "Runtime of K-Ascent divided by that of EM, Wishart start: the printed algorithms and the learners of dpplearn."
    )
    header = ["category", "printed", "EM, s", "KA, s", "dpplearn", "EM, s", "KA, s"]
    return Table("Runtimes", text, header, lines)


def runtime_ratio(rows: Iterable[Row]) -> float:
    return median(row["ka_seconds"] / row["em_seconds"] for row in rows)


def greedy_sets(results: Results) -> Iterator[Table]:
    """Yield the ten items that greedy MAP selects from the models of the first trial in GREEDY_CATEGORY."""
    for row in results["wishart"]:
        if row["category"] == GREEDY_CATEGORY and row["trial"] == 0:
            em, ka = row["em_greedy_set"], row["ka_greedy_set"]
            pairs = itertools.zip_longest(em, ka, fillvalue="")
            lines = [
                [str(rank), *(name[:NAME_WIDTH].replace("|", "/") for name in pair)]
                for rank, pair in enumerate(pairs, start=1)
            ]
            text = f"Greedy MAP of the models of the first Wishart trial. {len({*em} & {*ka})} items are in both sets."
            yield Table(f"Ten items of the category {GREEDY_CATEGORY}", text, ["rank", "EM", "K-Ascent"], lines)


def authors(results: Results) -> Table:
    lines = []
    for row in results["authors"]:
        line = [row["category"]]
        for model in ("em", "ka"):
            theirs = row[f"authors_{model}_test"]
            differs = abs(row[f"{model}_test"] - theirs)
            iterations = f"{row[f'authors_{model}_iterations']}, {row[f'{model}_iterations']}"
            line += [f"{theirs:.4f}", f"{differs:.0e}", iterations]
        lines.append(line)
    text = (
        "Test log-likelihood of the authors' program, its difference from ours on the same split and initial kernel, "
        "and the numbers of iterations: theirs, ours."
    )
    header = ["run", "EM", "differs", "iter.", "KA", "differs", "iter."]
    return Table("Runs of the authors' program", text, header, lines)
