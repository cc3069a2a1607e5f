"""What dpplearn describe says of a mixture: its segments, and which items go together or stand in for each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from dpplearn.analysis.relations import RelatedPair, related_pairs
from dpplearn.cli.output import Report, Shown
from dpplearn.models.mixture import Mixture
from dpplearn.utils.text import Facts, TextTable, as_often, briefly, chance, count, number, share, shown

LIKED, SHOWN = 10, 3  # items that are named for a segment, of which so many are shown
EVERY = 10**9  # more than there are items
SMALL = 0.005  # segments of less are counted and not shown
MEANING = (
    "lift: how many times as often as by chance a set holds both. 9 in 10: where the training baskets put it, nine "
    "times in ten, by how many of them hold both (met) and how many would by chance."
)
SHRUNK = (
    "Some lifts lie outside their 9 in 10: the model does not take every count at its word, and draws lifts towards 1."
)
UNKNOWN = "How sure this is is not known: the model does not tell what it was learned from."
SUBSTITUTES = "What competes: items that stand in for each other"
COMPLEMENTS = "What goes together"


def relations_report(model: Mixture, top: int) -> Report:
    pairs = related_pairs(model, top)
    return {
        "n_segments": model.n_segments,
        "segments": _segments(model),
        "substitutes": [_pair(each) for each in pairs.substitutes],
        "complements": [_pair(each) for each in pairs.complements],
        "intervals_known": model.training is not None,
    }


def _segments(model: Mixture) -> list[Report]:
    lines = []
    for each, p in zip(model.segments(LIKED), model.segment_marginals, strict=True):
        likes = [
            {"item": item, "times_as_likely": ratio, "probability": float(p[model.catalogue.position(item)])}
            for item, ratio in each.likes
        ]
        lines.append({"weight": each.weight, "expected_size": each.expected_size, "likes": likes})
    return lines


def _pair(pair: RelatedPair) -> Report:
    first, second, *_ = pair
    figures = {name: value for name, value in pair._asdict().items() if name not in ("first", "second")}
    return {"items": [first, second], **figures}


def mixture_item_report(model: Mixture, item: str, top: int) -> Report:
    position = model.catalogue.position(item)
    return {
        "item": model.items[position],
        "probability": float(model.marginals()[position]),
        "substitutes": [each._asdict() for each in model.substitutes(item, top)],
        "complements": [each._asdict() for each in model.complements(item, top)],
        "by_chance": {
            "substitutes": left_out(model.substitutes, item),
            "complements": left_out(model.complements, item),
        },
        "intervals_known": model.training is not None,
    }


def left_out(related: Callable[..., Sequence[object]], item: str) -> int:
    """How many items the model has on one side of chance that chance explains."""
    return len(related(item, EVERY, level=None)) - len(related(item, EVERY))


def relations_tables(report: Report) -> Iterator[Shown]:
    for title, lines in ((SUBSTITUTES, report["substitutes"]), (COMPLEMENTS, report["complements"])):
        names = ["{}\n{}".format(*map(shown, each["items"])) for each in lines]
        sure = ", the surest first" if report["intervals_known"] else ""
        none = "no two that the training baskets are sure of." if report["intervals_known"] else "no two."
        yield (
            TextTable(f"{title}{sure}", _first(lines), ["pair", *_columns(report)], _rows(names, report, lines))
            if lines
            else (f"{title}: {none}")
        )
    yield from _meaning(report)
    yield from _segment_tables(report)


def _first(lines: Sequence[Report]) -> str:
    """The strongest line in words."""
    return f"The first two are together {as_often(lines[0]['lift'])}, compared with chance."


def _segment_tables(report: Report) -> Iterator[Shown]:
    large = [each for each in report["segments"] if each["weight"] >= SMALL]
    if len(report["segments"]) == 1:
        yield "Segments: one, so that nobody likes an item more than others do."
        return
    columns = ["", "share>", "items>", "likes more than others do", "times as\nlikely>", "held by\nthem>"]
    yield TextTable("Segments: kinds of people", _first_segment(large), columns, _segment_rows(large))
    small = len(report["segments"]) - len(large)
    if small:
        yield f"{count(small, 'more segment')} of less than {share(SMALL, 1)} each: --json has them."


def _segment_rows(segments: Sequence[Report]) -> list[tuple[str, ...]]:
    """One line per item."""
    rows: list[tuple[str, ...]] = []
    for place, segment in enumerate(segments, start=1):
        first = (str(place), share(segment["weight"]), number(segment["expected_size"], 1))
        lines = [
            (shown(each["item"]), number(each["times_as_likely"], 1), share(each["probability"]))
            for each in segment["likes"][:SHOWN]
        ] or [("", "", "")]
        rows += [(*(first if line is lines[0] else ("", "", "")), *line) for line in lines]
    return rows


def _first_segment(segments: Sequence[Report]) -> str:
    first = segments[0]
    said = f"The largest is {share(first['weight'])} of all sets, with {number(first['expected_size'], 1)} items"
    return f"{said} on average; and so on. Each with the items that tell it from the others best."


def _columns(report: Report) -> list[str]:
    return ["lift>", "9 in 10>", "met>", "by chance>"] if report["intervals_known"] else ["lift>"]


def _rows(names: Sequence[str], report: Report, lines: Sequence[Report]) -> list[tuple[str, ...]]:
    known = report["intervals_known"]
    return [
        (name, number(each["lift"], 2), *(_how_sure(each) if known else ()))
        for name, each in zip(names, lines, strict=True)
    ]


def _how_sure(line: Report) -> tuple[str, str, str]:
    interval = f"{number(line['low'], 2)} to {number(line['high'], 2)}" if math.isfinite(line["high"]) else "any"
    return interval, count(line["met"]), number(line["expected"], 1)


def mixture_item_tables(report: Report) -> Iterator[Shown]:
    yield Facts(briefly([report["item"]]), [("probability of being in a set", chance(report["probability"]))])
    for title, kind in (
        ("Substitutes: with it less often than by chance", "substitutes"),
        ("Complements: with it more often than by chance", "complements"),
    ):
        lines, more = report[kind], report["by_chance"][kind]
        names = [shown(each["item"]) for each in lines]
        yield (
            TextTable(title, _first_of(lines), ["item", *_columns(report)], _rows(names, report, lines))
            if lines
            else f"{title}: none."
        )
        yield by_chance(more)
    yield from _meaning(report)


def by_chance(more: int) -> str:
    """What is not shown."""
    return f"Left out: {count(more, 'more item')}, as chance alone explains how often they met." if more else ""


def _first_of(lines: Sequence[Report]) -> str:
    return f"The first is beside it {as_often(lines[0]['lift'])}, compared with chance."


def _meaning(report: Report) -> Iterator[str]:
    yield MEANING if report["intervals_known"] else UNKNOWN
    if any(
        each["lift"] < each["low"] or each["lift"] > each["high"]
        for each in (*report["substitutes"], *report["complements"])
    ):
        yield SHRUNK
