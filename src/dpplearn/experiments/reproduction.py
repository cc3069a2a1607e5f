"""The whole reproduction: what is still to run is run, and everything found is kept in one file."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from dpplearn.errors import InputError
from dpplearn.experiments.plan import FULL, Scale, plan
from dpplearn.experiments.registries import Source
from dpplearn.experiments.results import About, Results, in_order, job_name, read_results, write_results
from dpplearn.experiments.runner import run_trials, trial_journal
from dpplearn.experiments.trials.authors import read_paper
from dpplearn.experiments.trials.trial import Job
from dpplearn.tools.progress import SILENT, Progress
from dpplearn.version import __version__

RESULTS, JOURNAL = "results.parquet", "unfinished.jsonl"
APART = {"preparation": "preparation", "authors": "authors' runs", "growth": "growth", "recovery": "recovery"}


def reproduce(
    folder: Path,
    source: Source,
    *,
    categories: Sequence[str] = (),
    scale: Scale = FULL,
    processes: int | None = None,
    fresh: bool = False,
    command: str = "",
    progress: Progress = SILENT,
) -> Results:
    """Run the experiments that `folder` does not hold yet, and write `results.parquet` there.

    Trials that an earlier run of the same seed, registries and version finished are kept and not run again, also
    those that this call does not ask for. `fresh` forgets them. `command` is what the report says was run.
    """
    paper = read_paper(source.reference)
    about = About(source.seed, source.kind, digest(source), __version__)
    jobs = plan(source, source.chosen(categories), scale)
    make_folder(folder)
    journal, path = trial_journal(folder / JOURNAL, about), folder / RESULTS
    if fresh:
        for old in (journal.path, path):
            old.unlink(missing_ok=True)
    earlier = read_results(path) if path.exists() else None
    if earlier is not None:
        journal.check_same(asdict(earlier.about), path)
    left = journal.rows()
    kept = {row["job"]: row for row in (*(earlier.rows if earlier else ()), *left)}
    todo = [job for job in jobs if job_name(job) not in kept]
    advance = _bars(progress, jobs, todo)
    with journal.appending(left) as append:
        for job, row in run_trials(todo, source, processes):
            append(row)
            kept[row["job"]] = row
            advance(_group(job))
    finished = _now()
    if earlier is not None and not todo and not left:
        finished, command = earlier.finished, earlier.command
    paper = paper or (earlier.paper if earlier is not None else None)
    results = Results(about, in_order(kept.values()), finished, paper, command)
    write_results(path, results)
    journal.path.unlink()
    return results


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder: {error.strerror or error}; name another with -o") from None


def digest(source: Source) -> str:
    """Of the registry files, so that trials on other data are not taken for these."""
    if source.folder is None:
        return "generated"
    found = hashlib.sha256()
    for path in source.files:
        found.update(path.name.encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _group(job: Job) -> str:
    """Whose progress bar counts this job."""
    return APART.get(job.experiment, job.category)


def _bars(progress: Progress, jobs: Sequence[Job], todo: Sequence[Job]) -> Callable[[str], None]:
    totals = Counter(map(_group, jobs))
    return progress.grouped(totals, totals - Counter(map(_group, todo)), "all trials")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
