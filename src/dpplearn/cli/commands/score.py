"""dpplearn score: evaluate models on held-out baskets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import FILE, OUTPUT, Data, Force, Model, Read, Seed, Unknown, check_target, one_of
from dpplearn.cli.output import Display, Report
from dpplearn.data.readers import read_baskets
from dpplearn.data.times import PERIODS, known_times
from dpplearn.data.writing import check_format, write_table


@dataclass(frozen=True)
class Measure:
    """Options of every evaluation.

    Parameters
    ----------
    k
        Number of recommendations; repeat for more. By default 5, 10 and 20.
    all_baskets
        Evaluate all baskets, not a sample of 10,000.
    """

    k: Annotated[list[int] | None, typer.Option("-k")] = None
    all_baskets: Annotated[bool, typer.Option("--all")] = False
    seed: Seed = 0

    def options(self, display: Display) -> dict[str, Any]:
        """Return the options of `evaluate` and `cross_validate`."""
        from dpplearn.evaluation.evaluation import KS, MAX_BASKETS

        most = None if self.all_baskets else MAX_BASKETS
        return {"k": self.k or KS, "max_baskets": most, "rng": self.seed, "progress": display.progress}


def score(
    model: Model,
    data: Data,
    read: Read,
    measure: Measure,
    display: Display,
    against: Annotated[list[Path] | None, typer.Option(metavar="MODEL")] = None,
    train: Annotated[str | None, FILE] = None,
    by: Annotated[str | None, one_of(PERIODS)] = None,
    output: Annotated[Path | None, OUTPUT] = None,
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
    from dpplearn.evaluation.evaluation import evaluate
    from dpplearn.evaluation.result import SCORE_TABLE

    paths = [model, *(against or [])]
    if output is not None:
        check_format(output)
        check_target("--output", output, (*paths, data, train), SCORE_TABLE, force=force)
    models = dict(zip(_names(paths), map(dpplearn.load, paths), strict=True))
    baskets = read.baskets(data, display)
    if by is not None:
        known_times(baskets.times)
    past = None if train is None else read_baskets(train, **read.how)
    result = evaluate(models, baskets, train=past, unknown=unknown, **measure.options(display))
    if output is not None:
        write_table(result.to_table(), output)
    periods = [] if by is None else [result.over_time(by, name) for name in models]
    values = {**result.to_dict(), "over_time": [each.to_dict() for each in periods]}
    parts = [*result.tables(), *(table for each in periods for table in each.tables())]
    files = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": measure.seed}
    display.write(Report(values, parts), **files, output=None if output is None else str(output))


def _names(paths: list[Path]) -> list[str]:
    """Return the names of models: one is called "model", several have the names of their files."""
    if len(paths) == 1:
        return ["model"]
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        raise UsageError("--against must name models whose files have different names")
    return names
