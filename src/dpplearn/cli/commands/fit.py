"""dpplearn fit: fit a model to baskets and save it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import dpplearn
from dpplearn.cli.commands.fit_data import HeldOut, Source, check_targets
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.learning import DPPS, Learning
from dpplearn.cli.options import (
    LEARNING,
    READING,
    ClusterAddress,
    Data,
    Display,
    Filtering,
    Force,
    ModelOutput,
    Reading,
    Seed,
    some_seed,
)
from dpplearn.cli.output import busy, show, write_json
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Checkpoint, ProgressBar
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.quality.fit_quality import UNIFORM, fit_quality
from dpplearn.learners.result import FitResult, with_unseen
from dpplearn.learners.settings import settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import Facts, listed

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
FeatureTable = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE",
        rich_help_panel=DPPS,
        help="For --learner quality: a CSV or Parquet file with one row per item and columns of numbers and "
        "categories. Items are in the column item, or else in the first column.",
    ),
]
Similarity = Annotated[
    str | None,
    typer.Option(
        metavar="uniform|FILE",
        rich_help_panel=DPPS,
        help="For --learner quality: uniform (default), where all pairs are equally similar; or a CSV or Parquet file "
        "with the kind of each item, or with one row and one column per item. Strengths are fitted.",
    ),
]
InParts = Annotated[
    bool,
    typer.Option(
        "--parts",
        rich_help_panel=READING,
        help="Treat every file of DATA as a part. The result is the same to the last bit as with --cluster, which "
        "implies this option.",
    ),
]


@dataclass(frozen=True)
class Quality:
    """Options of --learner quality."""

    features: FeatureTable = None
    similarity: Similarity = None


def fit(
    data: Data,
    output: ModelOutput,
    learning: Learning,
    quality: Quality,
    held_out: HeldOut,
    reading: Reading,
    filtering: Filtering,
    display: Display,
    start: Start = None,
    checkpoint: CheckpointFile = None,
    seed: Seed = None,
    parts: InParts = False,
    cluster: ClusterAddress = None,
    force: Force = False,
) -> None:
    """Fit a mixture (default) or a DPP to baskets and save it.

    Ctrl-C and SIGTERM save the best model so far.
    """
    in_parts = parts or cluster is not None
    held_out.check(seed, checkpoint, in_parts=in_parts)
    read = (data, held_out.test, filtering.only, quality.features)
    check_targets(output, checkpoint, start, read, force)
    held_out.check_file((*read, output, checkpoint, start), force)
    given = dpplearn.load(start) if start is not None else None
    seed = some_seed(seed)
    kind = None if given is None else "dpp" if isinstance(given, DPP) else "mixture"
    options = {**learning.checked(start, kind), "threads": display.threads}
    check_quality(learning, quality, start)
    fitted: Callable[..., FitResult[Any]] = partial(fit_quality, **options_of_quality(options, quality))
    if learning.learner != QUALITY:
        settings = settings_of(**{**options, "model": options["model"] or kind}).like(given)
        fitted = partial(fit_with, settings, start=given, rng=seed)
    best_so_far = Checkpoint(checkpoint or output, 60.0 if checkpoint else math.inf, force=force)
    reader = reading.reader(held_out.unknown, filtering)
    source = Source(reader, data, held_out, seed, in_parts, cluster)
    with ExitStack() as ending:
        with busy(f"reading {data}", display.progress):
            train, test = ending.enter_context(source.opened())
        try:
            with shown_progress(display.progress) as shown:
                result = fitted(train, callback=[ProgressBar(shown), best_so_far])
            judge(result.model, test)
        except KeyboardInterrupt:
            if not best_so_far.saved:  # the signal came after learning
                with INTERRUPTS.held():
                    best_so_far.save()
            if best_so_far.saved:
                leave_interrupted(best_so_far.path)
            raise
        save_model(result.model, output, checkpoint, force)
        held_out.write(test, reading)
        files = {"model": str(output), "data": data, "test_data": held_out.test}
        report = {**files, "seed": seed, **result.to_dict(test)} if display.as_json else {}
    if display.as_json:
        write_json(report)
    else:
        show([*result.tables(test), Facts("Files", [("data", data), ("model", str(output)), ("seed", str(seed))])])
    if INTERRUPTS.received is not None:  # while the model was saved
        leave_interrupted(output)


def judge(model: SetModel, held_out: Baskets | None) -> None:
    """Record the gain of the model on held-out baskets."""
    if held_out is not None and model.training is not None:
        judged = with_unseen(model.learned, model.distribution, model.training, held_out, nonempty=model.nonempty)
        model.learned = judged


def check_quality(learning: Learning, quality: Quality, start: Path | None) -> None:
    """Refuse options that only --learner quality has, and with it options that it does not have."""
    only = {"--features": quality.features, "--similarity": quality.similarity}
    never = {"--start": start, "--init": learning.init, "--validation": learning.validation}
    never["--restarts"] = learning.restarts if learning.restarts > 1 else None
    never["--shrinkage"] = learning.shrinkage or None
    wrong = [name for name, value in (never if learning.learner == QUALITY else only).items() if value is not None]
    if wrong:
        valid = "is not for" if learning.learner == QUALITY else "needs"
        raise UsageError(f"{listed(wrong)} {valid} --learner {QUALITY}")


def options_of_quality(options: dict[str, Any], quality: Quality) -> dict[str, Any]:
    """Return the options of `fit_quality`; a similarity from a file has the name of the file."""
    names = ("nonempty", "max_iter", "max_seconds", "threads", "tol")
    found = {name: options[name] for name in names if options[name] is not None}
    similarity = quality.similarity
    if similarity is not None:
        found["similarity"] = similarity if similarity == UNIFORM else {Path(similarity).stem: similarity}
    return {**found, "features": quality.features, "smooth": options["shrinkage"] is None}


def save_model(model: SetModel, output: Path, state: Path | None, force: bool) -> None:
    """Save the model, also if a signal arrives. If that fails, say which checkpoint has it."""
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
