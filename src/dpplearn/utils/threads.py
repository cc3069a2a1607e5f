"""Numbers of threads: of loops over baskets and draws, and of BLAS."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import Barrier, Lock
from typing import Any

from dpplearn.errors import whole_number

MOST_THREADS = 1024
LARGE_MATRIX = 400  # items; below, BLAS threads cost more than they save, most of all on a busy machine

ENDING = (signal.SIGINT, signal.SIGTERM)


_default_threads: int | None = None


def set_default_threads(threads: int | None) -> None:
    """Set the number of threads of computations that are not given one; None: one per core."""
    global _default_threads
    _default_threads = None if threads is None else whole_number("threads", threads, 1, MOST_THREADS)


def thread_count(threads: int | None) -> int:
    """Return the number of threads: as given, else the default of this process, else one per available core."""
    if threads is not None:
        return whole_number("threads", threads, 1, MOST_THREADS)
    if _default_threads is not None:
        return _default_threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=4)
def pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool that is kept. All threads start now, with signals blocked: Ctrl-C in a starting thread is fatal."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="dpplearn")
    all_there = Barrier(threads)
    with without_interrupts():
        list(executor.map(lambda _: all_there.wait(), range(threads)))
    return executor


def map_over_threads(function: Callable[[Any], Any], values: Iterable[Any], threads: int | None) -> Iterator[Any]:
    """Return the results in order. One thread is the calling one: its priority and its CPU time are the caller's."""
    count = thread_count(threads)
    return map(function, values) if count == 1 else pool(count).map(function, values)


if hasattr(os, "register_at_fork"):  # a forked child has none of the threads and would wait forever
    os.register_at_fork(after_in_child=pool.cache_clear)


@contextmanager
def without_interrupts(signals: Sequence[int] = ENDING) -> Iterator[None]:
    """Delay signals until the end of the block, where the system supports that.

    Threads and processes that are started inside keep the signals blocked, so that only the parent handles them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class BlasLimit:
    """Limit on the threads of the BLAS libraries, which have one setting per process.

    If several threads set limits, the smallest applies. The last thread to leave restores the original setting.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.asked: list[int] = []
        self.before: list[tuple[Any, int]] = []

    @contextmanager
    def at_most(self, threads: int) -> Iterator[None]:
        with self.lock:
            if not self.asked:
                self.before = [(library, library.num_threads) for library in _blas_libraries()]
            self.asked.append(threads)
            self._set()
        try:
            yield
        finally:
            with self.lock:
                self.asked.remove(threads)
                self._set()

    def _set(self) -> None:
        for library, before in self.before:
            # Recent versions of threadpoolctl remember the thread that set the limit, and refuse another one.
            forget = getattr(library, "clear_controlling_thread", lambda force: None)
            forget(force=True)
            library.set_num_threads(min(self.asked, default=before))
            forget(force=True)


BLAS_LIMIT = BlasLimit()
if hasattr(os, "register_at_fork"):  # a child must not find the lock taken by a thread that it does not have
    acquire, release = BLAS_LIMIT.lock.acquire, BLAS_LIMIT.lock.release
    os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)


def suitable_blas(n_items: int, threads: int | None) -> AbstractContextManager[None]:
    """Use one BLAS thread for small matrices and at most `threads` for large ones."""
    return BLAS_LIMIT.at_most(1 if n_items < LARGE_MATRIX else thread_count(threads))


def one_blas_thread() -> AbstractContextManager[None]:
    """Use one BLAS thread, where memory bandwidth is the limit or our own threads share the cores."""
    return BLAS_LIMIT.at_most(1)


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return function(*arguments), computed with one BLAS thread."""
    with one_blas_thread():
        return function(*arguments)


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    """Return the loaded BLAS libraries; finding them takes a while."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
