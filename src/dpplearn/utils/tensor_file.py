"""Safetensors files with arrays and a JSON document: written atomically and checked when read. They cannot run code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.errors import InputError
from dpplearn.utils.files import OutputKind, replace_file
from dpplearn.version import __version__

FORMAT_VERSION = 2
MAX_READ = 32_000_000  # bytes of a file, beyond which arrays are memory-mapped
NUMPY = {  # by the names of safetensors
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "BOOL": np.dtype(bool),
}

Arrays = Mapping[str, npt.NDArray[Any]]


def write_tensors(path: str | PathLike[str], kind: str, arrays: Arrays, document: Mapping[str, Any]) -> None:
    """Write a file atomically."""
    from safetensors.numpy import save

    versions = {"dpplearn": __version__, "numpy": np.__version__}
    try:
        text = json.dumps({**document, "versions": versions}, sort_keys=True, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{fspath(path)} is not written: the document of a {kind} file must be JSON, but {error}"
        ) from None
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "kind": f"dpplearn {kind}",
        "format": str(FORMAT_VERSION),
        "document": text,
        "sha256": _digest(text, contiguous),
        "sha256 of the document": _digest(text, {}),
        "dpplearn": versions["dpplearn"],
    }
    replace_file(Path(path), save(contiguous, metadata=metadata))


def read_tensors(
    path: str | PathLike[str], kind: str, max_read: int = MAX_READ
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the document. Truncated, foreign, newer or changed files are errors.

    For files of more than `max_read` bytes, only the checksum of the document is compared, and arrays are
    memory-mapped: reading everything would take longer than most uses of the model.
    """
    from safetensors import SafetensorError, safe_open

    path = fspath(path)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected a dpplearn {kind} file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_kind(path, kind, metadata)
            mapped = os.path.getsize(path) > max_read
            arrays = _mapped(path) if mapped else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except (SafetensorError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not a whole dpplearn {kind} file (truncated, damaged, or of another kind): {error}"
        ) from None
    text = metadata.get("document", "")
    of_document = mapped and "sha256 of the document" in metadata  # files of earlier versions have one checksum only
    checked, name = ({}, "sha256 of the document") if of_document else (arrays, "sha256")
    if metadata.get(name) != _digest(text, checked):
        raise InputError(f"{path} was changed after it was written: its checksum does not match; write it again")
    try:
        return arrays, dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{path} is not a {kind}: its document is {text[:80]!r}") from None


def tensor_file(kind: str) -> OutputKind:
    """Return the output type of the files that `write_tensors` writes for `kind`."""
    return OutputKind(f"a dpplearn {kind} file", lambda path: _kind_of(path) == f"dpplearn {kind}")


def _kind_of(path: Path) -> str | None:
    """Return the kind that the metadata names; None if this is no safetensors file. The arrays may be damaged."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.path.getsize(path):
            return None
        try:
            kind = json.loads(file.read(length))["__metadata__"]["kind"]
        except (ValueError, LookupError, TypeError):
            return None
    return kind if isinstance(kind, str) else None


def _mapped(path: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file that safetensors has checked, memory-mapped and read-only."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    content = np.memmap(path, np.uint8, "r")[8 + length :]
    return {
        name: content[slice(*each["data_offsets"])].view(NUMPY[each["dtype"]]).view(np.ndarray).reshape(each["shape"])
        for name, each in header.items()
        if name != "__metadata__"
    }


def _check_kind(path: str, kind: str, metadata: Mapping[str, str]) -> None:
    found = metadata.get("kind")
    if found != f"dpplearn {kind}":
        what = f"a {found} file" if found else "a safetensors file of another program"
        raise InputError(f"{path} is {what}; expected a dpplearn {kind} file")
    if metadata.get("format") != str(FORMAT_VERSION):
        raise InputError(
            f"{path} has format {metadata.get('format')}, written by dpplearn {metadata.get('dpplearn')}; dpplearn "
            f"{__version__} reads format {FORMAT_VERSION}: fit the model again, or use the version that wrote it"
        )


def _digest(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(arrays[name].data if arrays[name].size else b"")
    return digest.hexdigest()
