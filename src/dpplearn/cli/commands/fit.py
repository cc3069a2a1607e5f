"""dpplearn fit: fit a model to baskets and save it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import dpplearn
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.learning import DPPS, Learn
from dpplearn.cli.options import (
    LEARNING,
    NEW_FILE,
    Cluster,
    Data,
    Display,
    Filter,
    Force,
    ModelOutput,
    Read,
    Seed,
    check_exclusive,
    check_target,
    option,
    some_seed,
)
from dpplearn.cli.output import busy, write
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.readers import read_parts
from dpplearn.data.writing import check_format, write_table
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Checkpoint, ProgressBar
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.quality.fit_quality import UNIFORM, fit_quality
from dpplearn.learners.result import FitResult, with_unseen
from dpplearn.learners.settings import settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.utils.progress import shown_progress

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class Quality:
    """Options of --learner quality."""

    features: Annotated[
        Path | None,
        option(
            "For --learner quality: a CSV or Parquet file with one row per item and columns of numbers and categories. "
            "Items are in the column item, or else in the first column.",
            metavar="FILE",
            panel=DPPS,
        ),
    ] = None
    similarity: Annotated[
        str | None,
        option(
            "For --learner quality: uniform (default), where all pairs are equally similar; or a CSV or Parquet file "
            "with the group of each item, or with one row and one column per item. Strengths are fitted.",
            metavar="uniform|FILE",
            panel=DPPS,
        ),
    ] = None

    def checked(self, learn: Learn, start: Path | None) -> None:
        """Raise an error for options that only --learner quality has, or that it does not have."""
        if learn.learner != QUALITY:
            check_exclusive({"--features": self.features, "--similarity": self.similarity}, "needs --learner quality")
            return
        restarts = learn.restarts if learn.restarts > 1 else None
        never = {"--start": start, "--init": learn.init, "--validation": learn.validation, "--restarts": restarts}
        check_exclusive({**never, "--shrinkage": learn.shrinkage or None}, f"is not valid with --learner {QUALITY}")

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the options of `fit_quality`; a similarity from a file has the name of the file."""
        names = ("nonempty", "max_iter", "max_seconds", "threads", "tol")
        found = {name: given[name] for name in names if given[name] is not None}
        if self.similarity is not None:
            own = {Path(self.similarity).stem: self.similarity}
            found["similarity"] = UNIFORM if self.similarity == UNIFORM else own
        return {**found, "features": self.features, "smooth": given["shrinkage"] is None}


HoldoutShare = Annotated[
    float | None, option("Hold out this fraction of DATA to evaluate on.", "--holdout", metavar="FRACTION")
]


@dataclass(frozen=True)
class Holdout:
    """Options for baskets that are not used for fitting."""

    holdout: HoldoutShare = None
    holdout_file: Annotated[
        Path | None, option("Write the held-out baskets to a .csv, .parquet or .jsonl file.", metavar="FILE")
    ] = None

    def check(self, sources: Sequence[str | Path | None], force: bool) -> None:
        """Raise an error if the options are not valid."""
        if self.holdout is not None and not 0 < self.holdout < 1:
            raise UsageError(f"--holdout must be between 0 and 1, got {self.holdout:g}")
        if self.holdout_file is not None:
            if self.holdout is None:
                raise UsageError("--holdout-file needs --holdout")
            check_format(self.holdout_file)
            check_target("--holdout-file", self.holdout_file, sources, NEW_FILE, force=force)

    def split(self, baskets: Baskets, seed: int) -> tuple[Baskets, Baskets | None]:
        """Return the training and the held-out part."""
        if self.holdout is None:
            return baskets, None
        train, test = baskets.split(1 - self.holdout, rng=seed)
        if not test.total_weight > 0:
            raise InputError(f"--holdout {self.holdout:g} of {len(baskets)} baskets leaves nothing to evaluate on")
        return train, test

    def write(self, baskets: Baskets | None, read: Read) -> None:
        """Write held-out baskets with the columns that they were read with. Empty baskets have no rows."""
        if self.holdout_file is None or baskets is None:
            return
        names = {"basket": "basket", "item": "item", **read.named}
        table = baskets.to_table()
        columns = {column: table[name] for name, column in names.items()}
        write_table(columns, self.holdout_file)


