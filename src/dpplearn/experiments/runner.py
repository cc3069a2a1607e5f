"""Trials in parallel over processes, each journalled as it ends, so that a run that was cut off goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from dpplearn.errors import InputError, InputWarning
from dpplearn.experiments.plan import EXPERIMENTS
from dpplearn.experiments.registries import Source
from dpplearn.experiments.results import ANEW, COLUMNS, About, full_row, job_name
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.tools.files import replace_file
from dpplearn.tools.threads import one_blas_thread, thread_count

Told = Callable[[Job], None]


class Journal:
    """A file of finished trials, one a line, the first line saying what run they are of."""

    def __init__(self, path: Path, about: About) -> None:
        self.path, self.about = path, about

    def rows(self) -> list[Row]:
        """What an earlier run left; a line that a kill cut short is none."""
        if not self.path.exists():
            return []
        about, *rows = list(self._lines()) or [asdict(self.about)]
        try:
            theirs = About(**about)
        except TypeError:
            raise InputError(f"{self.path} is not what an earlier run left; {ANEW}") from None
        check_same_run(self.about, theirs, self.path)
        return [row for row in rows if row.keys() == COLUMNS.keys()]

    def _lines(self) -> Iterator[Row]:
        for line in self.path.read_bytes().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return

    @contextmanager
    def appending(self, rows: Sequence[Row]) -> Iterator[Callable[[Row], None]]:
        """Within, call the function with every row that is finished. The file begins with those already there."""
        lines = "".join(json.dumps(each) + "\n" for each in (asdict(self.about), *rows))
        replace_file(self.path, lines.encode())
        with open(self.path, "a", encoding="utf-8") as file:

            def append(row: Row) -> None:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())

            yield append


def check_same_run(ours: About, theirs: About, path: Path) -> None:
    different = ours.differences(theirs)
    if different:
        raise InputError(f"{path} holds trials of another run ({'; '.join(different)}); {ANEW}")


def run_jobs(jobs: Sequence[Job], source: Source, processes: int | None, tell: Told) -> Iterator[Row]:
    """Every job's row, as they finish; `tell` hears of each."""
    count = min(thread_count(processes), len(jobs))
    if not count:
        return
    # Not forked: a fork would inherit locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)
    try:
        running = {executor.submit(_run, job, source): job for job in jobs}
        for future in as_completed(running):
            yield future.result()
            tell(running[future])
    except BrokenProcessPool:
        raise InputError(
            "a worker process was ended from outside, perhaps for want of memory; the finished trials are kept: "
            "run the same command again to go on, with fewer --processes if memory is short"
        ) from None
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()


def _begin_worker() -> None:
    """Ctrl-C is for the parent, which ends its workers; should it be killed, they end by themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore", InputWarning)
    _warm_up()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _warm_up() -> None:
    """Load compiled code now, so that it counts in nobody's time."""
    from dpplearn.fitting.fit import fit

    for learner in ("em", "k-ascent"):
        fit([[0], [1], [0, 1]], learner, rng=0, max_iter=3, threads=1)


def _run(job: Job, source: Source) -> Row:
    try:
        with one_blas_thread():
            return full_row(job, EXPERIMENTS[job.experiment](job, source))
    except (ValueError, OSError) as error:  # a start that cannot be used, a matrix that cannot be decomposed, a file
        raise InputError(f"the trial {job_name(job)} failed: {error}; the finished ones are kept") from None
