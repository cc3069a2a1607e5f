"""dpplearn score: how well models predict baskets, beside baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Force,
    Format,
    ItemColumn,
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
    one_of,
)
from dpplearn.cli.output import Report, Shown, busy, show, wants_progress, write_json
from dpplearn.data.baskets import Baskets
from dpplearn.data.times import PERIODS
from dpplearn.data.writing import check_format, write_table
from dpplearn.tools.tables import Facts, TextTable
from dpplearn.tools.words import contents, count, number, shown

if TYPE_CHECKING:
    from dpplearn.evaluation.result import Evaluation
    from dpplearn.models.model import SetModel

MEASURING = "Measuring"

Against = Annotated[
    list[Path] | None,
    typer.Option("--against", metavar="MODEL", help="Another model to compare with; repeat for more."),
]
Train = Annotated[
    str | None,
    typer.Option(
        "--train",
        metavar="FILE",
        help="Baskets that the baselines learn from; by default those MODEL was learned from.",
    ),
]
Each = Annotated[bool, typer.Option("--each", help="Print the log-likelihood of every basket, too.")]
By = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PERIODS), callback=one_of(PERIODS), help="With --time: how it did in every one of these, too."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A table to write, .csv, .parquet or .jsonl: one row per basket, by its own identifier, and model.",
    ),
]
Lengths = Annotated[
    list[int] | None,
    typer.Option(
        "-k", min=1, rich_help_panel=MEASURING, help="Lengths of lists; repeat for more. By default 5, 10 and 20."
    ),
]
FixedSeed = Annotated[
    int,
    typer.Option("--seed", min=0, rich_help_panel=MEASURING, help="Seed of what is held out and of all other draws."),
]


def score(
    model: Model,
    data: Data,
    against: Against = None,
    train: Train = None,
    each: Each = False,
    by: By = None,
    output: Output = None,
    k: Lengths = None,
    seed: FixedSeed = 0,
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
    """Evaluate a model on held-out baskets, next to baselines."""
    from dpplearn.evaluation.evaluation import KS, evaluate

    _check(output, (model, *(against or ()), data, train), force, by, time)
    models = _loaded([model, *(against or [])])
    first = next(iter(models.values()))
    progress = wants_progress(quiet)
    reader = Reader(format, basket, item, weight, unknown, time=time, since=since, before=before)
    with busy(f"reading {data}", progress):
        baskets, left_out = reader.read_known(data, first.catalogue)
        learned_from = None if train is None else reader.read_for("--train", train, first.catalogue)
    found = evaluate(models, baskets, train=learned_from, k=k or KS, rng=seed, progress=progress)
    if output is not None:
        write_table(found.to_table(), output)
    periods = [] if by is None else [found.over_time(by, name) for name in found.models if name in models]
    if as_json:
        where = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": seed}
        of_each: Report = {"each": _each(baskets, found)} if each else {}
        of_each |= {"over_time": [every.to_dict() for every in periods]} if by is not None else {}
        of_each |= {"output": str(output)} if output is not None else {}
        write_json({**where, **_headline(found), **found.to_dict(), "unknown": left_out.to_dict(), **of_each})
        return
    facts = [
        ("model", shown(model)),
        *(("against", shown(other)) for other in against or ()),
        ("data", described(data, found)),
        ("seed", str(seed)),
    ]
    if left_out:
        facts.append(("unknown items", left_out.and_emptied))
    if output is not None:
        facts.append(("written to", shown(output)))
    over_time = [part for every in periods for part in (every.table, every.in_words)]
    show([*([_each_table(baskets, found)] if each else []), *_tables(facts, found), *over_time])


def _check(
    output: Path | None, sources: Sequence[str | Path | None], force: bool, by: str | None, time: str | None
) -> None:
    """Before anything is read."""
    if by is not None and time is None:
        raise UsageError(f"--by {by} needs the column of times; name it with --time")
    if output is not None:
        from dpplearn.evaluation.by_basket import SCORE_TABLE

        check_format(output)
        check_target("--output", output, sources, SCORE_TABLE, force=force)


def _loaded(paths: Sequence[Path]) -> dict[str, SetModel]:
    """A single model is called so; several, by their files."""
    from dpplearn.evaluation.evaluation import ONLY

    if len(paths) == 1:
        return {ONLY: dpplearn.load(paths[0])}
    stems = [path.stem for path in paths]
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice; compare different models")
    return {name: dpplearn.load(path) for name, path in zip(names, paths, strict=True)}


def _headline(found: Evaluation) -> Report:
    """Of the first model, beside independent items."""
    from dpplearn.evaluation.baselines import INDEPENDENT

    name = found.models[0]
    mean, baseline = found.estimate(name).value, found.estimate(INDEPENDENT).value
    return {
        "log_likelihood": mean,
        "baseline": INDEPENDENT,
        "baseline_log_likelihood": baseline,
        "gain": found.difference(name, INDEPENDENT).value,
    }


def _each(baskets: Baskets, found: Evaluation) -> list[Report]:
    values = found.outcomes[found.models[0]]["log_likelihood"]
    rows = zip(ids_of(baskets), baskets, baskets.weights.tolist(), values.tolist(), strict=True)
    return [
        {"basket": name, "items": list(items), "weight": weight, "log_likelihood": value}
        for name, items, weight, value in rows
    ]


def described(data: str, found: Evaluation) -> str:
    """The file of baskets, and how much is in it."""
    return f"{shown(data)}: {count(found.n_baskets, 'basket')} of total weight {found.weight:,g}"


def _each_table(baskets: Baskets, found: Evaluation) -> TextTable:
    return TextTable(
        "Log-likelihood of each basket",
        "The lower, the more a basket surprises the model; large baskets always are less likely.",
        [heading_of_ids(ids_of(baskets)), "weight>", "log-likelihood>", "items;"],
        [
            (shown(each["basket"]), f"{each['weight']:g}", number(each["log_likelihood"]), contents(each["items"]))
            for each in _each(baskets, found)
        ],
    )


def _tables(facts: Sequence[tuple[str, str]], found: Evaluation) -> Iterator[Shown]:
    first = found.models[0]
    impossible = int(found.impossible(first).sum())
    rows = [*facts, ("baskets of probability zero", count(impossible))]
    if impossible:
        rows.append(("mean of the other baskets", number(found.mean_of_possible(first))))
    yield Facts("Score", rows)
    yield from evaluation_tables(found)


def evaluation_tables(found: Evaluation) -> Iterator[Shown]:
    """Its tables and remarks; names of models may come from names of files."""
    from dpplearn.evaluation.text import remarks, tables

    for table in tables(found):
        yield table._replace(rows=[tuple(map(shown, row)) for row in table.rows])
    yield from remarks(found)