def fit(
    data: Data,
    output: ModelOutput,
    learn: Learn,
    quality: Quality,
    holdout: Holdout,
    read: Read,
    filter: Filter,
    display: Display,
    start: Annotated[
        Path | None, option("Start the first run from this model or checkpoint.", metavar="MODEL", panel=LEARNING)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option("Save the best model so far to this file every minute. --start FILE continues from it.", metavar="FILE"),
    ] = None,
    seed: Seed = None,
    cluster: Cluster = None,
    force: Force = False,
) -> None:
    """Fit a mixture (default) or a DPP to baskets and save it.

    Ctrl-C and SIGTERM save the best model so far.
    """
    sources = (data, filter.keep_items, quality.features)
    holdout.check((*sources, output, checkpoint, start), force)
    if holdout.holdout is not None and checkpoint is not None and seed is None:
        raise UsageError("--holdout with --checkpoint needs --seed, so that --start holds out the same baskets")
    check_target("--output", output, (*sources, checkpoint, start), MODEL_FILE, force=force)
    check_target("--checkpoint", checkpoint, sources, MODEL_FILE, force=force)
    quality.checked(learn, start)
    options, seed = {**learn.checked(), "threads": display.threads}, some_seed(seed)
    fitted: Callable[..., FitResult[Any]] = partial(fit_quality, **quality.options(options))
    if learn.learner != QUALITY:
        given = dpplearn.load(start) if start is not None else None
        if given is not None and learn.kind not in (None, given.kind):
            raise UsageError(f"--start {start} is a {given.kind}, and the other options are for a {learn.kind}")
        kind = learn.kind if given is None else given.kind
        settings = settings_of(**{**options, "model": kind}).like(given)
        fitted = partial(fit_with, settings, start=given, rng=seed)
    best_so_far = Checkpoint(checkpoint or output, CHECKPOINT_SECONDS if checkpoint else math.inf, force=force)
    with opened(data, read, filter, holdout, cluster, seed, display) as (train, test):
        try:
            with shown_progress(display.progress) as shown:
                result = fitted(train, callback=[ProgressBar(shown), best_so_far])
            record_holdout(result.model, test)
        except KeyboardInterrupt:
            if not best_so_far.saved:  # the signal came after learning
                with INTERRUPTS.held():
                    best_so_far.save()
            if best_so_far.saved:
                leave_interrupted(best_so_far.path)
            raise
        save_model(result.model, output, checkpoint, force)
        holdout.write(test, read)
    write(result, display, test, data=data, seed=seed, output=str(output))
    if INTERRUPTS.received is not None:  # while the model was saved
        leave_interrupted(output)


@contextmanager
def opened(
    data: str, read: Read, filter: Filter, holdout: Holdout, cluster: str | None, seed: int, display: Display
) -> Iterator[tuple[AnyBaskets, Baskets | None]]:
    """Yield training and held-out baskets. With a cluster, every file is a part, which workers hold until the end."""
    if cluster is None:
        with busy(f"reading {data}", display):
            both = holdout.split(filter.filtered(read.baskets(data)), seed)
        yield both
        return
    options = {"--holdout": holdout.holdout, "--since": read.since, "--before": read.before}
    filters = {"--keep-items": filter.keep_items, "--min-count": filter.min_count, "--top-items": filter.top_items}
    check_exclusive({**options, **filters}, "is not valid with --cluster; see dpplearn prepare")
    columns = {name: column for name, column in read.named.items() if name != "time"}
    with busy(f"reading {data}", display):
        parts = read_parts(data, **columns, format=read.format, cluster=cluster)
    with parts:
        yield parts, None


def record_holdout(model: SetModel, held_out: Baskets | None) -> None:
    """Record the gain of the model on held-out baskets."""
    if held_out is not None and model.training is not None:
        nonempty = model.nonempty
        model.learned = with_unseen(model.learned, model.distribution, model.training, held_out, nonempty=nonempty)


def save_model(model: SetModel, output: Path, state: Path | None, force: bool) -> None:
    """Save the model, also if a signal arrives. If that fails, name the checkpoint that has it."""
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
