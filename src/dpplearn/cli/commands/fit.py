"""dpplearn fit: learn a model from baskets and save it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import dpplearn
from dpplearn.cli.commands.fit_data import Source, check_holdout, check_targets
from dpplearn.cli.commands.fit_report import fit_report, fit_tables
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.learning import DPPS, Learning, with_learning
from dpplearn.cli.options import (
    LEARNING,
    READING,
    AsJson,
    BasketColumn,
    Before,
    ClusterAddress,
    Data,
    Force,
    Format,
    ItemColumn,
    MinCount,
    ModelOutput,
    OnlyItems,
    Quiet,
    Reader,
    Seed,
    Since,
    Threads,
    TimeColumn,
    TopItems,
    Unknown,
    WeightColumn,
    some_seed,
)
from dpplearn.cli.output import busy, wants_progress, write
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Checkpoint, ProgressBar
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.quality.fit_quality import UNIFORM, fit_quality
from dpplearn.learners.result import FitResult, with_unseen
from dpplearn.learners.settings import Settings, settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.words import listed

Start = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        rich_help_panel=LEARNING,
        help="Start the first run from this model or checkpoint, instead of --init.",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Save the best model so far to this file every minute. --start FILE continues from it."
    ),
]
Test = Annotated[str | None, typer.Option(metavar="FILE", help="Baskets to report the log-likelihood of, too.")]
Holdout = Annotated[
    float | None, typer.Option(metavar="FRACTION", help="Hold this share of DATA out of learning, to report on.")
]
FeatureTable = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE",
        rich_help_panel=DPPS,
        help="Of --learner quality: a CSV or Parquet file with a row per item and columns of numbers and categories, "
        "from which the quality of items is learned. The items are in the column item, or else in the first.",
    ),
]
Similarity = Annotated[
    str | None,
    typer.Option(
        metavar="uniform|FILE",
        rich_help_panel=DPPS,
        help="Of --learner quality: uniform, the default, for items that are all alike to an extent that is learned; "
        "or a CSV or Parquet file of each item with its kind, or of a row and a column per item, whose strength is "
        "learned.",
    ),
]
InParts = Annotated[
    bool,
    typer.Option(
        "--parts",
        rich_help_panel=READING,
        help="Every file of DATA is a part of the baskets, and what is learned is the same to the last bit as with "
        "--cluster, which implies this.",
    ),
]


@with_learning
def fit(
    data: Data,
    output: ModelOutput,
    learning: Learning,
    start: Start = None,
    features: FeatureTable = None,
    similarity: Similarity = None,
    seed: Seed = None,
    threads: Threads = None,
    checkpoint: CheckpointFile = None,
    test: Test = None,
    holdout: Holdout = None,
    parts: InParts = False,
    cluster: ClusterAddress = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    min_count: MinCount = None,
    top_items: TopItems = None,
    only: OnlyItems = None,
    unknown: Unknown = "error",
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a mixture (default) or a DPP to baskets and save it.

    Ctrl-C and SIGTERM save the best model so far.
    """
    in_parts = parts or cluster is not None
    check_holdout(holdout, test, seed, checkpoint, in_parts=in_parts)
    check_targets(output, checkpoint, start, (data, test, only, features), force)
    progress = wants_progress(quiet)
    given = dpplearn.load(start) if start is not None else None
    seed = some_seed(seed)
    kind = None if given is None else "dpp" if isinstance(given, DPP) else "mixture"
    options = {**learning.checked(start, kind), "threads": threads}
    check_quality(learning, features, similarity, start)
    settings: Settings | None = None
    fitted: Callable[..., FitResult[Any]] = partial(fit_quality, **options_of_quality(options, features, similarity))
    if learning.learner != QUALITY:
        settings = settings_of(**{**options, "model": options["model"] or kind}).like(given)
        fitted = partial(fit_with, settings, start=given, rng=seed)
    if checkpoint is None:
        best_so_far = Checkpoint(output, math.inf, force=force)
    else:
        best_so_far = Checkpoint(checkpoint, force=force)
    reader = Reader(format, basket, item, weight, unknown, min_count, top_items, only, time, since, before)
    source = Source(reader, data, test, holdout, seed, in_parts, cluster)
    with ExitStack() as ending:
        with busy(f"reading {data}", progress):
            train, held_out = ending.enter_context(source.opened())
        try:
            with shown_progress(progress) as shown:
                result = fitted(train, callback=[ProgressBar(shown), best_so_far])
            judge(result.model, held_out)
        except KeyboardInterrupt:
            if not best_so_far.saved:  # the signal came after learning
                with INTERRUPTS.held():
                    best_so_far.save()
            if best_so_far.saved:
                leave_interrupted(best_so_far.path)
            raise
        save_model(result.model, output, checkpoint, force)
        files = {"model": str(output), "data": data, "test_data": test}
        report = fit_report(result, settings, train, held_out, **files, seed=seed)
    write(report, fit_tables, as_json)
    if INTERRUPTS.received is not None:  # while the model was saved
        leave_interrupted(output)


def judge(model: SetModel, held_out: Baskets | None) -> None:
    """Have the model know what it gains on baskets held out."""
    if held_out is not None and model.training is not None:
        judged = with_unseen(model.learned, model.distribution, model.training, held_out, nonempty=model.nonempty)
        model.learned = judged


def check_quality(learning: Learning, features: Path | None, similarity: str | None, start: Path | None) -> None:
    """Refuse options that only --learner quality has, and with it options that it does not have."""
    only = {"--features": features, "--similarity": similarity}
    never = {"--start": start, "--init": learning.init, "--validation": learning.validation}
    never["--restarts"] = learning.restarts if learning.restarts > 1 else None
    never["--shrinkage"] = learning.shrinkage or None
    wrong = [name for name, value in (never if learning.learner == QUALITY else only).items() if value is not None]
    if wrong:
        valid = "is not for" if learning.learner == QUALITY else "needs"
        raise UsageError(f"{listed(wrong)} {valid} --learner {QUALITY}")


def options_of_quality(options: dict[str, Any], features: Path | None, similarity: str | None) -> dict[str, Any]:
    """Return the options of `fit_quality`; a similarity from a file has the name of the file."""
    names = ("nonempty", "max_iter", "max_seconds", "threads", "tol")
    found = {name: options[name] for name in names if options[name] is not None}
    if similarity is not None:
        found["similarity"] = similarity if similarity == UNIFORM else {Path(similarity).stem: similarity}
    return {**found, "features": features, "smooth": options["shrinkage"] is None}


def save_model(model: SetModel, output: Path, state: Path | None, force: bool) -> None:
    """Whatever signal comes. If it fails, as on a full disk, say where else the work of perhaps hours is."""
    try:
        with INTERRUPTS.held():
            model.save(output, force=force)
    except InputError as error:
        if state is None or not state.is_file():
            raise
        raise InputError(
            f"{error}; the best model so far is in {state}: free some space, then continue with --start {state}"
        ) from None


def leave_interrupted(path: Path) -> NoReturn:
    """Report where the model is, and exit with the code of the signal."""
    complain("interrupted", f"the best model so far was saved to {path}")
    raise typer.Exit(INTERRUPTS.exit_code)
