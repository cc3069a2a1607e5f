"""Many jobs that know nothing of each other, one after another or over processes; their results as they end.

`run_with_retries` outlives workers that die and jobs that fail. What runs jobs in other places, such as the machines of
a cluster, has its signature: `Over`.

Ctrl-C is the caller's: it comes out of the loop over results, with all workers ended. What was finished before is the
caller's to keep, in a `tools.journal.Journal` for one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from dpplearn.errors import InputError
from dpplearn.tools.threads import thread_count, without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")

RETRIES = 2  # of a job whose worker died
LOOKING = 0.2  # seconds, after which a worker looks again whether its parent is there
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS")}


@dataclass(frozen=True)
class Failure:
    """Why a job has no result; `attempts` is more than 1 where workers died over it."""

    reason: str
    attempts: int = 1

    @classmethod
    def of(cls, error: BaseException, attempts: int = 1) -> Failure:
        return cls(str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}", attempts)


Over = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[tuple[Any, Any]]]  # results may be Failures


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


def run_with_retries(
    jobs: Sequence[Job], run: Callable[[Job], Result], processes: int | None = None, retries: int = RETRIES
) -> Iterator[tuple[Job, Result | Failure]]:
    """Every job with its result, or with why it has none, as they end; by default one process per core.

    A process has one thread, also of BLAS. A job whose process dies is run again, and the others never notice: each
    process is a pool of its own, as a pool that loses one is lost. `run` is a function of a module.
    """
    waiting = deque((job, 1) for job in jobs)
    count = min(thread_count(processes), len(waiting))
    pools: list[Any] = [None] * count
    free, running = set(range(count)), dict[Future[Result], tuple[int, Job, int]]()
    try:
        while waiting or running:
            while waiting and free:
                place, (job, attempt) = free.pop(), waiting.popleft()
                with without_interrupts([signal.SIGINT]):
                    pools[place] = pools[place] or _pool_of_one()
                    running[pools[place].submit(run, job)] = (place, job, attempt)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place, job, attempt = running.pop(future)
                free.add(place)
                error = future.exception()
                if _is_death(error):
                    pools[place] = pools[place].shutdown(kill_workers=True)
                    if attempt <= retries:
                        waiting.appendleft((job, attempt + 1))
                        continue
                yield job, future.result() if error is None else _failure(error, attempt)
    finally:
        for pool in filter(None, pools):
            pool.shutdown(kill_workers=True)


def _pool_of_one() -> Any:
    from loky.process_executor import ProcessPoolExecutor as Pool

    return Pool(1, initializer=_begin_alone, initargs=(os.getpid(),), env=ONE_THREAD)


def _is_death(error: BaseException | None) -> bool:
    from loky.process_executor import BrokenProcessPool as Broken

    return isinstance(error, Broken)


def _failure(error: BaseException, attempts: int) -> Failure:
    if _is_death(error):
        times = f" {attempts} times" if attempts > 1 else ""
        return Failure(f"its worker process was ended from outside{times}, perhaps because memory ran out", attempts)
    return Failure.of(error, attempts)


def _begin_alone(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()


def _end_without(parent: int) -> None:
    """An orphan has another parent."""
    while os.getppid() == parent:
        time.sleep(LOOKING)
    os._exit(1)
