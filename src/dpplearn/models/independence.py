"""Decide whether a model is better than independent items, and say why it is not."""

from __future__ import annotations

import numpy as np

from dpplearn.data.pairs import Cooccurrence, significant
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.models.record import Provenance, Training
from dpplearn.models.relations import pair_table, training_counts
from dpplearn.utils.text import number, signed, times_as_likely

MIN_GAIN = 0.01  # nats per basket; a smaller gain over independent items is not worth a model
MIN_LIFT_DIFFERENCE = 0.01  # lifts closer to 1 are no interaction
MAX_ITEMS = 200  # most likely items whose pairs are compared
MIN_Z = 3.0  # standard errors of the sum over all pairs
MIN_VARIANCE = 1.0  # of the co-occurrences of a pair that contributes to the sum

SENTENCE = "This model is not better than independent items: {why}. Use popularity instead."
NO_INTERACTION = "no two items repel or attract each other in it, and its segments do not differ"
NOT_BETTER = "a held-out basket is {likely} under it, which is not significantly better ({gain} ± {error} nats)"
SMALL_GAIN = "its gain on the training baskets is only {gain} nats per basket"
NO_PAIRS = "the training baskets are consistent with independent items"


def why_independent(distribution: SetDistribution, learned: Provenance, training: Training | None) -> str:
    """Return why a model is not better than independent items, in one sentence; empty if it is better.

    The gain on held-out baskets decides. Without them, the model is not better if it gains less than 0.01 nats on the
    training baskets, or if these are consistent with independence: no significant pair, and a sum of squared deviations
    over all pairs within three standard errors.
    """
    why = _from_distribution(distribution, learned) or _from_held_out(learned)
    if not why and learned.unseen_gain is None:
        why = _from_training(learned) or (_from_pairs(distribution, training) if training is not None else "")
    return SENTENCE.format(why=why) if why else ""


def _from_distribution(distribution: SetDistribution, learned: Provenance) -> str:
    if learned.shrinkage == 1:
        return NO_INTERACTION
    items = np.sort(np.argsort(-distribution.marginals(), kind="stable")[:MAX_ITEMS])
    lift = pair_table(distribution, items, items).lift
    return NO_INTERACTION if np.abs(lift - 1).max(initial=0) < MIN_LIFT_DIFFERENCE else ""


def _from_held_out(learned: Provenance) -> str:
    gain, error = learned.unseen_gain, learned.unseen_error
    if gain is None or error is None or gain > max(2 * error, 0):
        return ""
    return NOT_BETTER.format(likely=times_as_likely(gain), gain=signed(gain, 3), error=number(2 * error, 3))


def _from_training(learned: Provenance) -> str:
    if learned.log_likelihood is None or learned.independent_log_likelihood is None:
        return ""
    gain = learned.log_likelihood - learned.independent_log_likelihood
    return SMALL_GAIN.format(gain=signed(gain, 3)) if gain < MIN_GAIN else ""


def _from_pairs(distribution: SetDistribution, training: Training) -> str:
    items = np.sort(np.argsort(-training.item_weights, kind="stable")[:MAX_ITEMS])
    square = training_counts(distribution, training, items, items)
    first, second = np.triu_indices(len(items), 1)
    counts = Cooccurrence(square.observed[first, second], square.expected[first, second], square.missed)
    m = training.frequencies[items]
    variance = np.maximum(counts.expected * (1 - m[first]) * (1 - m[second]), 0)
    large = variance >= MIN_VARIANCE
    if not large.any():
        return ""
    squares = (counts.observed - counts.expected)[large] ** 2 / variance[large]
    # For a Poisson count with mean e, (X − e)²/e has mean 1 and variance 2 + 1/e.
    error = float(np.sqrt((2 + 1 / variance[large]).sum()))
    if squares.sum() - len(squares) > MIN_Z * error:
        return ""
    return "" if significant(counts.p()).any() else NO_PAIRS
