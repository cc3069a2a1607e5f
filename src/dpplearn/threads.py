"""How many threads, and whose: ours for loops over baskets and draws, BLAS's for large matrices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Barrier
from typing import Any

from dpplearn.errors import whole_number

MOST_THREADS = 1024
LARGE_MATRIX = 400  # items; below, threads inside BLAS cost more than they bring, most of all on a busy machine


def thread_count(threads: int | None) -> int:
    """As many as asked for, by default one a core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("threads", threads, 1, MOST_THREADS)


@lru_cache(maxsize=4)
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that are kept. All start now and undisturbed: one that Ctrl-C caught as it started would never end."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="dpplearn")
    all_there = Barrier(threads)
    with _without_interrupts():
        list(executor.map(lambda _: all_there.wait(), range(threads)))
    return executor


if hasattr(os, "register_at_fork"):  # a child process has none of the threads, and would wait for them forever
    os.register_at_fork(after_in_child=pool.cache_clear)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C within is kept for afterwards, where the system can do that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def suitable_blas(n_items: int, threads: int | None) -> Iterator[None]:
    """Within, BLAS uses one thread on small matrices and at most `threads` on large ones."""
    with _blas().limit(limits=1 if n_items < LARGE_MATRIX else thread_count(threads), user_api="blas"):
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, BLAS uses one thread: where memory is the limit, or threads of ours already share the cores."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _blas() -> Any:
    """What controls the BLAS libraries that are loaded; looking for them takes a while."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
