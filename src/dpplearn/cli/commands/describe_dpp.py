"""Sections of dpplearn describe for a DPP: substitute pairs, groups of substitutes, substitutes of one item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpplearn.analysis.substitutes import SubstitutePair, substitute_groups, substitute_pairs
from dpplearn.cli.commands.describe_mixture import by_chance, left_out
from dpplearn.cli.output import Report, Shown
from dpplearn.data.catalogue import Label
from dpplearn.models.dpp import DPP
from dpplearn.utils.text import Facts, TextTable, briefly, chance, count, number, share, shown

SHOWN = 12  # items of a group
ALONE = "What goes together: a DPP cannot tell, as it only keeps items apart; a mixture can (fit --model mixture)."
SURE = (
    "9 in 10: where the training baskets put that share, nine times in ten, by how many of them hold both (met) and "
    "how many would by chance."
)
APART = "apart: of the sets that would hold both items by chance, the share in which the model keeps them apart"


def apart_report(dpp: DPP, top: int, at_least: float) -> Report:
    return {
        "rank": dpp.kernel.rank,
        "repelling_pairs": [_pair(dpp, each) for each in substitute_pairs(dpp, top)],
        "groups_at_least": at_least,
        "groups": [{**each._asdict(), "items": list(each.items)} for each in substitute_groups(dpp, at_least)],
    }


def _pair(dpp: DPP, pair: SubstitutePair) -> Report:
    weight = dpp.training.weight if dpp.training is not None else np.nan
    return {
        "items": [pair.first, pair.second],
        "substitution": pair.substitution,
        "probability_of_both": pair.probability,
        "by_chance": pair.chance,
        "met": pair.met,
        "expected": pair.chance * weight,
    }


def dpp_item_report(dpp: DPP, item: str, top: int) -> Report:
    position = dpp.catalogue.position(item)
    return {
        "item": dpp.items[position],
        "probability": float(dpp.marginals()[position]),
        "substitutes": [each._asdict() for each in dpp.substitutes(item, top)],
        "by_chance": {"substitutes": left_out(dpp.substitutes, item)},
    }


def apart_tables(report: Report) -> Iterator[Shown]:
    yield from _pair_tables(report)
    yield from _group_tables(report)
    yield "met and by chance: baskets of the training data that hold both."
    yield ALONE


def _pair_tables(report: Report) -> Iterator[Shown]:
    rows = [
        (
            "{}\n{}".format(*map(shown, each["items"])),
            share(each["substitution"]),
            *_counts(each["met"], each["expected"], each["probability_of_both"], each["by_chance"]),
        )
        for each in report["repelling_pairs"]
    ]
    title = "What competes: items that repel each other most"
    yield (
        TextTable(title, f"{APART}.", ["pair", "apart>", "met>", "by chance>"], rows) if rows else f"{title}: no two."
    )


def _group_tables(report: Report) -> Iterator[Shown]:
    rows = [
        (
            _lines(each["items"]),
            share(each["substitution"]),
            *_counts(each["met"], each["expected"], None, each["missing"]),
        )
        for each in report["groups"][: report["top"]]
    ]
    if rows:
        last = ["met>", "by chance>"] if rows[0][-2] else ["", "missing\nper set>"]
        meaning = "Whoever has one of a group hardly ever has another; the group that is kept apart most comes first."
        yield TextTable("Groups of substitutes", meaning, ["group", "apart>", *last], rows)
    else:
        yield "Groups of substitutes: none."
    more = len(report["groups"]) - len(rows)
    if more:
        yield f"{count(more, 'more group')}, kept apart in fewer baskets: --top shows them."


def _lines(items: Sequence[Label]) -> str:
    more = len(items) - SHOWN
    return "\n".join([*(f"· {shown(each)}" for each in items[:SHOWN]), *([f"and {more} more"] if more > 0 else []), ""])


def _counts(met: float, expected: float, probability: float | None, by_chance: float) -> tuple[str, str]:
    """In training baskets, where the model tells; else as probabilities."""
    if np.isnan(met):
        return "" if probability is None else chance(probability), chance(by_chance)
    return count(met), number(expected, 1)


def dpp_item_tables(report: Report) -> Iterator[Shown]:
    yield Facts(briefly([report["item"]]), [("probability of being in a set", chance(report["probability"]))])
    lines, more = report["substitutes"], report["by_chance"]["substitutes"]
    if not lines:
        yield "Substitutes: none. The model keeps no item apart from it" + (", but by chance." if more else ".")
        yield by_chance(more)
        return
    known = not np.isnan(lines[0]["met"])
    columns = ["item", "apart>", *(["9 in 10>", "met>", "by chance>"] if known else [])]
    rows = [(shown(each["item"]), share(1 - each["lift"]), *(_how_sure(each) if known else ())) for each in lines]
    yield TextTable("Substitutes: what the model keeps most apart from it", f"{APART}.", columns, rows)
    yield SURE if known else ""
    yield by_chance(more)


def _how_sure(line: Report) -> tuple[str, str, str]:
    """The interval from 0 on: below, the two would go together."""
    low, high = (share(max(1 - line[end], 0)) for end in ("high", "low"))
    return f"{low} to {high}", count(line["met"]), number(line["expected"], 1)
