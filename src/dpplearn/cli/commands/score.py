"""dpplearn score: evaluate models on held-out baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    Data,
    Display,
    FixedSeed,
    Force,
    Model,
    ReadKnown,
    TableOutput,
    check_target,
    option,
)
from dpplearn.cli.output import Report, busy, write
from dpplearn.data.times import PERIODS
from dpplearn.data.writing import check_format, write_table

Lengths = Annotated[
    list[int] | None, option("Number of recommendations; repeat for more. By default 5, 10 and 20.", "-k", min=1)
]
AllBaskets = Annotated[bool, option("Evaluate all baskets, not a sample of 10,000.", "--all")]


def score(
    model: Model,
    data: Data,
    read: ReadKnown,
    display: Display,
    against: Annotated[
        list[Path] | None, option("Another model to compare with; repeat for more.", metavar="MODEL")
    ] = None,
    train: Annotated[
        str | None, option("Training baskets of the baselines; by default the counts in MODEL.", metavar="FILE")
    ] = None,
    by: Annotated[str | None, option("Also print the means of each period; needs times.", known=PERIODS)] = None,
    output: TableOutput = None,
    k: Lengths = None,
    seed: FixedSeed = 0,
    all_baskets: AllBaskets = False,
    force: Force = False,
) -> None:
    """Evaluate a model on held-out baskets, next to baselines."""
    from dpplearn.evaluation.baselines import INDEPENDENT
    from dpplearn.evaluation.evaluation import KS, MAX_BASKETS, evaluate
    from dpplearn.evaluation.result import SCORE_TABLE

    paths = [model, *(against or [])]
    if by is not None and "time" not in read.named:
        raise UsageError(f"--by {by} needs the column of times: --columns time=COLUMN")
    if output is not None:
        check_format(output)
        check_target("--output", output, (*paths, data, train), SCORE_TABLE, force=force)
    names = _names(paths)
    models = {name: dpplearn.load(path) for name, path in zip(names, paths, strict=True)}
    catalogue = models[names[0]].catalogue
    with busy(f"reading {data}", display):
        baskets, dropped = read.known(data, catalogue)
        learned_from = None if train is None else read.known_for("--train", train, catalogue)
    most = None if all_baskets else MAX_BASKETS
    options: dict[str, Any] = {"max_baskets": most, "rng": seed, "progress": display.progress}
    result = evaluate(models, baskets, train=learned_from, k=k or KS, **options)
    if output is not None:
        write_table(result.to_table(), output)
    periods = [] if by is None else [result.over_time(by, name) for name in names]
    values = {
        "log_likelihood": result.estimate(names[0]).value,
        "baseline_log_likelihood": result.estimate(INDEPENDENT).value,
        "gain": result.difference(names[0], INDEPENDENT).value,
        **result.to_dict(),
        "unknown": dropped.to_dict(),
        "over_time": [each.to_dict() for each in periods],
    }
    unknown = f"Unknown items: {dropped.and_emptied}." if dropped else ""
    parts = [unknown, *result.tables(), *(table for each in periods for table in each.tables())]
    files = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": seed}
    write(Report(values, parts), display, **files, output=None if output is None else str(output))


def _names(paths: list[Path]) -> list[str]:
    """Return the names of models: one is called "model", several have the names of their files."""
    if len(paths) == 1:
        return ["model"]
    stems = [path.stem for path in paths]
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice; compare different models")
    return names
