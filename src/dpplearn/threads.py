"""How many threads, and whose: ours for loops over baskets and draws, BLAS's for large matrices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from dpplearn.errors import InputError

LARGE_MATRIX = 400  # items; below, threads inside BLAS cost more than they bring, most of all on a busy machine


def thread_count(threads: int | None) -> int:
    """As many as asked for, by default one a core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise InputError(f"threads is {threads}; expected 1 or more")
    return threads


@lru_cache(maxsize=4)
def pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="dpplearn")


if hasattr(os, "register_at_fork"):  # a child process has none of the threads, and would wait for them forever
    os.register_at_fork(after_in_child=pool.cache_clear)


@contextmanager
def suitable_blas(n_items: int, threads: int | None) -> Iterator[None]:
    """Within, BLAS uses one thread on small matrices and at most `threads` on large ones."""
    with _blas().limit(limits=1 if n_items < LARGE_MATRIX else thread_count(threads), user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _blas() -> Any:
    """What controls the BLAS libraries that are loaded; looking for them takes a while."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
