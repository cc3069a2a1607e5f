"""dpplearn score: evaluate models on held-out baskets."""

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
    one_of,
)
from dpplearn.cli.output import Report, Shown, busy, show, wants_progress, write_json
from dpplearn.data.times import PERIODS
from dpplearn.data.writing import check_format, write_table
from dpplearn.utils.text import Facts, TextTable, count, shown

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
        "--train", metavar="FILE", help="Training baskets of the baselines; by default the training data of MODEL."
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PERIODS), callback=one_of(PERIODS), help="With --time: also print the means of each period."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write a row per basket and model to a .csv, .parquet or .jsonl file."
    ),
]
Lengths = Annotated[
    list[int] | None,
    typer.Option(
        "-k", min=1, rich_help_panel=MEASURING, help="Number of recommendations; repeat for more. Default 5, 10, 20."
    ),
]
FixedSeed = Annotated[
    int, typer.Option("--seed", min=0, rich_help_panel=MEASURING, help="Seed of the held-out items and other draws.")
]
AllBaskets = Annotated[
    bool, typer.Option("--all", rich_help_panel=MEASURING, help="Evaluate all baskets, not a sample of 10,000.")
]


def score(
    model: Model,
    data: Data,
    against: Against = None,
    train: Train = None,
    by: By = None,
    output: Output = None,
    k: Lengths = None,
    seed: FixedSeed = 0,
    all_baskets: AllBaskets = False,
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
    from dpplearn.evaluation.evaluation import KS, MAX_BASKETS, evaluate

    _check(output, (model, *(against or ()), data, train), force, by, time)
    models = _loaded([model, *(against or [])])
    first = next(iter(models.values()))
    progress = wants_progress(quiet)
    reader = Reader(format, basket, item, weight, unknown, time=time, since=since, before=before)
    with busy(f"reading {data}", progress):
        baskets, left_out = reader.read_known(data, first.catalogue)
        learned_from = None if train is None else reader.read_for("--train", train, first.catalogue)
    most = None if all_baskets else MAX_BASKETS
    found = evaluate(models, baskets, train=learned_from, k=k or KS, max_baskets=most, rng=seed, progress=progress)
    if output is not None:
        write_table(found.to_table(), output)
    periods = [] if by is None else [found.over_time(by, name) for name in found.models if name in models]
    where: Report = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": seed}
    if output is not None:
        where["output"] = str(output)
    if as_json:
        over_time = {} if by is None else {"over_time": [every.to_dict() for every in periods]}
        write_json({**where, **_headline(found), **found.to_dict(), "unknown": left_out.to_dict(), **over_time})
        return
    facts = [("model", shown(model)), *(("against", shown(other)) for other in against or ())]
    facts.append(("data", described(data, found)))
    if left_out:
        facts.append(("unknown items", left_out.and_emptied))
    if output is not None:
        facts.append(("written to", shown(output)))
    show([Facts("Score", facts), *evaluation_tables(found), *(table for every in periods for table in every.tables())])


def _check(
    output: Path | None, sources: Sequence[str | Path | None], force: bool, by: str | None, time: str | None
) -> None:
    """Check the options before anything is read."""
    if by is not None and time is None:
        raise UsageError(f"--by {by} needs the column of times; name it with --time")
    if output is not None:
        from dpplearn.evaluation.result import SCORE_TABLE

        check_format(output)
        check_target("--output", output, sources, SCORE_TABLE, force=force)


def _loaded(paths: Sequence[Path]) -> dict[str, SetModel]:
    """Load the models: one is called "model", several have the names of their files."""
    from dpplearn.evaluation.evaluation import DEFAULT_NAME

    if len(paths) == 1:
        return {DEFAULT_NAME: dpplearn.load(paths[0])}
    stems = [path.stem for path in paths]
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice; compare different models")
    return {name: dpplearn.load(path) for name, path in zip(names, paths, strict=True)}


def _headline(found: Evaluation) -> Report:
    """Return the log-likelihood of the first model and of independent items."""
    from dpplearn.evaluation.baselines import INDEPENDENT

    name = found.models[0]
    return {
        "log_likelihood": found.estimate(name).value,
        "baseline": INDEPENDENT,
        "baseline_log_likelihood": found.estimate(INDEPENDENT).value,
        "gain": found.difference(name, INDEPENDENT).value,
    }


def described(data: str, found: Evaluation) -> str:
    """Return the file of baskets with the number of baskets that were evaluated."""
    return f"{shown(data)}: {count(found.n_baskets, 'basket')} of total weight {found.weight:,g}"


def evaluation_tables(found: Evaluation) -> Iterator[Shown]:
    """Yield tables and remarks. Names of models may be names of files, which are escaped."""
    for table in found.tables():
        yield TextTable(table.title, table.meaning, table.columns, [tuple(map(shown, row)) for row in table.rows])
    yield from found.remarks()
