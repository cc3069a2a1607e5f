"""The sections of the report: for each table a title, what it shows, and its lines as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpplearn.experiments.report.summary import ESCAPED
from dpplearn.experiments.results import Table
from dpplearn.experiments.trials.recovery import N_DRAWS, SHARE
from dpplearn.experiments.trials.trial import ZERO
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import count, listed, number, share, small, spread, typeset

GAIN = "100·(EM − KA)/|KA|"
Lines = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """`columns` whose heading ends in > hold numbers."""

    name: str
    title: str
    text: str
    columns: Sequence[str]
    lines: Lines
    note: str = ""

    @property
    def table(self) -> TextTable:
        return TextTable(self.title, self.text, self.columns, self.lines)


def typeset_section(section: Section) -> Section:
    """As the page shows it. Names of products are left alone: a percent sign there is no figure's."""
    numeric = section.table.numeric
    lines = [
        [typeset(cell) if figures else cell for cell, figures in zip(line, numeric, strict=True)]
        for line in section.lines
    ]
    return replace(section, text=typeset(section.text), lines=lines, note=typeset(section.note))


def preparation(table: Table) -> Section:
    left_out = [line["category"] for line in table["categories"] if not line["admitted"]]
    return Section(
        "preparation",
        "1. The registries",
        "A category is used if it has at least 25 items and at least 2N training sets. Every trial splits its "
        "registries 70/30 at random.",
        ["category", "N>", "training sets>", "paper: N>", "training sets>", "items per set>", "largest>"],
        [
            (
                line["category"],
                count(line["n_items"]),
                count(line["n_train"]),
                count(line["paper_n_items"]),
                count(line["paper_n_train"]),
                number(line["mean_size"], 2),
                count(line["largest_size"]),
            )
            for line in table["categories"]
            if line["admitted"]
        ]
        + [("average", count(table["mean_n_items"]), count(table["mean_n_train"]), "", "", "", "")],
        f"Not admitted: {listed(left_out)}." if left_out else "",
    )


GAIN_COLUMNS = ["category", "trials>", "gain, %>", "paper>", "difference>", "EM test>", "KA test>", "independent>"]


def gain_lines(table: Table) -> list[Sequence[str]]:
    lines: list[Sequence[str]] = [
        (
            line["category"],
            count(line["trials"]),
            spread(line["quartiles"]),
            spread(line["paper"]),
            number(line["difference"], 2),
            number(line["em_test"], 4),
            number(line["ka_test"], 4),
            number(line["independent_test"], 4),
        )
        for line in table["categories"]
    ]
    paper = table["paper_average_of_these"]
    difference = None if paper is None else table["average"] - paper
    return [*lines, ("average", "", number(table["average"], 2), number(paper, 2), number(difference, 2), "", "", "")]


QUARTILES = (
    "Medians, with first and third quartiles in brackets; averages are of medians. Log-likelihoods are medians too."
)


def wishart(table: Table) -> Section:
    text = (
        f"EM and K-Ascent from the same random start, both stopped by the paper's rule: {GAIN} of the test "
        "log-likelihood."
    )
    return Section("wishart", "2. Wishart start, all data", text, GAIN_COLUMNS, gain_lines(table), QUARTILES)


def tolerance(table: Table) -> Section:
    return Section(
        "tolerance",
        "What the stopping rule contributes",
        "The same splits and starts, stopped when the mean log-likelihood changes by less than 1e-6 of itself instead "
        "of 1e-4. Gained: test log-likelihood in nats per registry.",
        ["category", "trials>", "gain at 1e-4, %>", "gain at 1e-6, %>", "EM gained>", "KA gained>", "EM iterations>",
         "KA iterations>"],
        [
            (
                line["category"],
                count(line["trials"]),
                spread(line["paper_rule"]),
                spread(line["small"]),
                number(line["em_gained"], 3),
                number(line["ka_gained"], 3),
                " → ".join(map(count, line["em_iterations"])),
                " → ".join(map(count, line["ka_iterations"])),
            )
            for line in table["categories"]
        ]
        + [("average", "", number(table["average_paper_rule"], 2), number(table["average_small"], 2), "", "", "", "")],
    )  # fmt: skip


