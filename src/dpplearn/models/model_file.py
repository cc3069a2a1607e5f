"""Save a model and load it."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError
from dpplearn.kernels import emptiness
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.families import law_from
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.kernels.weighted.law import WeightedLaw
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.files import check_replaceable
from dpplearn.tools.tensor_file import read_tensors, tensor_file, write_tensors

MODELS: dict[str, type[DPP | Mixture]] = {
    SymmetricLaw.family: DPP,
    MixtureLaw.family: Mixture,
    FactoredLaw.family: Mixture,
    WeightedLaw.family: Mixture,
}
MODEL_FILE = tensor_file("model")
FIRST_FAMILY = SymmetricLaw.family  # of files written before there were others, which do not say


def save(model: SetModel, path: str | PathLike[str], *, force: bool = False) -> None:
    """Items, law, how it was learned and from what, in one safetensors file, written atomically."""
    check_replaceable(Path(path), MODEL_FILE, force=force)
    arrays = model.law.arrays() | (model.training.arrays if model.training is not None else {})
    document = {"family": model.law.family, "items": list(model.items), "learned": model.learned.to_dict()}
    write_tensors(path, "model", arrays, document)


def load(path: str | PathLike[str]) -> DPP | Mixture:
    """The model in a file that `DPP.save` wrote.

    Arrays of large files stay in the file until they are used, so that it is loaded at once whatever its size. Their
    checksum is then that of what says how to read them; `save` replaces a file, so that a model in use keeps its own.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    DPP or Mixture
        As it was saved, with `learned` and `training`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dpplearn import Kernel
    >>> with TemporaryDirectory() as folder:
    ...     DPP(Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"]).save(f"{folder}/cribs.dpp")
    ...     load(f"{folder}/cribs.dpp").items
    ('crib', 'cot')
    """
    return read_model(path)[0]


def read_model(path: str | PathLike[str]) -> tuple[DPP | Mixture, dict[str, str]]:
    """The model in a file that `save` wrote, and the versions of the programs that wrote it."""
    arrays, document = read_tensors(path, "model")
    try:
        law = law_from(document.get("family", FIRST_FAMILY), arrays)
        items, learned = Catalogue.of(document["items"]).labels, Provenance.of(document["learned"])
        if learned.nonempty and emptiness.NAME not in arrays:  # before the law was in the file, this told it
            law = WithEmptyShare(law)
        model = MODELS[law.family].of_law(law, items, learned, Training.from_arrays(arrays))
        return model, document.get("versions", {})
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{fspath(path)} does not hold a model: {error}") from None
