"""Decide whether a model is better than independent items, and say why it is not."""

from __future__ import annotations

import numpy as np

from dpplearn.data.pairs import significant
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.models.record import Provenance, Training
from dpplearn.models.relations import pair_table, training_counts
from dpplearn.utils.text import number, signed, times_as_likely

MIN_GAIN = 0.01  # nats per basket; a smaller gain over independent items is not worth a model
MIN_LIFT_DIFFERENCE = 0.01  # lifts closer to 1 are no interaction
MAX_ITEMS = 200  # most likely items whose pairs are compared
MIN_Z = 3.0  # standard errors of the sum over all pairs
MIN_VARIANCE = 1.0  # of the co-occurrences of a pair that contributes to the sum


def why_independent(distribution: SetDistribution, learned: Provenance, training: Training | None) -> str:
    """Return why a model is not better than independent items, in one sentence; empty if it is better.

    The gain on held-out baskets decides. Without them, the model is not better if it gains less than 0.01 nats on the
    training baskets, or if these are consistent with independence: no significant pair, and a sum of squared deviations
    over all pairs within three standard errors.
    """
    gain, error = learned.unseen_gain, learned.unseen_error
    model, independent = learned.log_likelihood, learned.independent_log_likelihood
    trained = np.inf if model is None or independent is None else model - independent
    items = np.argsort(-distribution.marginals(), kind="stable")[:MAX_ITEMS]
    lift = pair_table(distribution, items, items).lift
    if learned.shrinkage == 1 or np.abs(lift - 1).max(initial=0) < MIN_LIFT_DIFFERENCE:
        why = "no two items repel or attract each other in it, and its segments do not differ"
    elif gain is not None and error is not None:
        if gain > max(2 * error, 0):
            return ""
        measured = f"{signed(gain, 3)} ± {number(2 * error, 3)} nats"
        why = f"a held-out basket is {times_as_likely(gain)} under it, which is not significantly better ({measured})"
    elif trained < MIN_GAIN:
        why = f"its gain on the training baskets is only {signed(trained, 3)} nats per basket"
    elif training is not None and _is_consistent(distribution, training):
        why = "the training baskets are consistent with independent items"
    else:
        return ""
    return f"This model is not better than independent items: {why}. Use popularity instead."


def _is_consistent(distribution: SetDistribution, training: Training) -> bool:
    """Return whether the numbers of baskets with each pair of items are those expected of independent items."""
    items = np.argsort(-training.item_weights, kind="stable")[:MAX_ITEMS]
    counts, pairs = training_counts(distribution, training, items, items), np.triu_indices(len(items), 1)
    observed, expected, absent = counts.observed[pairs], counts.expected[pairs], 1 - training.frequencies[items]
    variance = expected * np.outer(absent, absent)[pairs]
    large = variance >= MIN_VARIANCE
    excess = (observed - expected)[large] ** 2 / variance[large] - 1
    # For a Poisson count with mean e, (X − e)²/e has mean 1 and variance 2 + 1/e.
    error = np.sqrt((2 + 1 / variance[large]).sum())
    return bool(large.any() and excess.sum() <= MIN_Z * error and not significant(counts.p()[pairs]).any())
