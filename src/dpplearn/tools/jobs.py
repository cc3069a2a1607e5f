"""Many jobs that know nothing of each other, one after another or over processes; their results as they end.

Ctrl-C is the caller's: it comes out of the loop over results, with all workers ended. What was finished before is the
caller's to keep, in a `tools.journal.Journal` for one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TypeVar

from dpplearn.errors import InputError
from dpplearn.tools.threads import thread_count, without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_in_turn(jobs: Iterable[Job], run: Callable[[Job], Result]) -> Iterator[tuple[Job, Result]]:
    """Every job with its result, in this process."""
    for job in jobs:
        yield job, run(job)


def run_over_processes(
    jobs: Sequence[Job],
    run: Callable[[Job], Result],
    processes: int | None = None,
    begin: Callable[[], None] | None = None,
) -> Iterator[tuple[Job, Result]]:
    """Every job with its result, as they end; by default one process per core.

    `run` and `begin`, which every process calls before its first job, are functions of a module.
    """
    count = min(thread_count(processes), len(jobs))
    if not count:
        return
    with _workers(count, begin) as executor:
        resource_tracker.ensure_running()  # which lets signals in, if that were left to the first worker
        with without_interrupts([signal.SIGINT]):
            running = {executor.submit(run, job): job for job in jobs}
        for future in as_completed(running):
            yield running[future], future.result()


@contextmanager
def _workers(count: int, begin: Callable[[], None] | None) -> Iterator[ProcessPoolExecutor]:
    """None of them is left, however this ends."""
    others = multiprocessing.active_children()
    # Not forked: a fork would inherit locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker, initargs=(begin,))
    try:
        yield executor
    except BrokenProcessPool:
        raise InputError(
            "a worker process was ended from outside, perhaps because memory ran out; what was finished is kept: "
            "run the same command again to go on, with fewer --processes if memory is short"
        ) from None
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()


def _begin_worker(begin: Callable[[], None] | None) -> None:
    """Ctrl-C is for the parent, which ends its workers; should it be killed, they end by themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for systems that cannot start a process without it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
