"""dpplearn recommend: what to add to a basket, or to every basket of a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Force,
    Format,
    ItemColumn,
    Items,
    Model,
    Quiet,
    Reader,
    Since,
    TimeColumn,
    Unknown,
    WeightColumn,
    check_target,
    heading_of_ids,
    ids_of,
)
from dpplearn.cli.output import Report, Shown, counted, show, wants_progress, write, write_json
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.unknown import SHOWN, known_items
from dpplearn.data.writing import check_format, write_table
from dpplearn.distributions.compiled import few_answers
from dpplearn.errors import InputError
from dpplearn.models.answers import RECOMMENDATION_TABLE, Recommendation
from dpplearn.models.model import SetModel
from dpplearn.utils.text import Facts, TextTable, briefly, chance, contents, count, shown

NO_SCORES = "Scores do not exist beside the empty basket: the model gives that probability zero."
AT_ONCE = 200  # baskets, after which progress is shown
COLUMNS = ("score>", "probability>")
MEANING = (
    "The best come first. probability: of the baskets that hold these items, the share that holds this one, too. "
    "score: how many times as probable the basket becomes with it, P(basket with the item) / P(basket)."
)
BLENDED = (
    "The best come first, by the model and item-to-item together. probability: of the baskets that hold these items, "
    "the share that holds this one, too, under the model alone. score: of both, mixed; that of all items is 1."
)


def recommend(
    model: Model,
    items: Items = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to recommend.")] = 5,
    allow: Annotated[
        list[str] | None, typer.Option(help="Recommend this item; repeat for more. By default all.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never recommend this item; repeat for more.")] = None,
    blend: Annotated[
        str | None,
        typer.Option(
            metavar="auto|WEIGHT",
            help="Mix item-to-item into the ranking, by a weight from 0 to 1; auto: by the weight that fit found best.",
        ),
    ] = None,
    baskets: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file of baskets, instead of ITEMs; with --json, one line per basket."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With --baskets, a table to write, .csv, .parquet or .jsonl: basket, rank, item, score, probability.",
        ),
    ] = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    unknown: Unknown = "error",
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to add to a basket."""
    if baskets is not None and items:
        raise UsageError("give ITEMs or --baskets FILE, not both")
    _check_output(output, baskets, (model, baskets), force)
    dpp, mixed_in = dpplearn.load(model), _weight(blend)
    known_of_it = {"independent": dpp.independent, "caution": dpp.caution}
    if baskets is not None:
        reader = Reader(format, basket, item, weight, unknown, time=time, since=since, before=before)
        many = reader.read(baskets).over(dpp.catalogue, unknown)
        reports = _recommend_many(dpp, many, k, allow, deny or (), mixed_in, wants_progress(quiet))
        if output is not None:
            write({**_written(reports, baskets, output), **known_of_it}, _written_tables, as_json)
        else:
            _write_many(reports, as_json, blend, dpp.caution)
        return
    known, left_out = known_items(items or [], dpp.catalogue, unknown)
    held = dpp.catalogue.select(dpp.catalogue.positions(known))
    with few_answers():
        found = dpp.recommend(held, k, allow=allow, deny=deny or (), blend=mixed_in)
    report = {"model": str(model), **recommend_report(held, found, k), "unknown": list(left_out), **known_of_it}
    report |= {"blend": blend} if blend else {}
    write(report, recommend_tables, as_json)


def _weight(blend: str | None) -> float | str | None:
    if blend is None or blend == "auto":
        return blend
    try:
        return float(blend)
    except ValueError:
        raise UsageError(f"--blend {blend} is neither auto nor a number from 0 to 1") from None


def _recommend_many(
    dpp: SetModel,
    baskets: Baskets,
    k: int,
    allow: Sequence[Label] | None,
    deny: Sequence[Label],
    blend: float | str | None,
    progress: bool,
) -> list[Report]:
    for labels in (allow or (), deny):
        dpp.catalogue.positions(labels)  # a name that is not known is no basket's fault
    dpp.recommend([], 0, blend=blend)
    found: list[list[Recommendation] | str] = []
    with counted("recommending", len(baskets), progress) as done:
        for start in range(0, len(baskets), AT_ONCE):
            part = baskets[start : start + AT_ONCE]
            found += _recommended(dpp, part, k, allow, deny, blend)
            done(len(part))
    return [
        {"number": number, "id": name, **_report_of_one(basket, each, k), "independent": dpp.independent}
        for number, (name, basket, each) in enumerate(zip(ids_of(baskets), baskets, found, strict=True))
    ]


