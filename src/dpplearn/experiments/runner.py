"""Trials in parallel over processes, each journalled as it ends, so that a run that was cut off goes on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from dpplearn.errors import InputError, InputWarning
from dpplearn.experiments.plan import EXPERIMENTS
from dpplearn.experiments.registries import Source
from dpplearn.experiments.results import ANEW, COLUMNS, About, full_row, job_name
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.tools.jobs import run_over_processes
from dpplearn.tools.journal import Journal
from dpplearn.tools.threads import one_blas_thread


def trial_journal(path: Path, about: About) -> Journal:
    return Journal(path, asdict(about), COLUMNS, ANEW, About.differs)


def run_trials(jobs: Sequence[Job], source: Source, processes: int | None) -> Iterator[tuple[Job, Row]]:
    """Every job with its row, as they end."""
    return run_over_processes(jobs, partial(run_trial, source=source), processes, begin_worker)


def run_trial(job: Job, source: Source) -> Row:
    """A job's row."""
    try:
        with one_blas_thread():
            return full_row(job, EXPERIMENTS[job.experiment](job, source))
    except (ValueError, OSError) as error:  # a start that cannot be used, a matrix that cannot be decomposed, a file
        raise InputError(f"the trial {job_name(job)} failed: {error}; the finished ones are kept") from None


def begin_worker() -> None:
    """Load compiled code now, so that it counts in nobody's time."""
    from dpplearn.fitting.fit import fit

    warnings.simplefilter("ignore", InputWarning)
    for learner in ("em", "k-ascent"):
        fit([[0], [1], [0, 1]], learner, rng=0, max_iter=3, threads=1)
