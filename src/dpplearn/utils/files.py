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
from typing import Any, BinaryIO

from dpplearn.errors import InputError, OutputExistsError

try:
    import fcntl
except ImportError:  # without locks, leftovers of killed writers are not removed
    fcntl = None  # type: ignore[assignment]

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
    check_writable(path)
    target = Path(os.path.realpath(path))
    with writing(path):
        _tidy(target.parent)
        with _claimed(target.parent) as file:
            temporary = Path(file.name)
            try:
                yield temporary
                os.fsync(file)
                os.replace(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise errors of the system as an `InputError` that names the path to be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


def check_writable(path: Path) -> None:
    """Raise an error if a file cannot be written. Folders, pipes and devices are never replaced."""
    with writing(path), suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} cannot be written: it is a folder, a pipe or a device; name a file")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path} cannot be written: there is no folder {folder}, or no permission to write in it")


@dataclass(frozen=True)
class OutputKind:
    """A type of output file or folder.

    `matches` returns whether an existing, non-empty file or folder has this type. `name` follows "is not" in the error
    message.
    """

    name: str
    matches: Callable[[Path], bool]


def check_replaceable(path: Path, kind: OutputKind | OutputFolder, *, force: bool = False) -> None:
    """Raise an error unless an output of type `kind` may be written to `path`.

    An existing file or folder may be replaced if it is empty, if it has the type `kind`, or with `force`. Call this
    before the work that produces the output.
    """
    is_folder = isinstance(kind, OutputFolder)
    if not is_folder:
        check_writable(path)
    elif path.exists() and not path.is_dir():
        raise OutputExistsError(f"{path} is a file; name a folder")
    if force or not path.exists():
        return
    with suppress(OSError):  # the type of an unreadable file is unknown
        empty = next(path.iterdir(), None) is None if is_folder else path.stat().st_size == 0
        if empty or kind.matches(path):
            return
    raise OutputExistsError(f"{path} exists and is not {kind.name}; choose another path or pass force=True (--force)")


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Return whether two paths name the same file, after links are resolved, also if it does not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def digest(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of the content of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def content_digest(value: Any) -> str:
    """Return the SHA-256 of plain data as JSON. The order of keys makes no difference."""
    return hashlib.sha256(json.dumps(json_safe(value), sort_keys=True).encode()).hexdigest()


def _claimed(folder: Path) -> BinaryIO:
    """Create a file that is locked while it is open. The system releases locks of killed processes."""
    while True:
        file = open(folder / f".dpplearn-{secrets.token_hex(8)}.tmp", "xb")  # noqa: SIM115
        with suppress(OSError):  # not every file system has locks
            _lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another writer removed it before it was locked


def _tidy(folder: Path) -> None:
    """Remove leftovers of killed writers: temporary files without a lock."""
    with suppress(OSError):  # the folder may not be readable
        for name in filter(TEMPORARY.fullmatch, os.listdir(folder)):
            with suppress(OSError), open(folder / name, "r+b") as file:  # locked, gone, or owned by another user
                _lock(file, wait=False)
                os.unlink(file.name)


@contextmanager
def locked(work: Path, output: Path) -> Iterator[Path]:
    """Create and lock a folder for work on `output`, empty at the beginning and at the end.

    If the system has no locks, nothing is locked. The system releases the lock of a killed process, which leaves its
    work to the next one.
    """
    lock = work / "lock"
    with writing(lock):
        work.mkdir(parents=True, exist_ok=True)
        file = open(lock, "ab")  # noqa: SIM115
    with file:
        try:
            _lock(file, wait=False)
        except BlockingIOError:
            raise InputError(f"another process is writing to {output}; wait until it has finished") from None
        except OSError:  # not every file system has locks
            pass
        try:
            _empty(work)
            yield work
        finally:
            _empty(work)


def _empty(work: Path) -> None:
    for path in work.glob("[!l]*"):  # all but the lock
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _lock(file: BinaryIO, *, wait: bool) -> None:
    if fcntl is None:
        raise OSError("this system has no locks of this kind")
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


MANIFEST = "manifest.json"


def json_safe(value: Any) -> Any:
    """Return a value that strict JSON can express: infinities become the strings "inf" and "-inf", NaN becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(key): json_safe(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_safe(each) for each in value]
    return value


@dataclass(frozen=True)
class OutputFolder:
    """A type of output folder: `command` writes its manifest last, and locks it by a file in the hidden folder `work`.

    Without a manifest, `work` identifies the output of an interrupted run.
    """

    kind: str
    format: int
    command: str

    @property
    def work(self) -> str:
        """The folder of the lock, and of unfinished work."""
        return f".{self.command}"

    @property
    def name(self) -> str:
        """The description of the type in error messages."""
        return f"a folder that dpplearn {self.command} wrote"

    def matches(self, folder: Path) -> bool:
        """Return whether an existing folder is of this type."""
        if not (folder / MANIFEST).exists():
            return (folder / self.work).is_dir()
        return bool(self._manifest(folder).get("kind") == self.kind)

    def _manifest(self, folder: Path) -> dict[str, Any]:
        """Return the manifest of a folder, empty if it is malformed."""
        try:
            found = json.loads((folder / MANIFEST).read_bytes())
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def read(self, folder: str | PathLike[str]) -> dict[str, Any]:
        """Return the manifest of a folder."""
        try:
            manifest = self._manifest(Path(folder))
        except OSError:
            raise InputError(f"{folder} has no readable {MANIFEST}; expected {self.name}") from None
        if not {"kind": self.kind, "format": self.format}.items() <= manifest.items():
            what = f"a manifest of dpplearn {self.command} of format {self.format}"
            raise InputError(f"{Path(folder) / MANIFEST} is not {what}; run {self.command} again")
        return manifest

    def write(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest of a folder."""
        text = json.dumps(json_safe(manifest), indent=1, ensure_ascii=False, allow_nan=False)
        replace_file(folder / MANIFEST, text.encode())

    @contextmanager
    def locked(self, folder: Path) -> Iterator[Path]:
        """Create and lock a folder, and yield its folder for work. An error removes a new folder."""
        new = not folder.exists()
        try:
            with locked(folder / self.work, folder) as work:
                yield work
        except InputError:
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
