"""Sets drawn from a model, which replace training baskets that are no longer available."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.models.model import SetModel

SETS_PER_BASKET, MIN_SETS, MAX_SETS = 5, 10_000, 100_000  # with fewer sets an update would fit their sampling noise
MIN_ITEM_SETS = 20  # items in fewer drawn sets keep their frequency: few sets would get very large weights
MAX_ROUNDS = 20  # over all items
FACTOR_TOL = 1e-6  # stop once no weight changes by more than this, relative to itself


def draw_sets(model: SetModel, n: int, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Draw n sets from the model."""
    sets = model.law.sample(n, None, rng, threads)
    rows = np.repeat(np.arange(n), [len(each) for each in sets])
    return Baskets.from_pairs(rows, np.concatenate([*sets, np.zeros(0, np.int64)]), n, model.catalogue)


def training_weight(model: SetModel) -> float:
    """Return the total weight of the baskets that the model was fitted to."""
    weight = model.training.weight if model.training is not None else model.learned.weight
    if weight is None:
        raise InputError(
            "the model does not record how many baskets it was fitted to; pass these baskets as well (old=, --with)"
        )
    return weight


def draw_training_sets(model: SetModel, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Draw sets with the total weight of the training baskets, and with their item frequencies as far as known."""
    weight = training_weight(model)
    n_sets = int(np.clip(SETS_PER_BASKET * weight, MIN_SETS, MAX_SETS))
    drawn = draw_sets(model, n_sets, rng, threads)
    if model.training is not None:
        drawn = with_item_frequencies(drawn, model.training.frequencies)
    return drawn.reweighted(weight / drawn.total_weight)


def with_item_frequencies(baskets: Baskets, frequencies: Floats) -> Baskets:
    """Reweight the baskets until the items have these frequencies, by iterative proportional fitting.

    Item after item, the baskets with the item and those without it are rescaled to the weights f and 1 − f. Only the
    ratio of the two factors matters, so only the baskets with the item change.
    """
    by_item = np.argsort(baskets.indices, kind="stable")
    rows = np.repeat(np.arange(len(baskets)), baskets.sizes)[by_item]
    holders = np.split(rows, np.cumsum(np.bincount(baskets.indices, minlength=baskets.n_items))[:-1])
    wanted = np.clip(frequencies, FACTOR_TOL, 1 - FACTOR_TOL)  # 0 and 1 would need infinite factors
    weights = baskets.weights.copy()
    for _ in range(MAX_ROUNDS):
        weights /= weights.sum()
        total, largest = 1.0, 0.0
        for with_item, f in zip(holders, wanted, strict=True):
            held = float(weights[with_item].sum())
            if len(with_item) < MIN_ITEM_SETS or not total - held > FACTOR_TOL * total:
                continue
            factor = f / (1 - f) * (total - held) / held
            weights[with_item] *= factor
            total += (factor - 1) * held
            largest = max(largest, abs(np.log(factor)))
        if largest <= FACTOR_TOL:
            break
    return baskets.weighted(weights)
