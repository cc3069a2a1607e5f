"""How many threads, and whose: ours for loops over baskets and draws, BLAS's for large matrices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import Barrier, Lock
from typing import Any, NamedTuple

from dpplearn.errors import whole_number

MOST_THREADS = 1024
LARGE_MATRIX = 400  # items; below, threads inside BLAS cost more than they bring, most of all on a busy machine

ENDING = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and the request of the system to end


def thread_count(threads: int | None) -> int:
    """As many as asked for, by default one per core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("threads", threads, 1, MOST_THREADS)


@lru_cache(maxsize=4)
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that are kept. All start now and undisturbed: one that Ctrl-C caught as it started would never end."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="dpplearn")
    all_there = Barrier(threads)
    with without_interrupts():
        list(executor.map(lambda _: all_there.wait(), range(threads)))
    return executor


if hasattr(os, "register_at_fork"):  # a child process has none of the threads, and would wait for them forever
    os.register_at_fork(after_in_child=pool.cache_clear)


@contextmanager
def without_interrupts(signals: Sequence[int] = ENDING) -> Iterator[None]:
    """What asks to end is kept for afterwards, where the system can do that.

    Threads and processes that start within never hear of it: the ones that are to end with the main thread of the
    parent, and not by themselves.
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
    """What all threads ask at once of a BLAS that has one setting for the whole process: the least holds. The first who
    asks notes what was before, and the last to leave puts it back."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.asked: dict[object, int] = {}
        self.before: list[tuple[Any, int]] = []

    @contextmanager
    def at_most(self, threads: int) -> Iterator[None]:
        who = object()
        try:
            self._ask(who, threads)
            with _blas().per_thread.limit(limits=threads, user_api="blas"):
                yield
        finally:
            self._leave(who)

    def _ask(self, who: object, threads: int) -> None:
        with self.lock:
            if not self.asked:
                self.before = [(library, library.num_threads) for library in _blas().shared]
            self.asked[who] = threads
            self._set()

    def _leave(self, who: object) -> None:
        with self.lock:
            if self.asked.pop(who, None) is not None:
                self._set()

    def _set(self) -> None:
        for library, before in self.before:
            _set_threads(library, min(self.asked.values(), default=before))


def _set_threads(library: Any, threads: int) -> None:
    """Also where another thread did so last: recent versions of threadpoolctl listen to that one until told not to."""
    forget = getattr(library, "clear_controlling_thread", lambda force: None)
    forget(force=True)
    library.set_num_threads(threads)
    forget(force=True)


BLAS_LIMIT = BlasLimit()
if hasattr(os, "register_at_fork"):  # a child must not find the lock taken by a thread that it does not have
    os.register_at_fork(
        before=BLAS_LIMIT.lock.acquire,
        after_in_parent=BLAS_LIMIT.lock.release,
        after_in_child=BLAS_LIMIT.lock.release,
    )


def suitable_blas(n_items: int, threads: int | None) -> AbstractContextManager[None]:
    """Within, BLAS uses one thread on small matrices and at most `threads` on large ones."""
    return BLAS_LIMIT.at_most(1 if n_items < LARGE_MATRIX else thread_count(threads))


def one_blas_thread() -> AbstractContextManager[None]:
    """Within, BLAS uses one thread: where memory is the limit, or threads of ours already share the cores."""
    return BLAS_LIMIT.at_most(1)


class _Blas(NamedTuple):
    shared: list[Any]  # libraries whose setting is the whole process's
    per_thread: Any  # what controls the others


@lru_cache(maxsize=1)
def _blas() -> _Blas:
    """The BLAS libraries that are loaded; looking for them takes a while."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController()
    shared = [
        library
        for library in found.lib_controllers
        if library.internal_api == "openblas" and library.threading_layer != "openmp"
    ]
    others = [library.filepath for library in found.lib_controllers if library not in shared]
    return _Blas(shared, found.select(filepath=others))
