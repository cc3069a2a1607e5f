"""Memory limits of this process."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from dpplearn.errors import InputError

NUMBER = 8  # bytes
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise an error if more bytes are needed than this process can have."""
    limit = memory_limit()
    if limit is not None and needed > limit:
        raise InputError(f"{what} needs about {in_bytes(needed)} of memory, and there are {in_bytes(limit)}; {instead}")


def memory_limit() -> float | None:
    """Return the smallest of the limits of the machine, the control groups and `ulimit -v`; None if unknown."""
    limits = list(_of_control_groups())
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with suppress(ImportError):
        import resource

        of_process = resource.getrlimit(resource.RLIMIT_AS)[0]
        if of_process != resource.RLIM_INFINITY:
            limits.append(float(of_process))
    return min(limits, default=None)


def in_bytes(size: float) -> str:
    """Return a number of bytes with a unit.

    >>> in_bytes(4e9)
    '4.0 GB'
    """
    from rich.filesize import decimal

    return decimal(int(size))


def _of_control_groups() -> Iterator[float]:
    """Yield the limits of all control groups of this process, of versions 1 and 2."""
    with suppress(OSError):  # not on every system
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from group_limits(CONTROL_GROUPS, path, "memory.max")
            elif "memory" in controllers.split(","):
                yield from group_limits(CONTROL_GROUPS / "memory", path, "memory.limit_in_bytes")


def group_limits(root: Path, path: str, name: str) -> Iterator[float]:
    """Yield the limits of a group and its parents. In a container, the root holds the limit of the container."""
    inside = PurePosixPath(path.lstrip("/"))
    for group in (inside, *inside.parents):
        with suppress(OSError):  # the root may have no limit
            text = (root / group / name).read_text(encoding="utf-8").strip()
            if text.isdigit():
                yield float(text)


class PausedCollection:
    """Pause the cyclic garbage collector, which takes most of the time of making many small tuples."""

    def __enter__(self) -> None:
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was_enabled:
            gc.enable()
