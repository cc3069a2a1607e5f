"""Which files went in, told by their content, and how much memory a preparation may have."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError
from dpplearn.utils.files import digest
from dpplearn.utils.memory import in_bytes, memory_limit

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LEAST_MEMORY = 500e6
LARGEST_MEMORY = 1e15  # where the system does not report a limit; duckdb refuses 2**64 and more
WITHOUT_A_LIMIT = 4e9  # where no system tells how much there is


def fingerprints(paths: Sequence[str], known: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Path, size, time and digest of each. One that has the size and the time it had before is not read for it."""
    before = {each["path"]: each for each in known}
    return [_fingerprint(path, before.get(os.path.abspath(path), {})) for path in paths]


def _fingerprint(path: str, before: Mapping[str, Any]) -> dict[str, Any]:
    try:
        state = os.stat(path)
        now = {"path": os.path.abspath(path), "size": state.st_size, "modified": state.st_mtime_ns}
        same = all(before.get(name) == value for name, value in now.items())
        return {**now, "sha256": before["sha256"] if same else digest(Path(path))}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def check_unchanged(found: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what somebody wrote to while we read it."""
    for each in found:
        state = os.stat(each["path"]) if os.path.exists(each["path"]) else None
        if state is None or (state.st_size, state.st_mtime_ns) != (each["size"], each["modified"]):
            raise InputError(f"{each['path']} changed while it was read; prepare again when nobody writes to it")


def as_memory(memory: str | float | None) -> float:
    """Return a memory limit in bytes: by default half of the memory of this process, and never more than all of it.

    >>> as_memory("0.5GiB"), as_memory("0.5 gb"), as_memory(6e8)
    (536870912.0, 500000000.0, 600000000.0)
    """
    if memory is None:
        return (memory_limit() or 2 * WITHOUT_A_LIMIT) / 2
    found = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?) *([kmgt]?i?)b?", str(memory).strip().lower().replace("e+", "e"))
    try:
        size = float(found[1]) * UNITS[found[2]] if found else 0.0
    except (ValueError, KeyError):
        size = 0.0
    if size < LEAST_MEMORY:
        raise InputError(f"memory must be at least {in_bytes(LEAST_MEMORY)}, such as 4GB or 4GiB; got {memory!r}")
    return min(size, memory_limit() or LARGEST_MEMORY)
