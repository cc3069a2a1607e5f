"""Model files: the distribution, item labels, the record of the fit and training counts in one safetensors file."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.record import Provenance, Training
from dpplearn.utils.files import check_replaceable
from dpplearn.utils.tensor_file import read_tensors, tensor_file, write_tensors

MODELS: dict[str, type[DPP | Mixture]] = {"DPP": DPP, "Mixture": Mixture}
MODEL_FILE = tensor_file("model")


def save(model: SetModel, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a model file atomically."""
    check_replaceable(Path(path), MODEL_FILE, force=force)
    arrays = model.distribution.arrays() | (model.training.arrays if model.training is not None else {})
    document = {"model": type(model).__name__, "items": list(model.items), "learned": model.learned.to_dict()}
    write_tensors(path, "model", arrays, document)


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
    arrays, document = read_tensors(path, "model")
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
