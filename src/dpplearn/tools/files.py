"""Files that are written whole or not at all, and never over what is not a file."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dpplearn.errors import InputError, OutputExistsError

try:
    import fcntl
except ImportError:  # there, what a killed writer leaves stays
    fcntl = None  # type: ignore[assignment]

TEMPORARY = re.compile(r"\.dpplearn-[0-9a-f]{16}\.tmp")


def replace_file(path: Path, content: bytes) -> None:
    """Make this the content of the file."""
    with new_file(path) as file:
        file.write_bytes(content)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, which takes the place of `path` at the end: a reader sees the old file or the new, whole.

    A link stays, and what it points to is replaced. What writers that were killed left in the folder is removed.
    """
    _check_regular(path)
    target = Path(os.path.realpath(path))
    try:
        _tidy(target.parent)
        temporary, handle = _claimed(target.parent)
        try:
            yield temporary
            os.fsync(handle)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(handle)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


def check_writable(path: Path) -> None:
    """Find out now, not after an hour, that a file cannot be written."""
    _check_regular(path)
    folder = (Path(os.path.realpath(path)) if path.is_symlink() else path).parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission to write in {folder}")


@dataclass(frozen=True)
class OutputKind:
    """A type of output file or folder.

    `matches` returns whether an existing, non-empty file or folder has this type. `name` follows "is not" in the error
    message.
    """

    name: str
    matches: Callable[[Path], bool]
    is_folder: bool = False


def check_replaceable(path: Path, kind: OutputKind, *, force: bool = False) -> None:
    """Raise an error unless an output of type `kind` may be written to `path`.

    An existing file or folder may be replaced if it is empty, if it has the type `kind`, or with `force`. Call this
    before the work that produces the output.
    """
    if not kind.is_folder:
        check_writable(path)
    elif path.exists() and not path.is_dir():
        raise OutputExistsError(f"{path} is a file; name a folder")
    if force or not path.exists():
        return
    try:
        empty = next(path.iterdir(), None) is None if kind.is_folder else path.stat().st_size == 0
        if empty or kind.matches(path):
            return
    except OSError as error:  # the type of an unreadable file is unknown
        found = f"cannot be read ({error.strerror or error})"
    else:
        found = f"is not {kind.name}"
    raise OutputExistsError(f"{path} exists and {found}; choose another path or pass force=True (--force)")


@contextmanager
def only_one(path: Path, refusal: str) -> Iterator[None]:
    """Within, no other process is, where the system has locks; one that is killed lets go. The file stays."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            try:
                _lock(handle, wait=False)
            except BlockingIOError:
                raise InputError(refusal) from None
            except OSError:  # not every file system has locks
                pass
        yield
    finally:
        os.close(handle)


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Whether two paths lead to one file, through whatever links, folders and spellings; or would, if it were there."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_regular(path: Path) -> None:
    """A folder, a pipe or a device would be replaced, or written to, where a file was meant."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} cannot be written: it is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} cannot be written: it is a pipe, a device or the like; name a file")


def _claimed(folder: Path) -> tuple[Path, int]:
    """A new file, locked as long as it is open: the system lets go of the lock of a process that was killed."""
    while True:
        temporary = folder / f".dpplearn-{secrets.token_hex(8)}.tmp"
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # not every file system has locks
            _lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)  # another writer found it before it was locked, and tidied it away


def _tidy(folder: Path) -> None:
    """Remove what killed writers left: the files that nobody has locked."""
    with suppress(OSError):  # a folder may be closed to reading
        for name in filter(TEMPORARY.fullmatch, os.listdir(folder)):
            _remove_unless_locked(folder / name)


def _remove_unless_locked(file: Path) -> None:
    with suppress(OSError):  # it is locked, or gone, or somebody else's
        handle = os.open(file, os.O_RDWR)
        try:
            _lock(handle, wait=False)
            file.unlink()
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool) -> None:
    if fcntl is None:
        raise OSError("this system has no locks of this kind")
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
