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
from typing import Any

import numpy as np
import numpy.typing as npt

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
        "dpplearn": __version__,
    }
    return tensor_bytes(contiguous, metadata=metadata)


def load(path: str | PathLike[str]) -> DPP | Mixture:
    """Read a model file.

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
    from safetensors import SafetensorError

    path = fspath(path)
    if not os.path.isfile(path):
        raise InputError(f"{path} does not exist or is not a file; expected a model file")
    try:
        arrays, document = read_file(path)
        kind, items = document["model"], document["items"]
        if not isinstance(kind, str) or kind not in MODELS:
            raise InputError(f"model must be one of {', '.join(MODELS)}, got {kind!r}")
        if kind == "DPP" and "eigenvalues" not in arrays:
            raise InputError("array eigenvalues is missing")
        if not isinstance(items, list):
            raise InputError(f"items must be a list, got {type(items).__name__}")
        learned, training = Provenance.of(document["learned"]), Training.from_arrays(arrays)
        distribution = SetDistribution.from_arrays(arrays)
        return MODELS[kind].of_distribution(distribution, items, learned=learned, training=training)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except KeyError as error:
        raise InputError(f"{path} is not a valid model file: {error} is missing") from None
    except (SafetensorError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a valid model file: {error}") from None


def read_file(path: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the document. Truncated, foreign, newer or changed files are errors."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        kind, version = metadata.get("kind"), metadata.get("format")
        if (kind, version) != (KIND, FORMAT_VERSION):
            raise InputError(
                f"got kind {kind}, format {version} of dpplearn {metadata.get('dpplearn')}, but dpplearn {__version__} "
                f"reads kind {KIND}, format {FORMAT_VERSION}: fit the model again"
            )
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata["sha256"] != _digest(metadata["document"], arrays):
        raise InputError("it was changed after it was written: its checksum does not match")
    return arrays, dict(json.loads(metadata["document"]))


def _is_model_file(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return bool((file.metadata() or {}).get("kind") == KIND)
    except SafetensorError:
        return False


MODEL_FILE = OutputKind("a model file", _is_model_file)


def _digest(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(arrays[name].data if arrays[name].size else b"")
    return digest.hexdigest()
