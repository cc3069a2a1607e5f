"""Model files: the distribution, item labels, the record of the fit and training counts in one safetensors file.

The arrays are tensors; all else is a JSON document in the metadata. Reading a file cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.record import Provenance, Training
from dpplearn.utils.files import OutputKind, check_replaceable, replace_file
from dpplearn.version import __version__

MODELS: dict[str, type[DPP | Mixture]] = {"DPP": DPP, "Mixture": Mixture}
KIND, FORMAT_VERSION = "dpplearn model", "2"
MAX_READ = 32_000_000  # bytes of a file, beyond which arrays are memory-mapped
NUMPY = {  # by the names of safetensors
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "BOOL": np.dtype(bool),
}

Arrays = Mapping[str, npt.NDArray[Any]]


def save(model: SetModel, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a model file atomically."""
    check_replaceable(Path(path), MODEL_FILE, force=force)
    replace_file(Path(path), content_of(model))


def content_of(model: SetModel) -> bytes:
    """Return the content of the file of a model."""
    arrays = model.distribution.arrays() | (model.training.arrays if model.training is not None else {})
    document = {"model": type(model).__name__, "items": list(model.items), "learned": model.learned.to_dict()}
    return file_content(arrays, document)


def file_content(arrays: Arrays, document: Mapping[str, Any]) -> bytes:
    """Return the content of a file with arrays and a document."""
    from safetensors.numpy import save as tensor_bytes

    versions = {"dpplearn": __version__, "numpy": np.__version__}
    try:
        text = json.dumps({**document, "versions": versions}, sort_keys=True, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"the model is not written: its items and its record must be JSON, but {error}") from None
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "kind": KIND,
        "format": FORMAT_VERSION,
        "document": text,
        "sha256": _digest(text, contiguous),
        "sha256 of the document": _digest(text, {}),
        "dpplearn": __version__,
    }
    return tensor_bytes(contiguous, metadata=metadata)


def load(path: str | PathLike[str]) -> DPP | Mixture:
    """Read a model file.

    Arrays of large files are memory-mapped. Then only the checksum of the metadata is verified.

    Parameters
    ----------
    path : path
        A file written by `save`.

    Returns
    -------
    DPP or Mixture

    Raises
    ------
    InputError
        If the file is damaged, of another type, or of another format version, or if a value is not valid.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"]).save(f"{folder}/cribs.safetensors")
    ...     load(f"{folder}/cribs.safetensors").items
    ('crib', 'cot')
    """
    return read_model(path)[0]


def read_model(path: str | PathLike[str]) -> tuple[DPP | Mixture, dict[str, str]]:
    """Return the model in a file, and the versions of the programs that wrote it."""
    arrays, document = read_file(path)
    try:
        kind = document.get("model")
        if not isinstance(kind, str) or kind not in MODELS:
            raise InputError(f"model must be one of {', '.join(MODELS)}, got {kind!r}")
        if kind == "DPP" and "eigenvalues" not in arrays:
            raise InputError("array eigenvalues is missing")
        if not isinstance(document["items"], list):
            raise InputError(f"items must be a list, got {type(document['items']).__name__}")
        distribution, items = SetDistribution.from_arrays(arrays), Catalogue.of(document["items"]).labels
        learned, training = Provenance.of(document["learned"]), Training.from_arrays(arrays)
        model = MODELS[kind].of_distribution(distribution, items, learned=learned, training=training)
        return model, dict(document.get("versions", {}))
    except KeyError as error:
        raise InputError(f"{fspath(path)} is not a valid model file: {error.args[0]} is missing") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{fspath(path)} is not a valid model file: {error}") from None


def read_file(
    path: str | PathLike[str], max_read: int = MAX_READ
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the document. Truncated, foreign, newer or changed files are errors.

    For files of more than `max_read` bytes, only the checksum of the document is compared, and arrays are
    memory-mapped: reading everything would take longer than most uses of the model.
    """
    from safetensors import SafetensorError, safe_open

    path = fspath(path)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected a model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_kind(path, metadata)
            mapped = os.path.getsize(path) > max_read
            arrays = _mapped(path) if mapped else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except (SafetensorError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not a whole model file (truncated, damaged, or of another kind): {error}"
        ) from None
    text = metadata.get("document", "")
    checked, name = ({}, "sha256 of the document") if mapped else (arrays, "sha256")
    if metadata.get(name) != _digest(text, checked):
        raise InputError(f"{path} was changed after it was written: its checksum does not match; write it again")
    try:
        return arrays, dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{path} is not a model file: its document is {text[:80]!r}") from None


def _mapped(path: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file that safetensors has checked, memory-mapped and read-only."""
    with open(path, "rb") as file:
        header = _header(file)
        content = np.memmap(path, np.uint8, "r")[file.tell() :]
    return {
        name: content[slice(*each["data_offsets"])].view(NUMPY[each["dtype"]]).view(np.ndarray).reshape(each["shape"])
        for name, each in header.items()
        if name != "__metadata__"
    }


def _header(file: BinaryIO) -> Any:
    """Return the header of a safetensors file, which begins with its length, and leave `file` at the arrays."""
    length = int.from_bytes(file.read(8), "little")
    if length > os.path.getsize(file.name):
        raise ValueError(f"a header of {length} bytes")
    return json.loads(file.read(length))


def _is_model_file(path: Path) -> bool:
    """Return whether the metadata name a model. The arrays may be damaged."""
    with open(path, "rb") as file:
        try:
            return bool(_header(file)["__metadata__"]["kind"] == KIND)
        except (ValueError, LookupError, TypeError):
            return False


MODEL_FILE = OutputKind("a model file", _is_model_file)


def _check_kind(path: str, metadata: Mapping[str, str]) -> None:
    if metadata.get("kind") != KIND:
        raise InputError(f"{path} is a safetensors file of another program; expected a model file")
    if metadata.get("format") != FORMAT_VERSION:
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
