"""dpplearn score: evaluate models on held-out baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import FILE, OUTPUT, Data, Force, Model, Read, Seed, Unknown, check_target, one_of
from dpplearn.cli.output import Display, Report
from dpplearn.data.baskets import known_baskets
from dpplearn.data.readers import read_baskets
from dpplearn.data.times import PERIODS, known_times
from dpplearn.data.writing import check_format, write_table
from dpplearn.errors import InputError

Lengths = Annotated[
    list[int] | None, typer.Option("-k", help="Number of recommendations; repeat for more. By default 5, 10 and 20.")
]
AllBaskets = Annotated[bool, typer.Option("--all", help="Evaluate all baskets, not a sample of 10,000.")]


def score(
    model: Model,
    data: Data,
    read: Read,
    display: Display,
    against: Annotated[list[Path] | None, typer.Option(metavar="MODEL")] = None,
    train: Annotated[str | None, FILE] = None,
    by: Annotated[str | None, one_of(PERIODS)] = None,
    output: Annotated[Path | None, OUTPUT] = None,
    k: Lengths = None,
    seed: Seed = 0,
    all_baskets: AllBaskets = False,
    unknown: Unknown = "error",
    force: Force = False,
) -> None:
    """Evaluate a model on held-out baskets, next to baselines.

    Parameters
    ----------
    against
        Another model to compare with; repeat for more.
    train
        Training baskets of the baselines; by default the counts in MODEL.
    by
        Also print the means of each period; needs times.
    output
        Table to write: .csv, .parquet or .jsonl.
    """
    from dpplearn.evaluation.evaluation import KS, MAX_BASKETS, evaluate
    from dpplearn.evaluation.result import SCORE_TABLE

    paths = [model, *(against or [])]
    if output is not None:
        check_format(output)
        check_target("--output", output, (*paths, data, train), SCORE_TABLE, force=force)
    models = dict(zip(_names(paths), map(dpplearn.load, paths), strict=True))
    catalogue = next(iter(models.values())).catalogue
    baskets, dropped = known_baskets(read.baskets(data, display), catalogue, unknown)
    if by is not None:
        known_times(baskets.times)
    try:
        learned_from = None if train is None else known_baskets(read_baskets(train, **read.how), catalogue, unknown)[0]
    except InputError as error:
        raise InputError(f"--train {train}: {error}") from None
    most = None if all_baskets else MAX_BASKETS
    options: dict[str, Any] = {"max_baskets": most, "rng": seed, "progress": display.progress}
    result = evaluate(models, baskets, train=learned_from, k=k or KS, **options)
    if output is not None:
        write_table(result.to_table(), output)
    periods = [] if by is None else [result.over_time(by, name) for name in models]
    values = {
        **result.to_dict(),
        "unknown": dropped.to_dict(),
        "over_time": [each.to_dict() for each in periods],
    }
    unknown_items = f"Unknown items: {dropped}." if dropped else ""
    parts = [unknown_items, *result.tables(), *(table for each in periods for table in each.tables())]
    files = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": seed}
    display.write(Report(values, parts), **files, output=None if output is None else str(output))


def _names(paths: list[Path]) -> list[str]:
    """Return the names of models: one is called "model", several have the names of their files."""
    if len(paths) == 1:
        return ["model"]
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        raise UsageError("--against must name models whose files have different names")
    return names
