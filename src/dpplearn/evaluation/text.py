"""An evaluation in tables of words: printed as plain text, or drawn by the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import fill
from typing import Any, NamedTuple

from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.outcomes import AUC, LOG_LIKELIHOOD, PERCENTILE_RANK

DIGITS = {LOG_LIKELIHOOD: 4, PERCENTILE_RANK: 2}  # of all others three
WORDS = {LOG_LIKELIHOOD: "log-likelihood", PERCENTILE_RANK: "percentile rank"}
ABREAST = 3  # values of k that fit beside each other, twice
FOLDS_ABREAST = 5
WIDTH = 100  # of plain text
Report = Mapping[str, Any]


class TextTable(NamedTuple):
    """A column whose heading ends in `>` holds numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(report: Report) -> Iterator[TextTable]:
    """Of what `Evaluation.to_dict` gives."""
    yield _means(report)
    if report["n_ranked"]:
        for part in _parts(report["k"], ABREAST):
            yield _found(report, part)
    yield from _folds(report)
    yield _differences(report)
    yield from _reliability(report)
    if report["n_ranked"]:
        yield _diversity(report)


def remarks(report: Report) -> Iterator[str]:
    """What must be said beside the tables."""
    yield from report["notes"]
    if report["nonempty"]:
        yield "Log-likelihoods are given that a basket is not empty."
    errors = [
        f"{row['name']}: {row['calibration']['error']:.5f}"
        for row in report["rows"]
        if row["calibration"] is not None and row["calibration"]["rows"]
    ]
    if errors:
        yield f"Expected calibration error: {'; '.join(errors)}."
    if any(row["name"] == INDEPENDENT for row in report["rows"]) and report["n_ranked"]:
        yield "Independent items rank as popularity does."
    for row in report["rows"]:
        yield from _impossible(row)


def as_text(report: Report) -> str:
    lines = []
    for table in tables(report):
        lines += [table.title, *(f"  {line}" for line in _aligned(table)), ""]
    return "\n".join([*lines, *(fill(remark, WIDTH) for remark in remarks(report))])


