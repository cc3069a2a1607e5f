"""Independent jobs over processes, and parts of data that stay where the work on them is done.

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
from typing import Any, Protocol, TypeVar

from dpplearn.errors import InputError
from dpplearn.utils.threads import one_blas_thread, pool, thread_count, without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")
Function = Callable[..., Any]  # at module level, so that other processes can import it

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


def run_over_processes(
    jobs: Sequence[Job],
    run: Callable[[Job], Result],
    processes: int | None = None,
    begin: Callable[[], None] | None = None,
) -> Iterator[tuple[Job, Result]]:
    """Yield every job with its result, as jobs end. The first failure is raised as an `InputError`."""
    for job, result in run_with_retries(jobs, run, processes, begin):
        if isinstance(result, Failure):
            raise InputError(f"job {job!r} failed: {result.reason}; run the same command again to continue")
        yield job, result


def run_with_retries(
    jobs: Sequence[Job],
    run: Callable[[Job], Result],
    processes: int | None = None,
    begin: Callable[[], None] | None = None,
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
    begin
        A function at module level that each process calls before its first job.
    """
    from loky.process_executor import BrokenProcessPool

    waiting = deque((job, 1) for job in jobs)
    pools: list[Any] = [None] * min(thread_count(processes), len(waiting))
    free, running = set(range(len(pools))), dict[Future[Result], tuple[int, Job, int]]()
    try:
        while waiting or running:
            while waiting and free:
                place, (job, attempt) = free.pop(), waiting.popleft()
                with without_interrupts([signal.SIGINT]):  # Ctrl-C is for this process, which ends its workers
                    pools[place] = pools[place] or _pool_of_one(begin)
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


def _pool_of_one(begin: Callable[[], None] | None) -> Any:
    from loky.process_executor import ProcessPoolExecutor

    return ProcessPoolExecutor(1, initializer=_begin_worker, initargs=(os.getpid(), begin), env=ONE_THREAD)


def _begin_worker(parent: int, begin: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    if begin is not None:
        begin()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:  # an orphan gets another parent
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


class PartStore(Protocol):
    """Parts of data in a fixed order, in this process or in workers of a cluster.

    Results are the same to the last bit wherever the parts are, if the processors are alike: one thread works on each.
    """

    def __len__(self) -> int: ...

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        """Yield function(*arguments, part) for every part, in order. `threads` limits local work."""
        ...

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> PartStore:
        """Return the parts function(*arguments, part), or function(own, *arguments, part) with one of `each`."""
        ...

    def joined_by(self, value: Any) -> PartStore:
        """Return the parts with one more at the end."""
        ...

    def close(self) -> None:
        """Release the parts, and end the processes that were started to hold them."""
        ...


def call(function: Function, arguments: Sequence[Any], value: Any) -> Any:
    """Return function(*arguments, value), computed with one BLAS thread."""
    with one_blas_thread():
        return function(*arguments, value)


def own_arguments(n: int, arguments: tuple[Any, ...], each: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the arguments for each of n parts."""
    return [(own, *arguments) for own in each] if each else [arguments] * n


@dataclass(frozen=True)
class LocalParts:
    """Parts in this process."""

    values: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        count = min(thread_count(threads), len(self))
        if count < 2:
            yield from (call(function, arguments, value) for value in self.values)
            return
        running = deque(pool(count).submit(call, function, arguments, value) for value in self.values)
        try:
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> LocalParts:
        own = own_arguments(len(self), arguments, each)
        return LocalParts(tuple(call(function, given, value) for given, value in zip(own, self.values, strict=True)))

    def joined_by(self, value: Any) -> LocalParts:
        return LocalParts((*self.values, value))

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