def moments(table: Table) -> Section:
    text = (
        "The start is computed from the training data, so that a trial is a split. The paper gives one figure per "
        "category."
    )
    return Section("moments", "3. Moments start, all data", text, GAIN_COLUMNS, gain_lines(table), QUARTILES)


def few(table: Table) -> Section:
    return Section(
        "few",
        "4. Moments start, n = 2N",
        "Zero is decided by rule, not by rounding: a set has probability zero when an item of it never occurred, when "
        "it is larger than the rank or smaller than the number of eigenvalues at 1, or when a pivot of its determinant "
        "is of rounding size. Finite: draws in which the mean over the test sets is, for EM, for K-Ascent, for both.",
        ["category", "draws>", "items unseen>", "finite: EM, KA, both>", "test sets seen>", "finite there>",
         "gain there, %>", "sets both allow>", "gain there, %>", "as printed: finite>", "gain, %>", "paper, %>"],
        [
            (
                line["category"],
                count(line["draws"]),
                count(line["unseen_items"]),
                f"{line['em_finite']}, {line['ka_finite']}, {line['finite_all']}",
                share(line["seen_share"]),
                f"{line['em_finite_seen']}, {line['ka_finite_seen']}, {line['finite_seen']}",
                spread(line["gain_seen"]),
                share(line["possible_share"]),
                spread(line["gain_possible"]),
                f"{line['finite_printed']} of {line['printed_draws']}",
                spread(line["gain_printed"]),
                spread(line["paper"]),
            )
            for line in table["categories"]
        ],
        "Seen: test sets whose items all occur among the 2N. As printed: the algorithms of the paper with "
        "log|det(K − I_Ȳ)| and no rule for zero, where impossible sets contribute the logarithm of a rounding error.",
    )  # fmt: skip


def strength(table: Table) -> Section:
    names = {
        "gain_wishart": "Wishart start, ours",
        "paper_gain_wishart": "Wishart start, the paper's",
        "gain_moments": "moments start, ours",
        "paper_gain_moments": "moments start, the paper's",
        "paper_gain_few": "n = 2N, the paper's",
    }
    told = "; ".join(
        f"{names[each['gain']]}: {number(each['d'], 2)} with d, {number(each['inverse_n_items'], 2)} with 1/N, "
        f"{number(each['n_items_times_d'], 2)} with N·d"
        for each in table["correlations"]
    )
    return Section(
        "strength",
        "5. What d measures",
        "d = (1/N)·‖M‖_F / ‖diag M‖₂, M the frequencies of items and pairs. Without any pair occurring, d would be "
        "1/N exactly.",
        ["category", "d>", "1/N>", "N·d>", "gain, Wishart, %>", "paper>", "gain, moments, %>", "paper>", "paper, 2N>"],
        [
            (
                line["category"],
                number(line["d"], 4),
                number(line["inverse_n_items"], 4),
                number(line["n_items_times_d"], 3),
                number(line["gain_wishart"], 2),
                number(line["paper_gain_wishart"], 2),
                number(line.get("gain_moments"), 2),
                number(line["paper_gain_moments"], 2),
                number(line["paper_gain_few"], 2),
            )
            for line in table["categories"]
        ],
        f"Rank correlations (Spearman) of the gain. {told}.",
    )