def _recommended(
    dpp: SetModel,
    baskets: Baskets,
    k: int,
    allow: Sequence[Label] | None,
    deny: Sequence[Label],
    blend: float | str | None,
) -> list[list[Recommendation] | str]:
    """A basket that cannot occur gets a note instead, and the others get theirs: halved until it stands alone."""
    try:
        return [*dpp.recommend(baskets, k, allow=allow, deny=deny, blend=blend)]
    except InputError as error:
        half = len(baskets) // 2
        if not half:
            return [str(error).removeprefix("basket 0: ")]  # its number in the file is told beside it
        halves = (baskets[:half], baskets[half:])
        return [each for part in halves for each in _recommended(dpp, part, k, allow, deny, blend)]


def _report_of_one(basket: Sequence[Label], found: list[Recommendation] | str, k: int) -> Report:
    if isinstance(found, str):
        return recommend_report(basket, [], k, note=found)
    return recommend_report(basket, found, k)


def recommend_report(basket: Sequence[Label], found: Sequence[Recommendation], k: int, note: str = "") -> Report:
    if not note and len(found) < k:
        note = f"{len(found)} instead of {k}: no other item that is allowed can be added to this basket"
    return {
        "basket": list(basket),
        "recommendations": [each._asdict() for each in found],
        "note": note,
    }


def recommend_tables(report: Report) -> Iterator[Shown]:
    rows = [(shown(each["item"]), *_scores(each)) for each in report["recommendations"]]
    meaning = BLENDED if "blend" in report else MEANING
    yield TextTable(f"To add to: {briefly(report['basket'])}", meaning, ["item", *COLUMNS], rows)
    yield NO_SCORES if _without_scores(report) else ""
    yield report["note"]
    yield report["caution"]
    yield f"Left out, as the model does not have them: {briefly(report['unknown'])}." if report["unknown"] else ""


def _check_output(output: Path | None, baskets: str | None, sources: Sequence[str | Path | None], force: bool) -> None:
    """Before anything is read."""
    if output is None:
        return
    if baskets is None:
        raise UsageError("--output is a table for --baskets FILE; give that")
    check_format(output)
    check_target("--output", output, sources, RECOMMENDATION_TABLE, force=force)


def _written(reports: Sequence[Report], baskets: str, output: Path) -> Report:
    """One row per recommendation, under what its basket is called."""
    rows = [
        (report["id"], rank, *each.values())
        for report in reports
        for rank, each in enumerate(report["recommendations"], start=1)
    ]
    names = ("basket", "rank", *Recommendation._fields)
    write_table({name: _column([row[place] for row in rows]) for place, name in enumerate(names)}, output)
    without = [report["id"] for report in reports if not report["recommendations"]]
    return {
        "baskets": baskets,
        "output": str(output),
        "n_baskets": len(reports),
        "n_recommendations": len(rows),
        "without": without,
    }


def _column(values: Sequence[Label | float]) -> npt.NDArray[Any]:
    return np.array(values, dtype=object if values and isinstance(values[0], str) else None)


def _written_tables(report: Report) -> Iterator[Shown]:
    rows = [
        ("baskets", f"{shown(report['baskets'])}: {count(report['n_baskets'])}"),
        ("recommendations", count(report["n_recommendations"])),
        ("written to", shown(report["output"])),
    ]
    yield Facts("Recommended", rows)
    if report["without"]:
        some = contents(report["without"][:SHOWN])
        yield f"{count(len(report['without']), 'basket')} without recommendations, for instance {some}."
    yield report["caution"]


def _write_many(reports: list[Report], as_json: bool, blend: str | None, caution: str) -> None:
    if not as_json:
        show([*_tables_of_many(reports, BLENDED if blend else MEANING), caution])
    for report in reports if as_json else ():
        write_json(report, lines=True)


def _tables_of_many(reports: list[Report], meaning: str) -> Iterator[Shown]:
    rows: list[tuple[str, ...]] = []
    for each in reports:
        rows.append((shown(each["id"]), contents(each["basket"]), "", ""))
        rows += [("", f"+ {shown(found['item'])}", *_scores(found)) for found in each["recommendations"]]
    columns = [heading_of_ids(each["id"] for each in reports), "what it holds, and + what to add;", *COLUMNS]
    yield TextTable("To add to each basket", meaning, columns, rows)
    yield NO_SCORES if any(map(_without_scores, reports)) else ""
    for each in reports:
        if each["note"] and not each["recommendations"]:
            yield f"Nothing for basket {shown(each['id'])}: {each['note']}"


def _without_scores(report: Report) -> bool:
    return any(math.isnan(each["score"]) for each in report["recommendations"])


def _scores(found: Report) -> tuple[str, str]:
    return chance(found["score"]), chance(found["probability"])
