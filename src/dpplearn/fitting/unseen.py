"""What a model gains over independent items on baskets that it was not learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.kernels.independent import SMOOTHING, IndependentItems, chances
from dpplearn.kernels.interface import Law
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training


def with_unseen(learned: Provenance, law: Law, training: Training, baskets: Baskets, *, nonempty: bool) -> Provenance:
    """With what the model gains on baskets that it was not learned from."""
    found = unseen_gain(law, training, baskets, nonempty=nonempty)
    return learned if found is None else replace(learned, unseen_gain=found[0], unseen_error=found[1])


def unseen_gain(law: Law, training: Training, baskets: Baskets, *, nonempty: bool) -> tuple[float, float] | None:
    """In nats per basket, with its standard error; independent items have the frequencies of the training data.

    None where there is nothing to judge by, or some basket is impossible under the model.
    """
    weights = baskets.weights
    if len(baskets) < 2 or not weights.sum() > 0:
        return None
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    each = law.log_probabilities(baskets) - IndependentItems(p, nonempty).log_probabilities(baskets)
    if not np.isfinite(each[weights > 0]).all():
        return None
    each = np.where(weights > 0, each, 0)
    mean = float(weights @ each / weights.sum())
    return mean, float(np.sqrt(in_variance(weights) @ (each - mean) ** 2) / weights.sum())
