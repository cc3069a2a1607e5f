"""One safetensors file: arrays and a JSON document, written atomically, checked when read. Nothing in it can run."""

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
from dpplearn.tools.files import replace_file
from dpplearn.version import __version__

FORMAT_VERSION = 1

Arrays = Mapping[str, npt.NDArray[Any]]


def write_tensors(path: str | PathLike[str], kind: str, arrays: Arrays, document: Mapping[str, Any]) -> None:
    """Write the file whole or not at all."""
    from safetensors.numpy import save

    versions = {"dpplearn": __version__, "numpy": np.__version__}
    try:
        text = json.dumps({**document, "versions": versions}, sort_keys=True, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{fspath(path)} is not written: a {kind} file keeps what JSON has, but {error}") from None
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "kind": f"dpplearn {kind}",
        "format": str(FORMAT_VERSION),
        "document": text,
        "sha256": _digest(text, contiguous),
        "dpplearn": versions["dpplearn"],
    }
    replace_file(Path(path), save(contiguous, metadata=metadata))


def read_tensors(path: str | PathLike[str], kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and the document; a file that is truncated, foreign, newer or changed is an error."""
    from safetensors import SafetensorError, safe_open

    path = fspath(path)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected a dpplearn {kind} file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_kind(path, kind, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    except FileNotFoundError:
        raise InputError(f"no file is called {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except (SafetensorError, UnicodeDecodeError, TypeError, AttributeError) as error:  # the last two: types numpy lacks
        raise InputError(
            f"{path} is not a whole dpplearn {kind} file (truncated, damaged, or of another kind): {error}"
        ) from None
    text = metadata.get("document", "")
    if metadata.get("sha256") != _digest(text, arrays):
        raise InputError(f"{path} was changed after it was written: its checksum does not match; write it again")
    try:
        return arrays, dict(json.loads(text))
    except (TypeError, ValueError):
        raise InputError(f"{path} does not hold a {kind}: its document is {text[:80]!r}") from None


def _check_kind(path: str, kind: str, metadata: Mapping[str, str]) -> None:
    found = metadata.get("kind")
    if found != f"dpplearn {kind}":
        what = f"a {found} file" if found else "a safetensors file of another program"
        raise InputError(f"{path} is {what}; expected a dpplearn {kind} file")
    if metadata.get("format") != str(FORMAT_VERSION):
        raise InputError(
            f"{path} has format {metadata.get('format')}, written by dpplearn {metadata.get('dpplearn')}; "
            f"this is dpplearn {__version__}, which reads format {FORMAT_VERSION}: upgrade dpplearn"
        )


def _digest(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(arrays[name].data if arrays[name].size else b"")
    return digest.hexdigest()
