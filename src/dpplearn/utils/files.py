"""Atomic writes, locks, checks of output paths, and manifests of folders."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from dpplearn.errors import InputError, OutputExistsError

try:
    import fcntl
except ImportError:  # without locks, leftovers of killed writers are not removed
    fcntl = None  # type: ignore[assignment]

TEMPORARY_FOLDER = "dpplearn-"  # prefix
TEMPORARY = re.compile(r"\.dpplearn-[0-9a-f]{16}\.tmp")


def replace_file(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    with new_file(path) as file:
        file.write_bytes(content)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` at the end: readers see the old or the new file, never a part.

    If `path` is a link, its target is replaced. Leftovers of killed writers in the folder are removed.
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
    """Raise an error before the work if a file cannot be written."""
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
    """Hold an exclusive lock on a file, if the system has locks. It is released if the process is killed."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
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
    """Return whether two paths name the same file, after links are resolved, also if it does not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def digest(path: Path) -> str:
    """Return the SHA-256 of the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(value: Any) -> str:
    """Return the SHA-256 of plain data as JSON. The order of keys makes no difference."""
    return hashlib.sha256(json.dumps(json_safe(value), sort_keys=True).encode()).hexdigest()


def _check_regular(path: Path) -> None:
    """Raise an error for folders, pipes and devices."""
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
    """Create a file that is locked while it is open. The system releases locks of killed processes."""
    while True:
        temporary = folder / f".dpplearn-{secrets.token_hex(8)}.tmp"
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # not every file system has locks
            _lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)  # another writer removed it before it was locked


def _tidy(folder: Path) -> None:
    """Remove leftovers of killed writers: temporary files without a lock."""
    with suppress(OSError):  # the folder may not be readable
        for name in filter(TEMPORARY.fullmatch, os.listdir(folder)):
            _remove_unless_locked(folder / name)


def _remove_unless_locked(file: Path, remove: Callable[[Path], None] = Path.unlink) -> None:
    with suppress(OSError):  # locked, gone, or owned by another user
        handle = os.open(file, os.O_RDWR)
        try:
            _lock(handle, wait=False)
            remove(file)
        finally:
            os.close(handle)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end. Folders of killed processes are removed as well."""
    for lock in Path(gettempdir()).glob(f"{TEMPORARY_FOLDER}*/lock"):
        _remove_unless_locked(lock, lambda lock: shutil.rmtree(lock.parent))
    with TemporaryDirectory(prefix=TEMPORARY_FOLDER) as name:
        folder = Path(name)
        handle = os.open(folder / "new", os.O_RDWR | os.O_CREAT)
        try:
            with suppress(OSError):  # not every file system has locks
                _lock(handle, wait=True)
                os.rename(folder / "new", folder / "lock")  # other processes see it only when it is locked
            yield folder
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool) -> None:
    if fcntl is None:
        raise OSError("this system has no locks of this kind")
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


MANIFEST = "manifest.json"


def json_safe(value: Any) -> Any:
    """Return a value that strict JSON can express: infinities become the strings "inf" and "-inf", NaN becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): json_safe(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_safe(each) for each in value]
    return value


def read_manifest(folder: str | PathLike[str], kind: str, format: int, wrote: str, again: str) -> dict[str, Any]:
    """Return the manifest of a folder. `wrote` is the command that writes it, `again` the advice for a bad one."""
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} has no {MANIFEST}; expected a folder that {wrote} wrote") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; {again}") from None
    if isinstance(manifest, dict) and manifest.get("kind", kind) != kind:
        raise InputError(f"{folder} is a folder of another kind ({manifest['kind']}); expected one that {wrote} wrote")
    if not isinstance(manifest, dict) or manifest.get("format") != format or "kind" not in manifest:
        raise InputError(f"{path} is not a manifest of format {format}; {again}")
    return manifest


def manifest_folder(kind: str, work: str, wrote: str) -> OutputKind:
    """Return the output type of folders with a manifest of this kind; `wrote` is the command that writes them.

    Without a manifest, the folder `work` identifies the output of an interrupted run.
    """

    def matches(folder: Path) -> bool:
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
        except FileNotFoundError:
            return (folder / work).is_dir()
        except ValueError:
            return False
        return isinstance(manifest, dict) and manifest.get("kind") == kind

    return OutputKind(f"a folder that {wrote} wrote", matches, is_folder=True)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of a folder."""
    text = json.dumps(json_safe(manifest), indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(folder / MANIFEST, text.encode())