def trap(table: Table) -> Section:
    return Section(
        "trap",
        "6. Why K-Ascent loses",
        "From the trials of experiment 2. Truncated: eigenvalues that the first accepted step sets to zero. "
        f"Off-diagonal: its share in the squared entries of the final K. Zeros: final eigenvalues below {ZERO:.0e}. "
        f"Escaped: trials whose share is at least {ESCAPED:g} of EM's. "
        "Above independent: training log-likelihood, nats per registry.",
        ["category", "truncated>", "off-diagonal: KA>", "EM>", "zeros: KA>", "EM>", "escaped>",
         "above independent: KA>", "EM>", "from a diagonal>"],
        [
            (
                line["category"],
                f"{count(line['first_zeros'])} of {line['n_items']}",
                spread(line["ka_off_diagonal"]),
                spread(line["em_off_diagonal"]),
                spread(line["ka_zeros"], 0),
                spread(line["em_zeros"], 0),
                f"{line['escaped']} of {line['trials']}",
                number(line["ka_above_independent"], 3),
                number(line["em_above_independent"], 3),
                small(line["diagonal_off_diagonal"]),
            )
            for line in table["categories"]
        ],
        "From a diagonal: the larger of the two methods' off-diagonal shares after learning from a diagonal kernel. "
        "Eigenvalues truncated to 1 at the first step: "
        f"{count(max(line['first_ones'] for line in table['categories']))} (largest median).",
    )  # fmt: skip


def registry(table: Table) -> Section:
    length = max(len(table["em"]), len(table["ka"]))
    columns = [[*table[name], *[""] * (length - len(table[name]))] for name in ("em", "ka")]
    return Section(
        "registry",
        f"8. The ten-item registry of {table['category']}",
        f"A set of high probability by greedy MAP from the EM model and from the K-Ascent model of the first trial of "
        f"experiment 2, in the order taken. {table['shared']} of the items are in both.",
        ["", "EM", "K-Ascent"],
        [(str(place), em, ka) for place, (em, ka) in enumerate(zip(*columns, strict=True), start=1)],
    )


def recovery(table: Table) -> Section:
    def kl(cell: Table, model: str) -> str:
        if cell[f"{model}_finite"] < cell["trials"]:
            infinite = cell["trials"] - cell[f"{model}_finite"]
            return f"{number(cell[f'{model}_kl'], 3)} (∞ in {infinite})"
        return f"{number(cell[f'{model}_kl'], 3)} ± {number(cell[f'{model}_kl_error'], 3)}"

    return Section(
        "recovery",
        "9. Recovery of known kernels",
        "Baskets drawn from a Wishart kernel, or from an RBF kernel over points of a Gaussian mixture, both scaled to "
        f"sets of {SHARE:g} N items on average. KL divergence from the truth, in nats, over {N_DRAWS:,} fresh draws, "
        "± its standard error; ∞ where a draw is impossible under the model.",
        ["truth", "N>", "n>", "trials>", "KL: EM>", "K-Ascent>", "independent>", "test: truth>", "EM>", "K-Ascent>",
         "independent>"],
        [
            (
                cell["kernel"],
                count(cell["n_items"]),
                count(cell["n_train"]),
                count(cell["trials"]),
                *(kl(cell, model) for model in ("em", "ka", "independent")),
                *(number(cell[f"{model}_test"], 3) for model in ("truth", "em", "ka", "independent")),
            )
            for cell in table["cells"]
        ],
        "Medians over trials, of the standard errors too.",
    )  # fmt: skip


def authors(table: Table) -> Section:
    return Section(
        "authors",
        "The authors' own runs",
        "Test log-likelihoods on the authors' splits from their starts, beside those of their program. Capped "
        "eigenvalues are raised to 1 before testing, as their program does.",
        ["run", "EM here>", "EM, authors>", "iterations>", "K-Ascent here>", "K-Ascent, authors>", "iterations>",
         "largest difference>"],
        [
            (
                line["run"],
                number(line["em_test"], 8),
                number(line["authors_em_test"], 8),
                f"{line['em_iterations']}, {line['authors_em_iterations']}",
                number(line["ka_test"], 8),
                number(line["authors_ka_test"], 8),
                f"{line['ka_iterations']}, {line['authors_ka_iterations']}",
                small(line["difference"]),
            )
            for line in table["runs"]
        ],
    )  # fmt: skip
