"""Save a model and load it."""

from __future__ import annotations

from os import PathLike, fspath

from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.models.dpp import DPP
from dpplearn.models.training import Training
from dpplearn.tools.tensor_file import read_tensors, write_tensors


def save(dpp: DPP, path: str | PathLike[str]) -> None:
    """Items, kernel, how it was learned and from what, in one safetensors file, written atomically."""
    arrays = {"eigenvalues": dpp.kernel.eigenvalues, "eigenvectors": dpp.kernel.eigenvectors}
    arrays |= dpp.training.arrays if dpp.training is not None else {}
    write_tensors(path, "model", arrays, {"items": list(dpp.items), "learned": dict(dpp.learned)})


def load(path: str | PathLike[str]) -> DPP:
    """The model in a file that `save` wrote."""
    return read_model(path)[0]


def read_model(path: str | PathLike[str]) -> tuple[DPP, dict[str, str]]:
    """The model in a file that `save` wrote, and the versions of the programs that wrote it."""
    arrays, document = read_tensors(path, "model")
    try:
        kernel = Kernel(arrays["eigenvalues"], arrays["eigenvectors"])
        items, training = Catalogue.of(document["items"]).labels, Training.from_arrays(arrays)
        return DPP(kernel, items, learned=document["learned"], training=training), document.get("versions", {})
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{fspath(path)} does not hold a model: {error}") from None
