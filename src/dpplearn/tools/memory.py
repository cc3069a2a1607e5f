"""How much memory there is, and a refusal of what cannot fit in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dpplearn.errors import InputError

NUMBER = 8  # bytes
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def check_memory(needed: float, what: str, instead: str) -> None:
    """Refuse what needs more bytes than this process can ever have."""
    limit = memory_limit()
    if limit is not None and needed > limit:
        raise InputError(f"{what} needs about {in_bytes(needed)} of memory, and there are {in_bytes(limit)}; {instead}")


def memory_limit() -> float | None:
    """The bytes that this process can have: of the machine, of its control group or by `ulimit -v`, whichever is least;
    None where no system tells."""
    return min((*_of_machine(), *_of_control_groups(), *_of_process()), default=None)


def in_bytes(size: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.3g} {unit}" if size < 1e15 else f"{size / scale:,.0f} {unit}"
    return f"{size / 1e3:.3g} kB"


def _of_machine() -> Iterator[float]:
    try:
        yield float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not on every system
        return


def _of_process() -> Iterator[float]:
    try:
        import resource
    except ImportError:  # not on every system
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        yield float(limit)


def _of_control_groups() -> Iterator[float]:
    """Of every group that this process is in: versions 1 and 2 say so in files of different names."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from group_limits(CONTROL_GROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from group_limits(CONTROL_GROUPS / "memory", path, "memory.limit_in_bytes")


def group_limits(root: Path, path: str, name: str) -> Iterator[float]:
    """A group's own and those of the groups around it; in a container the path may be another's, and the root ours."""
    inside = PurePosixPath(path.lstrip("/"))
    for group in (inside, *inside.parents):
        try:
            text = (root / group / name).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if text.isdigit():
            yield float(text)
