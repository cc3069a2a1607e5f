"""Sets drawn from a model, which replace training baskets that are no longer available."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.models.model import SetModel

SETS_PER_BASKET, MIN_SETS, MAX_SETS = 5, 10_000, 100_000  # with fewer sets an update would fit their sampling noise
MIN_HOLDERS = 20  # items and pairs in fewer drawn sets are left as they are: few sets would get very large weights
SETS_PER_PAIR = 4  # drawn sets per pair of items, from which on the frequencies of pairs are fitted as well
MAX_ROUNDS = 20  # over all items and pairs
FACTOR_TOL = 1e-6  # stop once no factor differs from 1 by more than this


def draw_sets(model: SetModel, n: int, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Draw n sets from the model."""
    sets = model.distribution.sample(n, None, rng, threads)
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
    """Draw sets with the total weight of the training baskets.

    They also get the item frequencies of the training baskets, and the pair frequencies if there are enough sets.
    """
    weight, known = training_weight(model), model.training
    n_sets = int(np.clip(SETS_PER_BASKET * weight, MIN_SETS, MAX_SETS))
    drawn = draw_sets(model, n_sets, rng, threads)
    if known is not None:
        n_pairs = drawn.n_items * (drawn.n_items - 1) / 2
        enough = n_sets >= SETS_PER_PAIR * n_pairs and not known.least  # all pairs are known
        drawn = with_frequencies(drawn, known.frequencies, known.pair_frequencies() if enough else None)
    return drawn.reweighted(weight / drawn.total_weight)


def with_frequencies(baskets: Baskets, items: Floats, pairs: Floats | None = None) -> Baskets:
    """Reweight the baskets until items, and pairs if given, have these frequencies, by iterative proportional fitting.

    Feature after feature (an item or a pair), the baskets with the feature and those without it are rescaled to the
    weights f and 1 − f. Only the ratio of the two factors matters, so only the baskets with the feature change.
    """
    rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
    of_items = _holders(rows, baskets.indices.astype(np.int64), items)
    weights = baskets.weights
    if pairs is not None:
        weights = _fitted(weights, [*_holders(*_pairs_held(baskets), pairs.reshape(-1)), *of_items])
    # No weights may meet all pairs at once; the items are then still met.
    return baskets.weighted(_fitted(weights, of_items))


def _fitted(weights: Floats, features: list[tuple[Ints, float]]) -> Floats:
    """Return the weights after rescaling by each feature in turn, for several rounds."""
    for _ in range(MAX_ROUNDS):
        weights = weights / weights.sum()
        total, largest = 1.0, 0.0
        for holders, f in features:
            held = float(weights[holders].sum())
            if not FACTOR_TOL * total < held < (1 - FACTOR_TOL) * total:
                continue  # all baskets hold it, or only baskets that other features exclude
            factor = f / (1 - f) * (total - held) / held
            weights[holders] *= factor
            total += (factor - 1) * held
            largest = max(largest, abs(factor - 1))
        if largest <= FACTOR_TOL:
            break
    return weights


def _holders(rows: Ints, features: Ints, frequencies: Floats) -> list[tuple[Ints, float]]:
    """Return for each feature in enough baskets the rows of these baskets, and its frequency.

    Frequencies of 0 and 1 are replaced by nearby ones, as they would need infinite factors.
    """
    order = np.argsort(features, kind="stable")
    which, first = np.unique(features[order], return_index=True)
    wanted = np.clip(frequencies[which], FACTOR_TOL, 1 - FACTOR_TOL).tolist()
    held_by = np.split(rows[order], first[1:])
    return [each for each in zip(held_by, wanted, strict=True) if len(each[0]) >= MIN_HOLDERS]


def _pairs_held(baskets: Baskets) -> tuple[Ints, Ints]:
    """Return the row and the number i N + j of every pair of items i < j in a basket."""
    rows, pairs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in baskets.by_size:
        first, second = np.triu_indices(group.sets.shape[1], 1)
        rows.append(np.repeat(group.rows, len(first)))
        pairs.append((group.sets[:, first].astype(np.int64) * baskets.n_items + group.sets[:, second]).reshape(-1))
    return np.concatenate(rows), np.concatenate(pairs)
