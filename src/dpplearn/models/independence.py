"""Whether a model is no more than independent items, and how that is known."""

from __future__ import annotations

import numpy as np

from dpplearn.distributions.distribution import SetDistribution
from dpplearn.models.record import Provenance, Training
from dpplearn.models.relations import FDR_LEVEL, Evidence, Independence, benjamini_hochberg, evidence, pair_table
from dpplearn.utils.text import number, signed, times_as_likely

WORTH_HAVING = 0.01  # nats per basket
NOTHING = 0.01  # a lift that is nearer to 1 says nothing
LOOKED_AT = 200  # items, the likeliest: among others there is little to see
CLEARLY = 3.0  # standard errors, by which all pairs together depart from chance
COUNTED = 1.0  # the least variance of the meetings of a pair whose departure counts

SAID = "This model is no more than independent items: {why}. Popularity says as much."
NO_INTERACTION = "in it no two items repel or attract each other, and nobody likes an item more than others do"
NOT_BETTER = (
    "a basket that it was not learned from is {likelier} under it, which is not clearly better ({gain} ± {error} nats)"
)
HARDLY_LIKELIER = "even a basket that it was learned from is hardly likelier under it ({gain} nats)"
BY_CHANCE = "items of the baskets that it was learned from met as often as chance explains"


def why_independent(distribution: SetDistribution, learned: Provenance, training: Training | None) -> str:
    """Why a model is no more than independent items, in one sentence; empty where it is more, as far as is known.

    What was measured on baskets that it was not learned from decides. Without them it is no more if it makes those
    that it was learned from less than 0.01 nats likelier, or if their items met as chance explains: no pair more or
    less often, all pairs allowed for [BH95], nor all pairs together by three standard errors.
    """
    why = _of_distribution(distribution, learned) or _of_unseen(learned)
    if not why and learned.unseen_gain is None:
        why = _of_training(learned) or (_of_pairs(distribution, training) if training is not None else "")
    return SAID.format(why=why) if why else ""


def _of_distribution(distribution: SetDistribution, learned: Provenance) -> str:
    if learned.shrinkage == 1:
        return NO_INTERACTION
    p = distribution.marginals()
    items = np.sort(np.argsort(-p, kind="stable")[:LOOKED_AT])
    lift = pair_table(distribution, items, items).lift
    return NO_INTERACTION if np.abs(lift - 1).max(initial=0) < NOTHING else ""


def _of_unseen(learned: Provenance) -> str:
    gain, error = learned.unseen_gain, learned.unseen_error
    if gain is None or error is None or gain > max(2 * error, 0):
        return ""
    return NOT_BETTER.format(likelier=times_as_likely(gain), gain=signed(gain, 3), error=number(2 * error, 3))


def _of_training(learned: Provenance) -> str:
    if learned.log_likelihood is None or learned.independent_log_likelihood is None:
        return ""
    gain = learned.log_likelihood - learned.independent_log_likelihood
    return HARDLY_LIKELIER.format(gain=signed(gain, 3)) if gain < WORTH_HAVING else ""


def _of_pairs(distribution: SetDistribution, training: Training) -> str:
    items = np.sort(np.argsort(-training.item_weights, kind="stable")[:LOOKED_AT])
    seen = evidence(training, Independence.of(distribution), items, items)
    first, second = np.triu_indices(len(items), 1)
    pairs = Evidence(seen.met[first, second], seen.expected[first, second], seen.missed)
    m = training.frequencies[items]
    spread = np.maximum(pairs.expected * (1 - m[first]) * (1 - m[second]), 0)
    counted = spread >= COUNTED
    if not counted.any():
        return ""
    off = (pairs.met - pairs.expected)[counted] ** 2 / spread[counted]
    # Of a count of mean e, (X − e)²/e has the mean 1 and the variance 2 + 1/e.
    error = float(np.sqrt((2 + 1 / spread[counted]).sum()))
    if off.sum() - len(off) > CLEARLY * error:
        return ""
    two_sided = np.minimum(2 * np.minimum(pairs.fewer(), pairs.more()), 1)
    return "" if benjamini_hochberg(two_sided, FDR_LEVEL).any() else BY_CHANCE
