"""dpplearn diagnose: which model suits the baskets, before there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dpplearn.analysis.cooccurrence import LEVEL, WORTH_TESTING, Pair
from dpplearn.analysis.diagnosis import MOST_ITEMS, Diagnosis
from dpplearn.analysis.gains import MIXTURE, NONSYMMETRIC, SEGMENTS, SYMMETRIC, Gain
from dpplearn.analysis.similarity import LiftBySimilarity
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Format,
    ItemColumn,
    MinCount,
    OnlyItems,
    Quiet,
    Reader,
    Since,
    Threads,
    TimeColumn,
    Top,
    TopItems,
    WeightColumn,
    share_of_one,
)
from dpplearn.cli.output import Report, Shown, busy, wants_progress, write
from dpplearn.tools.tables import Facts, TextTable
from dpplearn.tools.words import as_often, count, number, share, shown, signed, small

Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the parts that baskets are divided into.")]
MostItems = Annotated[
    int, typer.Option("--most-items", min=2, help="With more items than this, learn of the most frequent only.")
]
Level = Annotated[
    float,
    typer.Option(
        "--level",
        callback=share_of_one,
        help="Of the pairs called repelling or attracting, the share that may be wrong.",
    ),
]


Similarity = Annotated[
    Path | None,
    typer.Option(
        "--similarity",
        metavar="FILE",
        help="How alike items are (CSV or Parquet): each with its kind, or a row and a column per item. Tells whether "
        "those that are alike avoid each other or go together.",
    ),
]


def diagnose(
    data: Data,
    similarity: Similarity = None,
    top: Top = 5,
    most_items: MostItems = MOST_ITEMS,
    level: Level = LEVEL,
    seed: Seed = 0,
    threads: Threads = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    min_count: MinCount = None,
    top_items: TopItems = None,
    only: OnlyItems = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure on held-out baskets which model suits the data."""
    from dpplearn.analysis.diagnosis import diagnose

    show = wants_progress(quiet)
    with busy(f"reading {data}", show):
        baskets = Reader(format, basket, item, weight, "error", min_count, top_items, only, time, since, before).read(
            data
        )
    found = diagnose(
        baskets,
        similarity=similarity,
        most_items=most_items,
        level=level,
        rng=seed,
        threads=threads,
        progress=show,
    )
    write(diagnosis_report(found, top, data=data, seed=seed, level=level), diagnosis_tables, as_json)


def diagnosis_report(found: Diagnosis, top: int, **where: object) -> Report:
    pairs = found.pairs
    return {
        **where,
        **asdict(found.overview),
        "pairs": {
            "possible": pairs.n_possible,
            "tested": len(pairs),
            "counted_baskets": pairs.n,
            "given_not_empty": pairs.nonempty,
            "independent_probability_empty": pairs.probability_empty,
            "repel": int(pairs.repels.sum()),
            "attract": int(pairs.attracts.sum()),
            "could_be_told_to_repel": int(pairs.could_repel.sum()),
            "ever_met": int((pairs.observed > 0).sum()),
            "repelling": pairs.repelling._asdict(),
            "attracting": pairs.attracting._asdict(),
        },
        "repelling_pairs": [_pair(each) for each in pairs.strongest(pairs.repels, top)],
        "attracting_pairs": [_pair(each) for each in pairs.strongest(pairs.attracts, top)],
        "repulsion": _gain(found.repulsion),
        "attraction": _gain(found.attraction),
        "segments": _gain(found.segments),
        "gains": {case: _gain(gain) for case, gain in found.gains.items()},
        "judged_baskets": float(found.unseen.weights.sum()),
        "bounds": {
            **found.bounds._asdict(),
            "sizes_beyond": found.bounds.sizes_beyond,
            "sizes_beyond_symmetric": found.bounds.sizes_beyond_symmetric,
        },
        "verdict": str(found.verdict),
        "sentence": found.sentence,
        "similarity": _similarity(found.similarity) if found.similarity is not None else None,
    }


def _similarity(found: LiftBySimilarity) -> Report:
    return {**asdict(found), "verdict": found.verdict, "sentence": found.sentence}


def _pair(pair: Pair) -> Report:
    return {**pair._asdict(), "ratio": pair.ratio}


def _gain(gain: Gain) -> Report:
    return {**gain._asdict(), "percent": gain.percent, "clear": gain.clear}


def diagnosis_tables(report: Report) -> Iterator[Shown]:
    yield f"{report['sentence']}\n"
    yield Facts("Baskets", _size_rows(report))
    yield Facts("Pairs of items, against chance", _pair_rows(report))
    yield from _strongest("Pairs that avoid each other most", report["repelling_pairs"])
    yield from _strongest("Pairs that go together most", report["attracting_pairs"])
    yield TextTable("Gain over independent items, on unseen baskets", GAINS, GAIN_COLUMNS, list(_gain_rows(report)))
    yield Facts("Variance of the basket size", _bound_rows(report["bounds"]))
    similarity = report["similarity"]
    if similarity is not None:
        rows = [_bin_row(each) for each in similarity["bins"]]
        yield TextTable("Lift by similarity", similarity["sentence"], SIMILARITY_COLUMNS, rows)
    yield from _remarks(report)


SIMILARITY_COLUMNS = ["similarity", "pairs>", "together>", "by chance>", "ratio>", "90% interval>"]


def _bin_row(each: Report) -> tuple[str, ...]:
    span = "none" if each["low"] < 0 else f"above {each['low']:g}, to {each['high']:g}"
    interval = f"{number(each['ratio_low'], 2)} to {number(each['ratio_high'], 2)}"
    figures = number(each["expected"], 1), number(each["ratio"], 2), interval
    return span, count(each["n_pairs"]), count(each["observed"]), *figures


