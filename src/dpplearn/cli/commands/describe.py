"""dpplearn describe: what a model says, of all items or of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from dpplearn.analysis.stability import Stability, stability
from dpplearn.analysis.substitutes import (
    AT_LEAST,
    SubstituteGroup,
    SubstitutePair,
    substitute_groups,
    substitute_pairs,
)
from dpplearn.arrays import Floats
from dpplearn.cli.options import READING, AsJson, BasketColumn, Format, Model, Quiet, Reader, Top, WeightColumn
from dpplearn.cli.output import Report, Shown, counted, wants_progress, write
from dpplearn.data.catalogue import Label
from dpplearn.models.dpp import DPP
from dpplearn.models.model_file import as_dpp, read_model
from dpplearn.tools.tables import Facts, TextTable
from dpplearn.tools.words import chance, count, number, share, shown

RESAMPLES = 20
MOST_ITEMS, MOST_SETS = 200, 120_000  # beyond, learning a model again twenty times is not for the impatient
SETS_OF_THE_PRIOR = 1000  # per item, about
RELIABLE = 0.5  # groups that come back in fewer resamples are counted and not shown

SHOWN = 12  # items of a group
APART = "apart: of the sets that would hold both items by chance, the share in which the model keeps them apart"
LEARNED = {  # what is recorded of learning, in the order shown
    "learner": "learner",
    "start": "start",
    "restarts": "runs",
    "stop": "stopped by",
    "n_iter": "iterations",
    "evaluations": "evaluations",
    "seconds": "seconds",
    "n_baskets": "baskets",
    "n_distinct": "distinct baskets",
    "weight": "total weight",
    "nonempty": "given that baskets are not empty",
    "prior": "prior",
    "prior_chosen": "prior chosen by cross-validation",
    "log_likelihood": "log-likelihood per basket",
    "independent_log_likelihood": "of independent items, not smoothed",
    "validation": "share set aside",
    "validation_log_likelihood": "log-likelihood of what was set aside",
}

RELYING = "How far to rely on it"

TrainingData = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DATA",
        rich_help_panel=RELYING,
        help="The baskets that the model was learned from, to resample; by default baskets drawn from the model.",
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        min=0,
        rich_help_panel=RELYING,
        help=f"How often to learn the model again from a resample. By default {RESAMPLES}, and 0 for large models.",
    ),
]
ResamplingSeed = Annotated[int, typer.Option("--seed", min=0, rich_help_panel=RELYING, help="Seed of the resamples.")]
GroupsAtLeast = Annotated[
    float,
    typer.Option(
        "--groups-at-least",
        metavar="SHARE",
        help="Group items that are kept apart in at least this share of the sets which would hold both by chance, "
        "on average.",
    ),
]
ItemColumnOfData = Annotated[
    str, typer.Option("--item-column", rich_help_panel=READING, help="The column of items, in --data.")
]


def describe(
    model: Model,
    item: Annotated[str | None, typer.Option("--item", help="Show this item and its substitutes instead.")] = None,
    top: Top = 10,
    groups_at_least: GroupsAtLeast = AT_LEAST,
    resamples: Resamples = None,
    data: TrainingData = None,
    seed: ResamplingSeed = 0,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item_column: ItemColumnOfData = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """What a model says: sizes, likely items, items that stand in for each other, how it was learned."""
    found_model, versions = read_model(model)
    dpp = as_dpp(found_model, model)
    if item is not None:
        write({"model": str(model), **item_report(dpp, item, top)}, item_tables, as_json)
        return
    baskets = Reader(format, basket, item_column, weight).read(data) if data is not None else None
    times = resamples if resamples is not None else _usual_resamples(dpp, data is not None)
    found = None
    if times:
        with counted("learning again", times, wants_progress(quiet)) as done:
            found = stability(dpp, baskets, times, at_least=groups_at_least, rng=seed, done=done)
    report = {
        "model": str(model),
        **describe_report(dpp, versions, top, groups_at_least, found),
        "resamples": {"n": times, "of": data or "the model", "seed": seed},
    }
    write(report, describe_tables, as_json)


def _usual_resamples(dpp: DPP, with_data: bool) -> int:
    """None for models that would take long to learn again, or do not tell what they were learned from."""
    if not with_data and dpp.training is None and dpp.learned.weight is None:
        return 0
    prior = 0 < (dpp.learned.prior or 0) < np.inf
    sets = (dpp.learned.n_distinct or 0) + (SETS_OF_THE_PRIOR * len(dpp.items) if prior else 0)
    return RESAMPLES if len(dpp.items) <= MOST_ITEMS and sets <= MOST_SETS else 0


def describe_report(
    dpp: DPP, versions: dict[str, str], top: int, at_least: float, stability: Stability | None
) -> Report:
    marginals = dpp.marginals()
    likeliest = np.argsort(-marginals, kind="stable")[:top]
    groups = substitute_groups(dpp, at_least)
    return {
        "n_items": len(dpp.items),
        "rank": dpp.kernel.rank,
        "size": _size_summary(dpp.size_distribution),
        "learned": dpp.learned.to_dict(),
        "written_with": versions,
        "likeliest_items": [{"item": dpp.items[i], "probability": float(marginals[i])} for i in likeliest],
        "repelling_pairs": [_pair(dpp, each, stability) for each in substitute_pairs(dpp, top, stability)],
        "groups_at_least": at_least,
        "groups": [_group(each, stability) for each in groups],
        "top": top,
    }


def _size_summary(law: Floats) -> Report:
    """Of P(|Y| = k), k = 0, 1, ..."""
    sizes = np.arange(len(law))
    mean = float(law @ sizes)
    low, median, high = (int(np.searchsorted(np.cumsum(law), share)) for share in (0.05, 0.5, 0.95))
    return {
        "expected": mean,
        "standard_deviation": float(law @ (sizes - mean) ** 2) ** 0.5,
        "most_likely": int(np.argmax(law)),
        "percentile_5": low,
        "median": median,
        "percentile_95": min(high, len(law) - 1),
        "probability_empty": float(law[0]),
    }


def _pair(dpp: DPP, pair: SubstitutePair, stability: Stability | None) -> Report:
    weight = dpp.training.weight if dpp.training is not None else np.nan
    return {
        "items": [pair.first, pair.second],
        "substitution": pair.substitution,
        "interval": stability.interval(pair.first, pair.second) if stability is not None else None,
        "again": stability.again(pair.first, pair.second) if stability is not None else None,
        "probability_of_both": pair.probability,
        "by_chance": pair.chance,
        "met": pair.met,
        "expected": pair.chance * weight,
    }


def _group(group: SubstituteGroup, stability: Stability | None) -> Report:
    again = stability.in_one_group(group.items) if stability is not None else None
    return {**group._asdict(), "items": list(group.items), "again": again}


def item_report(dpp: DPP, item: str, top: int) -> Report:
    position = dpp.catalogue.position(item)
    return {
        "item": dpp.items[position],
        "probability": float(dpp.marginals()[position]),
        "substitutes": [each._asdict() for each in dpp.substitutes(item, top)],
    }


def describe_tables(report: Report) -> Iterator[Shown]:
    size = report["size"]
    learned = [(word, _plain(report["learned"][name])) for name, word in LEARNED.items() if name in report["learned"]]
    learned += [(shown(name), _plain(value)) for name, value in report["learned"].items() if name not in LEARNED]
    versions = ", ".join(f"{name} {version}" for name, version in report["written_with"].items())
    rows = [
        ("model", shown(report["model"])),
        ("items", count(report["n_items"])),
        ("rank", f"{count(report['rank'])} (the size of the largest possible set)"),
        ("expected size", f"{number(size['expected'], 2)} items, standard deviation "
                          f"{number(size['standard_deviation'], 2)}"),
        ("likeliest size", f"{size['most_likely']}; 90% of sets have {size['percentile_5']} to "
                           f"{size['percentile_95']} items"),
        ("empty set", f"probability {chance(size['probability_empty'])}"),
        ("written with", versions),
    ]  # fmt: skip
    yield Facts("Model", rows)
    yield Facts("How it was learned", learned or [("", "not recorded: the model was not made by fit")])
    yield TextTable(
        "Most likely items",
        ["item", "probability>"],
        [(shown(each["item"]), chance(each["probability"])) for each in report["likeliest_items"]],
    )
    yield from _pair_tables(report)
    yield from _group_tables(report)
    yield from _reliance(report)


def _pair_tables(report: Report) -> Iterator[Shown]:
    sure = report["resamples"]["n"] > 0
    columns = ["pair", "apart>", *(["90% of\nresamples>", "again>"] if sure else []), "met>", "by chance>"]
    rows = [
        (
            "{}\nand {}\n".format(*map(shown, each["items"])),
            share(each["substitution"]),
            *((f"{share(each['interval'][0])} to {share(each['interval'][1])}", share(each["again"]))
              if sure else ()),
            *_counts(each["met"], each["expected"], each["probability_of_both"], each["by_chance"]),
        )
        for each in report["repelling_pairs"]
    ]  # fmt: skip
    yield TextTable(f"Items that repel each other most{', the surest first' if sure else ''}", columns, rows)


def _group_tables(report: Report) -> Iterator[Shown]:
    sure = report["resamples"]["n"] > 0
    reliable = [each for each in report["groups"] if not sure or each["again"] >= RELIABLE]
    rows = [
        (
            _lines(each["items"]),
            share(each["substitution"]),
            *((share(each["again"]),) if sure else ()),
            *_counts(each["met"], each["expected"], None, each["missing"]),
        )
        for each in reliable[: report["top"]]
    ]
    if rows:
        last = ["met>", "by chance>"] if rows[0][-2] else ["", "missing\nper set>"]
        columns = ["group", "apart>", *(["again>"] if sure else []), *last]
        yield TextTable("Items that stand in for each other", columns, rows)
    else:
        yield "Items that stand in for each other: no group to rely on."
    more, unsure = len(reliable) - len(rows), len(report["groups"]) - len(reliable)
    if more:
        yield f"{count(more, 'more group')}, kept apart in fewer baskets: --top shows them."
    if unsure:
        yield (
            f"{count(unsure, 'more group')} that came back in less than {share(RELIABLE)} of the resamples: --json has "
            "them."
        )


def _lines(items: Sequence[Label]) -> str:
    more = len(items) - SHOWN
    return "\n".join([*(f"· {shown(each)}" for each in items[:SHOWN]), *([f"and {more} more"] if more > 0 else []), ""])


def _counts(met: float, expected: float, probability: float | None, by_chance: float) -> tuple[str, str]:
    """In training baskets, where the model tells; else as probabilities."""
    if np.isnan(met):
        return "" if probability is None else chance(probability), chance(by_chance)
    return count(met), number(expected, 1)


def _reliance(report: Report) -> Iterator[Shown]:
    resamples = report["resamples"]
    drawn = "drawn from the model" if resamples["of"] == "the model" else f"resampled from {shown(resamples['of'])}"
    yield f"{APART}. met and by chance: baskets of the training data that hold both."
    if resamples["n"]:
        yield (
            f"Learned again {resamples['n']} times, from baskets {drawn}. again: the share of these models in which a "
            "pair is apart at least half as much, or in which two items of a group are again in one."
        )
    else:
        yield (
            "How far to rely on these was not looked into: --resamples 20 learns the model again from resamples, of "
            "--data FILE if the model does not tell how many baskets it was learned from."
        )


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.6g}" if isinstance(value, float) else shown(value)


def item_tables(report: Report) -> Iterator[Shown]:
    yield Facts(shown(report["item"]), [("probability of being in a set", chance(report["probability"]))])
    substitutes = [(shown(each["item"]), share(each["substitution"])) for each in report["substitutes"]]
    if not substitutes:
        yield "Substitutes: none. The model keeps no item apart from it."
        return
    yield TextTable("Substitutes: what the model keeps most apart from it", ["item", "apart>"], substitutes)
    yield f"{APART}."
