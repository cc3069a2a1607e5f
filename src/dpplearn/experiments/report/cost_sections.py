"""The sections of what learning costs, from the tables of `costs`."""

from __future__ import annotations

from dpplearn.experiments.report.sections import Section
from dpplearn.experiments.results import Table
from dpplearn.tools.words import count, number, small


def runtime(table: Table) -> Section:
    paper = table["paper_average"]
    printed, here = (number(table[name], 2) for name in ("printed_average", "library_average"))
    return Section(
        "runtime",
        "7. Runtime",
        "Time of K-Ascent over that of EM, from the same start to the paper's stopping rule. As printed: N×N inverses "
        "for K-Ascent, k×k decompositions for EM, one example at a time. On this library's statistics both cost O(nk³ "
        "+ N³) per iteration.",
        ["category", "N>", "different sets>", "as printed: KA/EM>", "EM, s>", "KA, s>", "here: KA/EM>", "EM, s>",
         "KA, s>", "EM iterations>", "KA iterations>"],
        [
            (
                line["category"],
                count(line["n_items"]),
                count(line["n_distinct"]),
                number(line["printed_ratio"], 2),
                number(line["printed_em_seconds"], 1),
                number(line["printed_ka_seconds"], 1),
                number(line["library_ratio"], 2),
                number(line["library_em_seconds"], 3),
                number(line["library_ka_seconds"], 3),
                count(line["em_iterations"]),
                count(line["ka_iterations"]),
            )
            for line in table["categories"]
        ]
        + [("average", "", "", printed, "", "", here, *[""] * 4)],
        f"Medians over {_several(table, 'printed_trials')} trials as printed and {_several(table, 'library_trials')} "
        f"here.{'' if paper is None else f' The average of the paper is {number(paper, 1)}.'} In the trials run both "
        f"ways the two K-Ascents' test log-likelihoods differ by {small(table['disagreement'])} at most.",
    )  # fmt: skip


def _several(table: Table, name: str) -> str:
    """A count that may differ between categories."""
    counts = sorted({line[name] for line in table["categories"]})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def growth(table: Table) -> Section:
    lines = []
    for axis in table["axes"]:
        fixed = ", ".join(f"{name} = {size}" for name, size in axis["fixed"].items())
        sizes = f"{axis['sizes'][0]} to {axis['sizes'][-1]}"
        for name, what in PARTS.items():
            lines.append(
                (
                    f"{axis['axis']} from {sizes} ({fixed})",
                    what,
                    str(axis["printed"][name]),
                    number(axis["exponents"][name], 2),
                    number(axis["last"][name], 2),
                )
            )
    return Section(
        "growth",
        "7b. How an iteration as printed grows",
        "The paper gives O(T₁nNk² + T₁T₂N³) for EM and O(T₁nN³ + T₁T₂N³) for K-Ascent, T₁ iterations with T₂ steps of "
        "the line search. Here one iteration's pass over the examples and its work on N×N matrices, on random sets.",
        ["what grows", "part", "printed exponent>", "measured, all sizes>", "last doubling>"],
        lines,
    )


PARTS = {
    "em": "EM, examples",
    "ka": "K-Ascent, examples",
    "em_matrix": "EM, matrix exponential",
    "ka_matrix": "K-Ascent, projection",
}
