"""What a command writes is none of what it reads, and can be written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dpplearn.cli.errors import UsageError
from dpplearn.data.readers import matching_files
from dpplearn.tools.files import check_writable, same_file


def check_target(option: str, target: Path | None, sources: Iterable[str | Path | None]) -> None:
    """Before anything is read: `sources` are all other files that the call names, data as patterns."""
    if target is None:
        return
    check_writable(target)
    for source in sources:
        for file in _files(source):
            if same_file(target, file):
                raise UsageError(
                    f"{option} {target} would overwrite {file}, which this call reads or writes, too; name another file"
                )


def _files(source: str | Path | None) -> list[str]:
    if source is None:
        return []
    return matching_files(source) if isinstance(source, str) else [str(source)]