def _size_rows(report: Report) -> list[tuple[str, str]]:
    n, mean, middle, largest = (report[key] for key in ("n_baskets", "mean_size", "median_size", "largest_size"))
    weight = "" if report["weight"] == n else f" of total weight {report['weight']:,.6g}"
    rows = [
        ("data", shown(report["data"])),
        ("baskets", f"{n:,}{weight}, {report['n_empty']:,} of them empty, {report['n_single']:,} of one item"),
        ("size", f"{mean:.2f} items on average, median {middle:g}, {largest} at most"),
        ("items", f"{report['n_items']:,}, {report['n_never']:,} that never occur, {report['n_rare']:,} in fewer than "
                  "5 baskets"),
        ("a basket holds", f"{share(report['density'], 1)} of the items on average"),
    ]  # fmt: skip
    if report["n_looked_at"] < report["n_items"] - report["n_never"]:
        part = share(report["share_looked_at"], 1)
        rows.append(
            ("models", f"learned of the {report['n_looked_at']:,} most frequent items, {part} of all that baskets hold")
        )
    return rows


def _pair_rows(report: Report) -> list[tuple[str, str]]:
    pairs = report["pairs"]
    possible = pairs["possible"]
    neither = possible - pairs["repel"] - pairs["attract"]

    def of_all(count: int) -> str:
        return f"{count:,} of {possible:,}" + (f" ({share(count / possible, 1)})" if possible else "")

    return [
        ("ever met", of_all(pairs["ever_met"])),
        ("repel", of_all(pairs["repel"])),
        ("attract", of_all(pairs["attract"])),
        ("neither", of_all(neither)),
        ("frequent enough", f"{of_all(pairs['could_be_told_to_repel'])} to tell that they repel, had they never met"),
        ("repulsion", _side(pairs["repelling"])),
        ("attraction", _side(pairs["attracting"])),
    ]


GAINS = "What it brings in prediction to know that items avoid each other, go together, or that people come in kinds."
GAIN_COLUMNS = ["what a model knows", "nats per basket>", "model"]
KNOWN = {
    SYMMETRIC: ("repulsion", "symmetric DPP"),
    NONSYMMETRIC: ("and attraction", "nonsymmetric DPP"),
    SEGMENTS: ("kinds of people alone", "segments alone"),
    MIXTURE: ("all of these", "mixture"),
}


def _gain_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for case, (knows, model) in KNOWN.items():
        gain = report["gains"][case]
        error = number(2 * gain["standard_error"], 3)
        yield knows, f"{signed(gain['mean'], 3)} ± {error}", model


def _bound_rows(bounds: Report) -> list[tuple[str, str]]:
    ratio, error = number(bounds["size_ratio"], 2), number(2 * bounds["standard_error"], 2)
    return [("variance / mean", f"{ratio} ± {error}; at most 2 for a single DPP, at most 1 for a symmetric one")]


def _side(strength: Report) -> str:
    """Less than chance alone shows is none, and not a negative amount of it."""
    nats = strength["nats"]
    if nats < 0:
        return f"none: {_nats(-nats, strength)} less than chance alone shows, summed over pairs"
    return f"{_nats(nats, strength)} summed over pairs, beyond what chance shows"


def _nats(value: float, of: Report) -> str:
    return f"{number(value, 3)} ± {number(2 * of['standard_error'], 3)} nats per basket"


def _strongest(title: str, pairs: Sequence[Report]) -> Iterator[Shown]:
    if not pairs:
        return
    rows = [
        (
            f"{shown(each['first'])}\n{shown(each['second'])}",
            count(each["observed"]),
            number(each["expected"], 1),
            number(each["ratio"], 2),
            _p(each["p"]),
        )
        for each in pairs
    ]
    first = pairs[0]
    meaning = (
        f"The first two are together {as_often(first['ratio'])}, compared with chance: in "
        f"{count(first['observed'], 'basket')}, and in {number(first['expected'], 1)} by chance."
    )
    yield TextTable(title, meaning, ["pair&", "together>", "by chance>", "ratio>", "p>"], rows)


def _remarks(report: Report) -> Iterator[str]:
    pairs = report["pairs"]
    for side, what, other in (
        ("repelling", "avoid each other", "go together"),
        ("attracting", "go together", "avoid each other"),
    ):
        if pairs[side]["nats"] < 0:
            yield (
                f"Less than chance alone shows: by luck, some pairs of independent items seem to {what} a little. Here "
                f"they do so less than that, as happens where pairs {other}."
            )
    if pairs["tested"] < pairs["possible"]:
        yield (
            f"Of {pairs['possible']:,} pairs, the {pairs['tested']:,} that met or would by chance have met at least "
            f"{WORTH_TESTING:g} times were looked at one by one; strengths are of the latter. No other could be told "
            "from chance."
        )
    if pairs["given_not_empty"]:
        yield (
            "No basket is empty, so chance is that of independent items given that a basket is not empty: "
            f"{share(pairs['independent_probability_empty'], 1)} of their baskets would be."
        )
    judged = report["judged_baskets"]
    if judged:
        yield (
            f"Gains are means over {judged:,.6g} baskets, each judged by models learned without it, ± two standard "
            "errors; they overlap, so that they do not add up."
        )
    if pairs["counted_baskets"] != round(report["weight"]):
        yield (
            f"The weights are not counts: they are worth {pairs['counted_baskets']:,} baskets of equal weight, out of "
            "which pairs are counted."
        )


def _p(value: float) -> str:
    return number(value, 3) if value >= 0.001 else small(value if value >= 1e-300 else 0)
