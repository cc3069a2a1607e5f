"""Models that are given as the segments of one: the same items, each by its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError
from dpplearn.kernels.families import reordered
from dpplearn.kernels.interface import Law
from dpplearn.kernels.weighted.mixing import mixed
from dpplearn.models.model import SetModel
from dpplearn.tools.words import count


def mixed_models(models: Sequence[SetModel], weights: npt.ArrayLike | None) -> tuple[Law, Catalogue]:
    """The law Σ_c w_c P_c, and its items in the order of the first model."""
    models = list(models)
    if not models or not all(isinstance(model, SetModel) for model in models):
        kinds = ", ".join(sorted({type(model).__name__ for model in models})) or "none"
        raise InputError(f"models are {kinds}; expected one or more of DPP and Mixture")
    catalogue = models[0].catalogue
    return mixed([law_over(model, catalogue) for model in models], _as_shares(weights, len(models))), catalogue


def law_over(model: SetModel, catalogue: Catalogue) -> Law:
    """The law of a model with its items in the order of a catalogue, which must have the same."""
    order = model.catalogue.translation(catalogue)
    if len(model.items) != len(catalogue) or (order < 0).any():
        odd = [item for item in model.items if item not in catalogue]
        odd += [item for item in catalogue.labels if item not in model.catalogue]
        raise InputError(
            f"item {odd[0]!r} is missing from one of the models or the data; expected the same items in all of them "
            "(restrict leaves some out, with_items adds some)"
        )
    return model.law if np.array_equal(order, np.arange(len(order))) else reordered(model.law, order)


def _as_shares(weights: npt.ArrayLike | None, n: int) -> Floats:
    if weights is None:
        return np.full(n, 1 / n)
    try:
        values = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise InputError("weights are not numbers; expected one per model") from None
    if values.shape != (n,) or not np.all((values >= 0) & (values < np.inf)) or not values.sum() > 0:
        raise InputError(f"weights are {values.tolist()} for {count(n, 'model')}; expected one each, 0 or more")
    return np.asarray(values / values.sum())
