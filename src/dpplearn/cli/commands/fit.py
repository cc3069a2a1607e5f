"""dpplearn fit: fit a model to baskets and save it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer

import dpplearn
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.learning import Learn
from dpplearn.cli.options import (
    FILE,
    OUTPUT,
    AnySeed,
    Cluster,
    Data,
    Filter,
    Force,
    Fraction,
    Read,
    check_exclusive,
    check_target,
    some_seed,
)
from dpplearn.cli.output import Display
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.readers import read_parts
from dpplearn.data.writing import check_format, write_table
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Checkpoint, ProgressBar
from dpplearn.learners.fit import fit_with
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.quality.fit_quality import UNIFORM, fit_quality
from dpplearn.learners.result import FitResult, with_unseen_gain
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.utils.files import OutputKind
from dpplearn.utils.progress import shown_progress

CHECKPOINT_SECONDS = 60.0
OF_QUALITY = {"learner", "shrinkage", "nonempty", "max_iter", "max_seconds", "tol"}
NEW_FILE = OutputKind("an earlier output", lambda path: False)  # existing tables are replaced with --force only


@dataclass(frozen=True)
class Quality:
    """Options of --learner quality.

    Parameters
    ----------
    features
        For --learner quality: a CSV or Parquet file with one row per item and columns of numbers and categories. Items
        are in the column item, or else in the first column.
    similarity
        For --learner quality: uniform (default), where all pairs are equally similar; or a CSV or Parquet file with the
        group of each item, or with one row and one column per item. Strengths are fitted.
    """

    panel: ClassVar[str] = Learn.panel
    features: Annotated[Path | None, FILE] = None
    similarity: Annotated[str | None, typer.Option(metavar="uniform|FILE")] = None

    def options(self, learn: Learn, start: Path | None) -> dict[str, Any]:
        """Return the options of `fit_quality`; a similarity from a file has the name of the file."""
        given = learn.given
        others = {f"--{name.replace('_', '-')}": name for name in given if name not in OF_QUALITY}
        smooth = given.pop("shrinkage", None) is None
        check_exclusive({**others, "--start": start}, f"is not valid with --learner {given.pop('learner')}")
        similarity: Any = self.similarity or UNIFORM
        if similarity != UNIFORM:
            similarity = {Path(similarity).stem: similarity}
        return {**given, "features": self.features, "similarity": similarity, "smooth": smooth}


def fit(
    data: Data,
    output: Annotated[Path, OUTPUT],
    learn: Learn,
    quality: Quality,
    read: Read,
    filter: Filter,
    display: Display,
    start: Annotated[Path | None, typer.Option(metavar="MODEL")] = None,
    checkpoint: Annotated[Path | None, FILE] = None,
    holdout: Fraction = None,
    holdout_file: Annotated[Path | None, FILE] = None,
    seed: AnySeed = None,
    cluster: Cluster = None,
    force: Force = False,
) -> None:
    """Fit a mixture (default) or a DPP to baskets and save it.

    Ctrl-C and SIGTERM save the best model so far.

    Parameters
    ----------
    output
        The model file to write; an old one is replaced.
    start
        Start the first run from this model or checkpoint.
    checkpoint
        Save the best model so far to this file every minute. --start FILE continues from it.
    holdout_file
        Write the held-out baskets to a .csv, .parquet or .jsonl file.
    """
    sources = (data, filter.keep_items, quality.features, quality.similarity and Path(quality.similarity))
    if holdout is None:
        check_exclusive({"--holdout-file": holdout_file}, "needs --holdout")
    elif checkpoint is not None and seed is None:
        raise UsageError("--holdout with --checkpoint needs --seed, so that --start holds out the same baskets")
    if holdout_file is not None:
        check_format(holdout_file)
        check_target("--holdout-file", holdout_file, (*sources, output, checkpoint, start), NEW_FILE, force=force)
    check_target("--output", output, (*sources, checkpoint, start), MODEL_FILE, force=force)
    check_target("--checkpoint", checkpoint, sources, MODEL_FILE, force=force)
    seed = some_seed(seed)
    fitted = _fit_function(learn, quality, start, seed, display.threads)
    best_so_far = Checkpoint(checkpoint or output, CHECKPOINT_SECONDS if checkpoint else math.inf, force=force)
    with _opened(data, read, filter, holdout, cluster, seed, display) as (train, test):
        try:
            with shown_progress(display.progress) as shown:
                result = fitted(train, callback=[ProgressBar(shown), best_so_far])
            if test is not None and result.model.training is not None:
                result.model.learned = with_unseen_gain(result.model, result.model.training, test)
        except KeyboardInterrupt:
            with INTERRUPTS.held():
                best_so_far.save()
            if best_so_far.saved:
                leave_interrupted(best_so_far.path)
            raise
        if test is not None and holdout_file is not None:
            _write_baskets(test, holdout_file, read)
        save_model(result.model, output, checkpoint, force)
    display.write(result, test, data=data, seed=seed, output=str(output))


def _fit_function(
    learn: Learn, quality: Quality, start: Path | None, seed: int, threads: int | None
) -> Callable[..., FitResult[Any]]:
    """Return the function that fits the training baskets, after checking the options."""
    if learn.learner == QUALITY:
        return partial(fit_quality, threads=threads, **quality.options(learn, start))
    check_exclusive({"--features": quality.features, "--similarity": quality.similarity}, "needs --learner quality")
    given = dpplearn.load(start) if start is not None else None
    kind = given.kind if given is not None and learn.model is None else learn.model
    settings = learn.settings(threads=threads, model=kind)
    return partial(fit_with, settings, start=given, rng=seed)


def split(baskets: Baskets, holdout: float | None, seed: int) -> tuple[Baskets, Baskets | None]:
    """Return the training and the held-out part."""
    if holdout is None:
        return baskets, None
    train, test = baskets.split(1 - holdout, rng=seed)
    if not test.total_weight > 0:
        raise InputError(f"--holdout {holdout:g} of {len(baskets)} baskets leaves nothing to evaluate on")
    return train, test


@contextmanager
def _opened(
    data: str, read: Read, filter: Filter, holdout: float | None, cluster: str | None, seed: int, display: Display
) -> Iterator[tuple[AnyBaskets, Baskets | None]]:
    """Yield training and held-out baskets. With a cluster, every file is a part, which workers hold until the end."""
    if cluster is None:
        yield split(filter.filtered(read.baskets(data, display)), holdout, seed)
        return
    if (read.since, read.before, filter, holdout) != (None, None, Filter(), None):
        raise UsageError("--since, --before, --holdout and filters of items are not valid with --cluster; use prepare")
    how = {name: value for name, value in read.how.items() if name != "time"}
    with display.busy(f"reading {data}"):
        parts = read_parts(data, **how, cluster=cluster)
    with parts:
        yield parts, None


def _write_baskets(baskets: Baskets, file: Path, read: Read) -> None:
    """Write held-out baskets with the columns that they were read with. Empty baskets have no rows."""
    names = {"basket": "basket", "item": "item", **read.how}
    table = baskets.to_table()
    write_table({column: table[name] for name, column in names.items() if name in table}, file)


def save_model(model: SetModel, output: Path, state: Path | None, force: bool) -> None:
    """Save the model, also if a signal arrives, and exit then. If that fails, name the checkpoint that has it."""
    try:
        with INTERRUPTS.held():
            model.save(output, force=force)
        if INTERRUPTS.received is not None:
            leave_interrupted(output)
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
