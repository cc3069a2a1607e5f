"""Sets that stand in for the baskets that a model was learned from, where these are no longer at hand."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.fitting.balancing import balanced, enough_for_pairs
from dpplearn.models.model import SetModel

ROUNDS = 3  # of getting items right, as no weight may fall below zero: what sets miss that would, the others get
PER_BASKET, FEWEST, MOST = 5, 10_000, 100_000  # sets; too few, and an update would learn their chance


def learned_weight(model: SetModel) -> float:
    """How many baskets a model was learned from, as far as it knows."""
    weight = model.training.weight if model.training is not None else model.learned.weight
    if weight is None:
        raise InputError(
            "the model does not tell how many baskets it was learned from, so that there is no telling what it counts "
            "beside new ones; pass those, too (old=, --with)"
        )
    return weight


def stand_in(model: SetModel, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Sets drawn exactly from the model, of the weight of what it was learned from, and with its items as frequent as
    they were there; with pairs nearly so, too, where the sets are enough for that."""
    weight = learned_weight(model)
    n_sets = int(np.clip(PER_BASKET * weight, FEWEST, MOST))
    drawn = drawn_sets(model, n_sets, rng, threads).reweighted(1 / n_sets)
    return _as_in_training(model, drawn).reweighted(weight)


def drawn_sets(model: SetModel, n: int, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Sets drawn exactly from the model."""
    sets = model.law.sample(n, None, rng, threads)
    rows = np.repeat(np.arange(n), [len(each) for each in sets])
    return Baskets.from_pairs(rows, np.concatenate([*sets, np.zeros(0, np.int64)]), n, model.catalogue)


def _as_in_training(model: SetModel, drawn: Baskets) -> Baskets:
    known = model.training
    if known is None:
        return drawn
    pairs = enough_for_pairs(len(drawn), drawn.n_items) and not known.least
    if pairs:
        drawn = balanced(drawn, known.frequencies, known.pair_frequencies(), total=1.0)
    for _ in range(ROUNDS):
        drawn = balanced(drawn, known.frequencies, None, total=1.0)
    return drawn.weighted(drawn.weights / drawn.total_weight)
