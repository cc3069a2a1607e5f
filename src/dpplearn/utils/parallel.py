"""Independent jobs over processes.

Each worker process is a loky pool of its own: a pool that loses one process is lost, and with it all its jobs. Ctrl-C
is raised in the loop over the results, after all workers have ended.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from dpplearn.errors import InputError
from dpplearn.utils.threads import thread_count, without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")

RETRIES = 2  # of a job whose worker died
PARENT_CHECK_SECONDS = 0.2  # a worker notices after this time that its parent is gone
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS")}


@dataclass(frozen=True)
class Failure:
    """The reason why a job has no result. `attempts` is more than 1 if worker processes died."""

    reason: str
    attempts: int = 1

    @classmethod
    def of(cls, error: BaseException, attempts: int = 1) -> Failure:
        return cls(str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}", attempts)


Over = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[tuple[Any, Any]]]  # results may be Failures


def run_with_retries(
    jobs: Sequence[Job], run: Callable[[Job], Result], processes: int | None = None
) -> Iterator[tuple[Job, Result | Failure]]:
    """Yield every job with its result or its `Failure`, as jobs end.

    A job whose worker process died is repeated. Other jobs are not affected.

    Parameters
    ----------
    jobs
        Arguments of `run`.
    run
        A function at module level.
    processes
        Number of worker processes, each with one thread (also of BLAS). Default: one per core.
    """
    from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

    resource_tracker.ensure_running()  # the first worker would start it, which unblocks signals
    new_pool = partial(ProcessPoolExecutor, 1, initializer=_begin_worker, initargs=(os.getpid(),), env=ONE_THREAD)
    waiting = deque((job, 1) for job in jobs)
    pools: list[Any] = [None] * min(thread_count(processes), len(waiting))
    free, running = set(range(len(pools))), dict[Future[Result], tuple[int, Job, int]]()
    try:
        while waiting or running:
            while waiting and free:
                place, (job, attempt) = free.pop(), waiting.popleft()
                with without_interrupts([signal.SIGINT]):  # Ctrl-C is for this process, which ends its workers
                    pools[place] = pools[place] or new_pool()
                    running[pools[place].submit(run, job)] = (place, job, attempt)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place, job, attempt = running.pop(future)
                free.add(place)
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    pools[place] = pools[place].shutdown(kill_workers=True)
                    if attempt <= RETRIES:
                        waiting.appendleft((job, attempt + 1))
                    else:
                        died = f"its worker process died {attempt} times, perhaps because memory ran out"
                        yield job, Failure(died, attempt)
                else:
                    yield job, future.result() if error is None else Failure.of(error, attempt)
    finally:
        for each in filter(None, pools):
            each.shutdown(kill_workers=True)


def _begin_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:  # an orphan gets another parent
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)