def _aligned(table: TextTable) -> list[str]:
    right = [heading.endswith(">") for heading in table.columns]
    lines = [[heading.removesuffix(">") for heading in table.columns], *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if numbers else cell.ljust(width)
            for cell, width, numbers in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def _means(report: Report) -> TextTable:
    rows = [
        (
            row["name"],
            _estimate(row, LOG_LIKELIHOOD),
            _estimate(row, PERCENTILE_RANK),
            _number(row[AUC]["value"], 3) if AUC in row else "-",
        )
        for row in report["rows"]
    ]
    baskets, items = _count(report["n_baskets"], "basket"), _count(report["n_items"], "item")
    return TextTable(
        f"Means over {baskets} of {items}, with 95 % intervals",
        ["", "log-likelihood>", "percentile rank>", "AUC>"],
        rows,
    )


def _found(report: Report, ks: Sequence[int]) -> TextTable:
    measures = [f"{name}@{k}" for name in ("recall", "ndcg") for k in ks]
    rows = [(row["name"], *(_number(row[measure]["value"], 3) for measure in measures)) for row in report["rows"]]
    title = f"Items held out at random of {_count(report['n_ranked'], 'basket')}, found in the first k"
    headings = [f"{name if k == ks[0] else ''}@{k}>" for name in ("recall", "NDCG") for k in ks]
    return TextTable(title, ["", *headings], rows)


def _folds(report: Report) -> Iterator[TextTable]:
    rows = [row for row in report["rows"] if row["folds"] is not None]
    n_folds = len(rows[0]["folds"]) if rows else 0
    for part in _parts(range(n_folds), FOLDS_ABREAST):
        lines = [(row["name"], *(_number(row["folds"][fold], 4) for fold in part)) for row in rows]
        yield TextTable("Mean log-likelihood in each fold", ["", *(f"fold {fold + 1}>" for fold in part)], lines)


def _differences(report: Report) -> TextTable:
    """The log-likelihood, the percentile rank and one NDCG; independent items rank as popularity does."""
    ranking = [PERCENTILE_RANK, f"ndcg@{report['k'][len(report['k']) // 2]}"] if report["n_ranked"] else []
    several = sum(not row["baseline"] for row in report["rows"]) > 1
    rows: list[Sequence[str]] = []
    under = ""
    for measure, each in _in_order(report["differences"], [LOG_LIKELIHOOD, *ranking]):
        word = WORDS.get(measure, measure.replace("ndcg", "NDCG"))
        over = f"over {each['against']}"
        heading, line = (f"{word} {over}", each["model"]) if several else (word, over)
        if heading != under:
            rows.append((heading, "", "", ""))
        under = heading
        share = "-" if math.isnan(each["better"]) else f"{100 * each['better']:.0f} %"
        rows.append((f"  {line}", _with_interval(each, DIGITS.get(measure, 3), "+"), share, each["verdict"]))
    title = "Differences on the same baskets, and in how many bootstrap resamples it is ahead"
    return TextTable(title, ["", "difference>", "ahead in>", ""], rows)


def _in_order(differences: Sequence[Report], measures: Sequence[str]) -> Iterator[tuple[str, Report]]:
    """By measure, then by what is compared with."""
    for measure in measures:
        for opponent in dict.fromkeys(each["against"] for each in differences):
            if opponent == INDEPENDENT and measure != LOG_LIKELIHOOD:
                continue
            for each in differences:
                if (each["measure"], each["against"]) == (measure, opponent):
                    yield measure, each


def _reliability(report: Report) -> Iterator[TextTable]:
    """Of the first model."""
    first = report["rows"][0]
    if not first["calibration"]["rows"]:
        return
    rows = [
        (
            _number(row["predicted"], 4),
            _number(row["observed"], 4),
            f"[{row['low']:.4f}, {row['high']:.4f}]",
            f"{row['weight']:,.0f}",
        )
        for row in first["calibration"]["rows"]
    ]
    title = f"Calibration of {first['name']}: other items, given one of a basket"
    yield TextTable(title, ["predicted>", "observed>", "95 % interval>", "predictions>"], rows)


def _diversity(report: Report) -> TextTable:
    rows = [
        (
            each["name"],
            *(
                f"{_number(each['similarity'][str(k)], 4)}, {100 * each['coverage'][str(k)]:3.0f} %"
                for k in report["k"]
            ),
        )
        for each in report["diversity"]
    ]
    title = f"Lists of k to add: similarity under {report['rows'][0]['name']}, catalogue reached"
    return TextTable(title, ["", *(f"k = {k}>" for k in report["k"])], rows)


def _impossible(row: Report) -> Iterator[str]:
    name, calibration = row["name"], row["calibration"]
    if row["n_impossible"]:
        yield (
            f"{name}: {_count(row['n_impossible'], 'basket')} of probability zero, so the mean log-likelihood is minus "
            f"infinity; the mean of the other baskets is {_number(row['log_likelihood_of_possible'], 4)}."
        )
    if row["n_unranked"]:
        yield (
            f"{name}: {_count(row['n_unranked'], 'partial basket')} impossible under it; there all candidates are "
            "tied, at percentile rank 50."
        )
    if calibration is not None and calibration["left_out"]:
        yield (
            f"{name}: its calibration is without {calibration['left_out']:,.0f} probabilities given an item that it "
            "holds impossible."
        )


def _estimate(row: Report, measure: str) -> str:
    return _with_interval(row[measure], DIGITS[measure]) if measure in row else "-"


def _with_interval(each: Report, digits: int, sign: str = "") -> str:
    if math.isnan(each["value"]):
        return "-"
    value, low, high = (f"{each[name]:{sign}z.{digits}f}" for name in ("value", "low", "high"))
    return value if math.isnan(each["low"]) else f"{value} [{low}, {high}]"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:z,.{digits}f}"


def _parts(values: Sequence[int], most: int) -> Iterator[list[int]]:
    for part in zip_longest(*[iter(values)] * most):
        yield [each for each in part if each is not None]
